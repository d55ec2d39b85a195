"""What AG-UI begins, continues and ends: text messages, reasoning and tool calls, as one subscriber sees them.

Rule 1: the visible text of a round is one message, and the round's tool calls are that message's. A round that is asked
        for again after its answer broke off is another message: AG-UI can add to a message, but not take it back.
Rule 2: whatever is begun is ended, at the latest with the model call, and every call that was begun has a result: a
        client takes a call without one for a call that it has to carry out itself.
Rule 3: of what began before the subscriber came, only the text is made up for. The rest of such a call is left out.
Rule 4: what the agent says is a message of its own, unless it is the text that the round has streamed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ag_ui import core

from a2a_canvas.server.agent import events as ev
from a2a_canvas.store.text.rope import Rope

BROKEN_OFF = "Not carried out: the model's answer broke off."
ENDED = "Not carried out: the task has ended."


@dataclass(slots=True)
class _OpenToolCall:
    """A tool call without a result yet. `open`: its input is not whole."""

    tool_call_id: str
    open: bool = True


class MessageEvents:
    """Follows a turn.

    Args:
        task_id: begins the ids of messages.
        expose_thinking: the model's thinking is shown, as reasoning.

    Attributes:
        reply: the visible text of the round so far, until it is said.
    """

    def __init__(self, task_id: str, *, expose_thinking: bool) -> None:
        self.reply = Rope()
        self._task_id = task_id
        self._expose_thinking = expose_thinking
        self._used: set[str] = set()
        self._message_id = ""
        self._writing = False
        self._reasoning: tuple[int, str] | None = None
        self._calls: dict[int, _OpenToolCall] = {}

    def join(self, round_: int, reply: Rope) -> Iterator[core.BaseEvent]:
        """The text of a round that was written before the subscriber came."""
        yield from self._text(round_, str(reply))

    def follow(self, event: ev.TurnEvent) -> Iterator[core.BaseEvent]:
        """What an event begins, continues or ends."""
        match event:
            case ev.MessageStarted():
                yield from self._end_answer()
                self._message_id, self.reply = "", Rope()
            case ev.TextAdded():
                yield from self._text(event.place.round, event.text)
            case ev.ThinkingAdded() if self._expose_thinking:
                yield from self._think(event)
            case ev.ToolUseStarted():
                yield from self._begin_call(event)
            case ev.ToolInputAdded() if event.place.index in self._calls:
                yield core.ToolCallArgsEvent(
                    tool_call_id=self._calls[event.place.index].tool_call_id, delta=event.partial_json
                )
            case ev.BlockStopped():
                yield from self._end_block(event.place.index)
            case ev.ToolSucceeded(index=index, content=content) | ev.ToolFailed(index=index, error=content):
                yield from self._end_call(index, content)
            case ev.LlmCallCompleted():
                yield from self._end_answer()
                if event.stop_reason == "error":
                    yield from self._end_calls(BROKEN_OFF)
            case _:
                pass

    def say(self, message: ev.AgentMessage) -> Iterator[core.BaseEvent]:
        """What the agent says, if it was not streamed."""
        yield from self._end_text()
        if message.text and message.text != str(self.reply).strip():
            yield from self._start(message.message_id)
            yield core.TextMessageContentEvent(message_id=message.message_id, delta=message.text)
            yield core.TextMessageEndEvent(message_id=message.message_id)
        self.reply = Rope()

    def end(self) -> Iterator[core.BaseEvent]:
        """Ends all that is open."""
        yield from self._end_answer()
        yield from self._end_calls(ENDED)

    # -------------------------------------------------------------------------- text

    def _start(self, message_id: str) -> Iterator[core.BaseEvent]:
        yield core.TextMessageStartEvent(message_id=message_id, role="assistant")

    def _text(self, round_: int, text: str) -> Iterator[core.BaseEvent]:
        message_id = self._of_round(round_)
        if not self._writing:
            self._writing = True
            yield from self._start(message_id)
        self.reply += Rope(text)
        yield core.TextMessageContentEvent(message_id=message_id, delta=text)

    def _of_round(self, round_: int) -> str:
        if not self._message_id:
            self._message_id = self._unused(f"{self._task_id}:{round_}")
        return self._message_id

    def _unused(self, name: str) -> str:
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

    # --------------------------------------------------------------------- reasoning

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

    # -------------------------------------------------------------------- tool calls

    def _begin_call(self, event: ev.ToolUseStarted) -> Iterator[core.BaseEvent]:
        call = self._calls[event.place.index] = _OpenToolCall(self._unused(event.tool_use_id))
        yield core.ToolCallStartEvent(
            tool_call_id=call.tool_call_id,
            tool_call_name=event.name,
            parent_message_id=self._of_round(event.place.round),
        )

    def _end_input(self, call: _OpenToolCall) -> Iterator[core.BaseEvent]:
        if call.open:
            call.open = False
            yield core.ToolCallEndEvent(tool_call_id=call.tool_call_id)

    def _end_call(self, index: int, content: str) -> Iterator[core.BaseEvent]:
        call = self._calls.pop(index, None)
        if call:
            yield from self._end_input(call)
            yield core.ToolCallResultEvent(
                message_id=f"{call.tool_call_id}:result", tool_call_id=call.tool_call_id, content=content, role="tool"
            )

    # -------------------------------------------------------------------------- ends

    def _end_block(self, index: int) -> Iterator[core.BaseEvent]:
        if self._reasoning and self._reasoning[0] == index:
            yield from self._end_reasoning()
        if index in self._calls:
            yield from self._end_input(self._calls[index])

    def _end_answer(self) -> Iterator[core.BaseEvent]:
        yield from self._end_text()
        yield from self._end_reasoning()
        for call in self._calls.values():
            yield from self._end_input(call)

    def _end_calls(self, content: str) -> Iterator[core.BaseEvent]:
        for index in tuple(self._calls):
            yield from self._end_call(index, content)
