"""Projects a turn to AG-UI's text messages, reasoning and tool calls, for one subscriber.

Rule 1: the visible text of a round is one message, and the parent of the round's tool calls. A round that is repeated
        after its answer broke off is another message.
Rule 2: every start has an end, at the latest with the model call, and every tool call has a result: a client treats a
        call without one as a call that it must carry out itself.
Rule 3: a subscriber that joins in the middle of a round gets the text so far. Reasoning and calls that started before
        are left out.
Rule 4: an agent's message is a message of its own, unless its text is the streamed text of the round.
Rule 5: a client keeps every message that it receives. So at the end of a run MESSAGES_SNAPSHOT removes the texts of
        earlier rounds and of attempts that broke off, with the calls that were not carried out. It keeps the text of
        the last round, or the message that completed the task instead; a question, or the reason of a failure, is kept
        beside that text. If the task is cancelled, unfinished text is kept.
Rule 6: a snapshot has all messages that its client shows: those that it sent with the run, unchanged, and those of the
        run. Nothing is removed from a client that sent none.
Rule 7: a client of the older form does not send its messages, so no snapshot could name them. It gets a text as a
        message only when the run ends, and only a text that is kept. CUSTOM events have every text as it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ag_ui import core

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.protocols.agui.sent_messages import SentMessages
from a2a_canvas.store.text.rope import Rope

BROKEN_OFF = "Not carried out: the model's answer was interrupted."
ENDED = "Not carried out: the task has ended."
_TEXT_EVENTS = (core.TextMessageStartEvent, core.TextMessageContentEvent, core.TextMessageEndEvent)


class MessageEvents:
    """Projects turn events to AG-UI's message, reasoning and tool-call events.

    Args:
        task_id: prefix of the message ids.
        history: the messages that the client sent with the run; None for a client that sends none.
    """

    def __init__(self, task_id: str, history: Sequence[core.Message] | None) -> None:
        self._task_id = task_id
        self._history = history
        self._sent = SentMessages()
        self._texts: set[str] = set()  # ids of all messages with a text
        self._round_text = self._own_text = ""  # the newest of each kind in this attempt
        self._broke_off = False
        self._broken_calls: set[str] = set()
        self._used: set[str] = set()
        self._message_id = ""
        self._reply = Rope()  # the round's text, until it has become a message
        self._writing = False
        self._reasoning: tuple[int, str] | None = None
        self._calls: dict[int, str] = {}  # tool calls without a result, by index
        self._open_inputs: set[int] = set()

    def begin(self, round_: int, reply: Rope) -> Iterator[core.BaseEvent]:
        """The text of a round that was written before the subscriber joined (rule 3)."""
        return self._record_and_filter(self._text(round_, str(reply)))

    def project(self, event: ev.TurnEvent) -> Iterator[core.BaseEvent]:
        return self._record_and_filter(self._project(event))

    def project_message(self, message: ev.AgentMessage) -> Iterator[core.BaseEvent]:
        """The agent's message (rule 4)."""
        return self._record_and_filter(self._project_message(message))

    def record_activity(self, message: core.ActivityMessage) -> None:
        """An activity of the agent's function is shown, or has changed."""
        self._sent.record_activity(message)

    def end(self) -> Iterator[core.BaseEvent]:
        """Ends everything that is open."""
        return self._record_and_filter(self._end())

    def take_back(self, state: ev.State) -> Iterator[core.BaseEvent]:
        """The messages to keep when the task ends in `state`, unless the client has just these (rules 5 and 7)."""
        if self._history is None:
            yield from self._sent.texts(self._staying_texts(state))
            return
        texts = self._texts - self._staying_texts(state)
        calls = set() if state is ev.State.CANCELED else self._broken_calls
        if self._history and (texts or calls):
            yield core.MessagesSnapshotEvent(messages=[*self._history, *self._sent.without(texts, calls)])

    def _record_and_filter(self, events: Iterator[core.BaseEvent]) -> Iterator[core.BaseEvent]:
        recorded = self._sent.record(events)
        if self._history is not None:
            return recorded
        return (event for event in recorded if not isinstance(event, _TEXT_EVENTS))

    def _staying_texts(self, state: ev.State) -> set[str]:
        match state:
            case ev.State.COMPLETED:
                return {self._own_text or self._round_text}
            case ev.State.CANCELED:
                return {self._own_text, self._round_text}
            case _:
                return {self._own_text, "" if self._broke_off else self._round_text}

    def _project(self, event: ev.TurnEvent) -> Iterator[core.BaseEvent]:
        match event:
            case ev.MessageStarted():
                yield from self._end_answer()
                self._message_id, self._reply = "", Rope()
                self._round_text, self._own_text, self._broke_off = "", "", False
            case ev.TextAdded():
                yield from self._text(event.place.round, event.text)
            case ev.ThinkingAdded():
                yield from self._think(event)
            case ev.ToolUseStarted():
                yield from self._start_call(event)
            case ev.ToolInputAdded() if event.place.index in self._calls:
                yield core.ToolCallArgsEvent(tool_call_id=self._calls[event.place.index], delta=event.partial_json)
            case ev.BlockStopped():
                yield from self._end_block(event.place.index)
            case ev.ToolSucceeded(index=index, content=content) | ev.ToolFailed(index=index, error=content):
                yield from self._end_call(index, content)
            case ev.LlmCallCompleted():
                yield from self._end_answer()
                if event.stop_reason == "error":
                    self._broke_off = True
                    self._broken_calls.update(self._calls.values())
                    yield from self._end_calls(BROKEN_OFF)
            case _:
                pass

    def _project_message(self, message: ev.AgentMessage) -> Iterator[core.BaseEvent]:
        yield from self._end_text()
        if message.text and message.text == str(self._reply).strip():
            self._broke_off = False  # the task keeps the text
        elif message.text:
            self._own_text = message.message_id
            yield from self._start(message.message_id)
            yield core.TextMessageContentEvent(message_id=message.message_id, delta=message.text)
            yield core.TextMessageEndEvent(message_id=message.message_id)
        self._reply = Rope()

    def _end(self) -> Iterator[core.BaseEvent]:
        yield from self._end_answer()
        yield from self._end_calls(ENDED)

    def _start(self, message_id: str) -> Iterator[core.BaseEvent]:
        self._texts.add(message_id)
        yield core.TextMessageStartEvent(message_id=message_id, role="assistant")

    def _text(self, round_: int, text: str) -> Iterator[core.BaseEvent]:
        message_id = self._round_message_id(round_)
        if not self._writing:
            self._writing, self._round_text = True, message_id
            yield from self._start(message_id)
        self._reply += Rope(text)
        yield core.TextMessageContentEvent(message_id=message_id, delta=text)

    def _round_message_id(self, round_: int) -> str:
        if not self._message_id:
            self._message_id = self._unused_id(f"{self._task_id}:{round_}")
        return self._message_id

    def _unused_id(self, name: str) -> str:
        """`name`, or if it is taken, `name:2`, `name:3`…"""
        number, unused = 1, name
        while unused in self._used:
            number += 1
            unused = f"{name}:{number}"
        self._used.add(unused)
        return unused

    def _end_text(self) -> Iterator[core.BaseEvent]:
        if self._writing:
            self._writing = False
            yield core.TextMessageEndEvent(message_id=self._message_id)

    def _think(self, event: ev.ThinkingAdded) -> Iterator[core.BaseEvent]:
        index = event.place.index
        if self._reasoning and self._reasoning[0] != index:
            yield from self._end_reasoning()
        if not self._reasoning:
            message_id = f"{self._task_id}:thinking:{index}"
            self._reasoning = index, message_id
            yield core.ReasoningStartEvent(message_id=message_id)
            yield core.ReasoningMessageStartEvent(message_id=message_id, role="reasoning")
        yield core.ReasoningMessageContentEvent(message_id=self._reasoning[1], delta=event.content)

    def _end_reasoning(self) -> Iterator[core.BaseEvent]:
        if self._reasoning:
            (_, message_id), self._reasoning = self._reasoning, None
            yield core.ReasoningMessageEndEvent(message_id=message_id)
            yield core.ReasoningEndEvent(message_id=message_id)

    def _start_call(self, event: ev.ToolUseStarted) -> Iterator[core.BaseEvent]:
        call_id = self._calls[event.place.index] = self._unused_id(event.tool_use_id)
        self._open_inputs.add(event.place.index)
        yield core.ToolCallStartEvent(
            tool_call_id=call_id,
            tool_call_name=event.name,
            parent_message_id=self._round_message_id(event.place.round),
        )

    def _end_input(self, index: int) -> Iterator[core.BaseEvent]:
        if index in self._open_inputs:
            self._open_inputs.remove(index)
            yield core.ToolCallEndEvent(tool_call_id=self._calls[index])

    def _end_call(self, index: int, content: str) -> Iterator[core.BaseEvent]:
        if index in self._calls:
            yield from self._end_input(index)
            call_id = self._calls.pop(index)
            yield core.ToolCallResultEvent(
                message_id=f"{call_id}:result", tool_call_id=call_id, content=content, role="tool"
            )

    def _end_block(self, index: int) -> Iterator[core.BaseEvent]:
        if self._reasoning and self._reasoning[0] == index:
            yield from self._end_reasoning()
        yield from self._end_input(index)

    def _end_answer(self) -> Iterator[core.BaseEvent]:
        yield from self._end_text()
        yield from self._end_reasoning()
        for index in self._calls:
            yield from self._end_input(index)

    def _end_calls(self, content: str) -> Iterator[core.BaseEvent]:
        for index in tuple(self._calls):
            yield from self._end_call(index, content)
