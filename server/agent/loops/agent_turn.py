"""`Turn`: what an agent's own loop may do for one message.

Rule 1: a function that was cut off by a crash or a question runs again from its start, with its record. What it did in
        a step (`once`, `tool`) is skipped; outside of steps it must say and change the same as before.
Rule 2: text outside of steps is not shown again, and its usage not counted again, until all recorded steps have been
        asked for: the round begins with the recorded text (`reply_pieces.py`). A recorded step that the function no
        longer asks for is ignored.
Rule 3: what ends the function early (`ask`, `decline`, a limit) leaves it by an exception that no `except Exception`
        catches, and holds even if one catches it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from a2a_canvas.server.agent.agui_log import checked_event
from a2a_canvas.server.agent.endings import Ending, to_tool_result
from a2a_canvas.server.agent.events import State, UserMessage
from a2a_canvas.server.agent.loops.agui_stream import AguiStream
from a2a_canvas.server.agent.loops.conversation import History, Message, to_message
from a2a_canvas.server.agent.loops.model_steps import ModelSteps
from a2a_canvas.server.agent.loops.passage_edit import Edit
from a2a_canvas.server.agent.loops.reply_pieces import PieceKind, ReplyPieces, ShownText
from a2a_canvas.server.agent.loops.reply_stream import ReplyStream
from a2a_canvas.server.agent.loops.run_record import SETTLED, RunRecord
from a2a_canvas.server.agent.loops.streamed_calls import StreamedCalls
from a2a_canvas.server.agent.loops.tool_runs import ToolRuns
from a2a_canvas.server.agent.loops.turn_tools import turn_tools
from a2a_canvas.server.agent.loops.turn_values import TurnState, TurnValues, ValueStore
from a2a_canvas.server.agent.model import StopReason, Usage
from a2a_canvas.server.agent.text.visible import visible
from a2a_canvas.server.agent.turn.approval import escape_invisible
from a2a_canvas.server.agent.turn.call import TurnOutput
from a2a_canvas.server.agent.turn.function_calls import FunctionCalls, Question
from a2a_canvas.server.agent.turn.pending_calls import FUNCTION, FunctionCall
from a2a_canvas.store.annotations.annotation import Annotation
from a2a_canvas.store.errors import LimitReached, StoreError
from a2a_canvas.tools.annotations.agent_review import (
    add_comment,
    add_reply,
    add_suggestion,
    list_annotations,
    resolve_comment,
)
from a2a_canvas.tools.annotations.listed_annotation import ListedAnnotation
from a2a_canvas.tools.functions.recorded_call import (
    CallPaused,
    CallServices,
    RecordedCall,
    call_async,
    differs_message,
    do_nothing,
    require_text,
)
from a2a_canvas.tools.functions.results import ToolError
from a2a_canvas.tools.functions.running import HANDED_OVER
from a2a_canvas.tools.streaming import CallRefused
from a2a_canvas.tools.tool import Ask, Done, Failed, Outcome, Workspace, to_json

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_REPLY = 1_000_000
"""Characters of text and reasoning that may be shown until the round ends."""
MAX_REPORTED = 10**9
"""Tokens that one report counts at most. A framework or an agent elsewhere may report any number."""


class ReplyTooLong(LimitReached):
    """The function has shown more than `MAX_REPLY` characters."""

    def __init__(self) -> None:
        super().__init__(
            f"The agent's reply exceeds {MAX_REPLY:,} characters. Have it write long texts to an artifact."
        )


@contextmanager
def _refused_as_tool_errors() -> Iterator[None]:
    try:
        yield
    except LimitReached:
        raise
    except (CallRefused, StoreError) as error:
        raise ToolError(str(error)) from None


class TurnEnded(BaseException):
    """The function must end: it declined, or reached a limit."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.text)
        self.ending = ending


@dataclass(frozen=True, slots=True)
class TurnServices:
    """What a turn needs besides a call's services.

    Attributes:
        stop: why the turn must end; empty if it may continue.
        spend: counts tokens, of input and output.
        values: what is kept in the context.
        state_bytes: the limit of it.
        take_messages: takes the messages that the function has not read, for a call of `Turn.messages` by its number.
        tokens_left: that the user may use today; None without a limit.
    """

    stop: Callable[[], Awaitable[str]]
    spend: Callable[[int, int], None]
    take_messages: Callable[[int], Awaitable[Sequence[UserMessage]]]
    values: ValueStore
    state_bytes: int
    tokens_left: Callable[[], int | None]


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left for a turn; None without a limit.

    Attributes:
        tokens: that the user who is served, or all users together, may still use today (UTC).
        seconds: that the turn may still take. This server sets no such limit, so it is None.
    """

    tokens: int | None
    seconds: float | None = None


@dataclass(slots=True)
class ToolCall:
    """A running call of a tool of the agent."""

    turn: Turn
    name: str
    step: str
    input: Mapping[str, Any]
    index: int
    use_id: str
    ended: bool = False

    async def run(self, fn: Callable[[], Awaitable[T]]) -> T:
        """Carry out the call with `fn`, which returns a JSON value: the result that clients see. It is a step."""
        return await self.turn.run_tool(self, fn)


class Turn(RecordedCall):
    """One message, and everything an agent's function may do about it.

    Attributes:
        message: the message to answer: text, files, data, metadata.
        text: its text.
        history: the conversation before it, oldest first; `history.pairs()` for a model.
        thread_id: of the conversation, for another server: unlike `context_id`, no two users share one.
        edit: the edit of a selection that is asked for, in place of an answer; None in a conversation.
        resumed: the function was cut off by a crash, and runs again.
        handed_over: another server continues the task; set when the function is cancelled.
        tools: of the agent folder: its `tools.py`, MCP servers and agents (`TurnTool`).
        instructions: of the agent folder.
        state: one JSON value of the conversation.
        values: for adapters of frameworks: named bytes of the conversation.
        model: for adapters of frameworks: streams the answers and tool calls of the agent's own model.
        reply_stream, output: for `model`: what clients see.
        calls: those of `tools`.
    """

    def __init__(
        self,
        workspace: Workspace,
        services: CallServices,
        turn_services: TurnServices,
        record: RunRecord,
        reply: ReplyStream,
        output: TurnOutput,
        agui: AguiStream,
        message: Message,
        functions: FunctionCalls,
        *,
        history: History,
        messages: Sequence[UserMessage] = (),
        instructions: str = "",
        resumed: bool = False,
    ) -> None:
        super().__init__("", workspace, services, record.call)
        self.thread_id = hashlib.sha256(workspace.context_id.encode()).hexdigest()[:32]
        self.message = message
        self.text = message.text
        self.history = history
        self.instructions = instructions
        self.edit: Edit | None = None
        self.resumed = resumed
        self.handed_over = False
        self.asked: list[Question] = []
        self.ending: Ending | None = None
        self.reply_stream = reply
        self.output = output
        self._calls = StreamedCalls(workspace, services.writers)
        self.model = ModelSteps(self, self._calls)
        self.calls = ToolRuns(self, functions, record)
        self._functions = functions
        self.tools = turn_tools(functions.tools, record.tool_names, self.calls)
        self.values = TurnValues(
            turn_services.values, turn_services.state_bytes, lambda: self._step, self._check_open, self.check_set
        )
        self.state = TurnState(self.values, record.sets)
        self._turn = turn_services
        self._agui = agui
        self._messages = messages
        self._taken = record.taken
        self._takes = 0
        self._pieces = ReplyPieces(reply)
        self._unasked = set(record.points)
        self._held: list[tuple[PieceKind, str]] = []
        self._names: Counter[str] = Counter()
        self._shown_size = 0

    # ---------------------------------------------------------------------- the reply

    async def stream(self, text: str) -> None:
        """Show a piece of the reply. Text before a tool call is a message, text after the last one is the reply."""
        await self._show("text", text)

    async def say(self, text: str) -> None:
        """Show a whole paragraph of the reply."""
        await self._show("end")
        await self._show("text", text)
        await self._show("end")

    async def think(self, text: str) -> None:
        """Show a piece of reasoning, as clients show that of models."""
        await self._show("thinking", text)

    async def take_back(self) -> None:
        """Take back the text since the last step, or what the step has shown in which it is called."""
        self._check_open()
        if self.is_live:
            await self._pieces.drop(self._step, restart=True)

    async def agui(self, event: object) -> None:
        """Send an event to AG-UI clients, those that join later included; no other client sees it.

        The agent's state appears to them under the key `agent` of the state, and a STATE_DELTA is about that value.

        Args:
            event: CUSTOM, ACTIVITY_SNAPSHOT, ACTIVITY_DELTA, STATE_SNAPSHOT or STATE_DELTA, as a dict or a model of
                `ag-ui-protocol`; at most 64 KB of JSON.

        Raises:
            AguiEventError: it is another event, malformed or too large, or a delta that does not fit.

        >>> async def agent(turn: Turn) -> None:
        ...     await turn.agui({"type": "STATE_SNAPSHOT", "snapshot": {"stage": "reading"}})
        """
        checked = checked_event(event)
        await self.pace(len(to_json(checked)))
        if self.is_live:
            await self._agui.send(checked, self._step)

    async def decline(self, reason: str) -> None:
        """End the task as `rejected`, with a reason for the user. It does not return."""
        self._check_open()
        self.end(Ending(State.REJECTED, visible(reason).strip() or "The agent declined this request."))

    async def ask(self, question: str, *, authentication: bool = False) -> str:
        """Ask the user; see `Canvas.ask`. Questions asked at the same time are one message; its answer answers all."""
        named = f"For {escape_invisible(self.caller)}: " if authentication and self.caller else ""
        return await self._ask(Ask(named + question, authentication))

    async def ask_approval(self, call_id: str, name: str, given: Mapping[str, Any]) -> str:
        """Ask whether a call may run, as for a tool with `approval`: only who may approve can answer.

        Returns:
            The answer; `is_yes` says whether it approves.
        """
        return await self._ask(self._functions.approval(FunctionCall(call_id, -1, name, given, self.caller)))

    async def _ask(self, asked: Ask) -> str:
        self.check_step("ask was called", "Ask first, and use the answer in it.")
        number = self._questions
        answer = self._next_answer()
        if answer is None:
            self.asked.append(Question(FUNCTION, number, asked))
            raise CallPaused(asked.question, asked.authentication)
        self.pass_point(number)
        return answer

    # ---------------------------------------------------------------------- comments

    async def comments(self, artifact_id: str) -> list[ListedAnnotation]:
        """The comments and suggestions on passages of an artifact, oldest first.

        Raises:
            ToolError: there is no such artifact.
        """
        self._check_open()
        with _refused_as_tool_errors():
            return await list_annotations(self._workspace, artifact_id)

    async def comment(self, artifact_id: str, quote: str, text: str) -> int:
        """Comment on a passage. It is a step: a rerun makes no second comment.

        Args:
            quote: the passage, which must occur in the text once.

        Returns:
            The comment's number in the artifact.

        Raises:
            ToolError: it cannot be made; the message says why.
        """
        self._check_words(quote=quote, text=text)
        return await self._annotate("comment", lambda place: add_comment(place, artifact_id, quote, text))

    async def suggest(self, artifact_id: str, old: str, new: str, text: str = "") -> int:
        """Suggest to replace the passage `old`, with a comment. Otherwise as `comment`."""
        self._check_words(old=old)
        return await self._annotate("suggest", lambda place: add_suggestion(place, artifact_id, old, new, text))

    async def reply(self, artifact_id: str, number: int, text: str) -> None:
        """Reply to a comment or a suggestion. It is a step; raises as `comment`."""
        self._check_words(text=text)
        await self._annotate("reply", lambda place: add_reply(place, artifact_id, number, text))

    async def resolve(self, artifact_id: str, number: int) -> None:
        """Resolve a comment. It is a step; raises as `comment`."""
        await self._annotate("resolve", lambda place: resolve_comment(place, artifact_id, number))

    async def _annotate(self, name: str, act: Callable[[Workspace], Awaitable[Annotation]]) -> int:
        self.check_step(f"{name} was called")
        step = self.number_step(f"turn.{name}")
        if step in self._kept:
            number: int = self.pass_step(step)
            return number
        await self.check_limits()
        await self.save()
        with _refused_as_tool_errors():
            made = await act(self._workspace)
        await self.keep_now(step, made.number)
        await self._services.flushed()
        return made.number

    def _check_words(self, **words: str) -> None:
        for name, text in words.items():
            if not require_text(text):
                raise ToolError(f"{name} must not be empty.")

    # ---------------------------------------------------------------------- steps

    async def once(self, name: str, fn: Callable[[], Awaitable[T]], *, key: str = "") -> T:
        """The result of `fn`, which runs once, even if the function runs again: what it says, and changes, is kept.

        Steps that run at the same time (`asyncio.gather`, task groups) must write different artifacts.

        Args:
            fn: is async and returns a JSON value (tuples become lists). A crash while it runs, or before its result
                is stored, runs it again. If it raises, what it has said and changed is undone, and nothing is recorded.
            key: identifies the step among those of the name. By default, the n-th `once` of a name is a step of its
                own: give a key if the order of the calls may differ from run to run.

        Raises:
            TypeError: `fn` is not async.
            ValueError: the result is not a JSON value; the message names the key.
            ToolError: it has more than `MAX_KEPT` characters.
        """
        self.check_step(f"once({name!r}) was called")
        step = self.number_step(name, key)
        if step in self._kept:
            value: T = self.pass_step(step)
            return value
        await self.check_limits()
        return await super().once(step, fn)

    @asynccontextmanager
    async def tool(self, name: str, given: Mapping[str, Any], *, key: str = "") -> AsyncIterator[ToolCall]:
        """A call of a tool of the agent's own, as clients see those of models: its input, then its result.

        What `call.run` carries out is a step. An exception in the body is the call's error, and is raised again;
        clients see the text of a `ToolError` only.

        Args:
            key: the call's id, if it has one: it identifies the step, as in `once`.

        >>> async def agent(turn: Turn) -> None:
        ...     async with turn.tool("search", {"query": turn.text}) as call:
        ...         hits = await call.run(lambda: search(turn.text))
        """
        self.check_step(f"tool({name!r}) was called")
        begun = self.number_step(f"{name} called", key)
        if begun in self._kept:
            index, use_id = self.pass_step(begun)
        else:
            await self.check_limits()
            made = await self.begin_whole_call(
                key or self._unique_id(f"{name}-{self._names[f'{name} called']}"), name, given
            )
            index, use_id = made.index, made.id
            await self.keep_now(begun, [index, use_id])
        call = ToolCall(self, name, self.number_step(f"{name} returned", key), given, index, use_id)
        try:
            yield call
            if not call.ended:
                await call.run(do_nothing)
        except Exception as error:
            if not call.ended:
                await self._fail_tool(call, error)
            raise

    async def run_tool(self, call: ToolCall, fn: Callable[[], Awaitable[T]]) -> T:
        """See `ToolCall.run`."""
        self._check_open()
        if call.ended:
            raise RuntimeError(f"The call of {call.name} has a result. Make another call.")
        if call.step in self._kept:
            call.ended = True
            kept: T = self.pass_step(call.step)
            return kept
        await self.output.label(f"Running {call.name}…", of_tool=True)
        value: T

        async def keep() -> T:
            nonlocal value
            value = await call_async(fn, call.name)
            return value

        async def show() -> None:
            await self._emit_result(call, Done(value if isinstance(value, str) else to_json(value)))

        result = await self._run_step(call.step, keep, show)
        call.ended = True
        return result

    async def _fail_tool(self, call: ToolCall, error: Exception) -> None:
        self._check_open()
        call.ended = True
        reason = str(error) if isinstance(error, ToolError) else ""  # any other may contain secrets
        await self._emit_result(call, Failed(reason or f"{call.name} failed."))

    async def _emit_result(self, call: ToolCall, outcome: Outcome) -> None:
        result, event = to_tool_result(call.index, call.use_id, outcome)
        await self.output.emit(event)
        await self.output.append_transcript((result,) if result else ())

    async def settle(self, reason: StopReason = "end_turn") -> None:
        """End the round: its text is a message, and is not shown again."""
        await self._pieces.set_aside(self._step)
        await self.output.text(await self._pieces.settle(reason))
        self._shown_size = 0
        await self._services.record("shown", SETTLED, "")
        await self._pieces.resume()

    async def messages(self) -> list[Message]:
        """The messages that the user has sent since the function began, or since the last call.

        From then on the function works for the sender of the last one: `caller`, and whose tokens it uses.
        """
        self.check_step("messages was called", "Take them before it.")
        self._takes += 1
        if self._taken and self._takes <= max(self._taken):
            taken: Sequence[UserMessage] = [self._messages[n - 1] for n in self._taken.get(self._takes, ())]
        else:
            taken = await self._turn.take_messages(self._takes)
        if taken:
            self.caller = taken[-1].sender
        return [to_message(message) for message in taken]

    @property
    def budget(self) -> Budget:
        """What is left now. A turn that has used it up ends at its next step, or at its next `usage`."""
        return Budget(self._turn.tokens_left())

    async def usage(self, input_tokens: int = 0, output_tokens: int = 0, *, cached_tokens: int = 0) -> None:
        """Count tokens that the function has used against the limits of the user.

        Call it in the step that has used them: what is recorded is not counted again.
        """
        self.spend(input_tokens, output_tokens, cached_tokens)
        await self.check_limits()

    # ---------------------------------------------------------------------- for the engine, and for `ModelSteps`

    def spend(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> None:
        """Count tokens; limits are checked at the next step, outside the framework's code."""
        self._check_open()
        if self.is_live:
            counts = (input_tokens, output_tokens, cached_tokens)
            usage = Usage(*(min(max(int(count), 0), MAX_REPORTED) for count in counts))
            self._pieces.use(self._step, usage)
            self._turn.spend(usage.total_input, usage.output_tokens)

    @property
    def results(self) -> Mapping[str, str]:
        """The recorded results of steps, as JSON, by name."""
        return self._kept

    def pass_step(self, step: str) -> Any:
        """The result of a recorded step, which is not run again."""
        self.pass_point(step)
        self.state.pass_step(step)
        return json.loads(self._kept[step])

    async def run_step(
        self, step: str, fn: Callable[[], Awaitable[T]], recorded: Callable[[], Awaitable[None]] = do_nothing
    ) -> T:
        """Run `fn` and record its result; `recorded` is awaited in the same event-loop step."""
        self.check_step(f"{step!r} was run")
        return await self._run_step(step, fn, recorded)

    async def begin_whole_call(self, call_id: str, name: str, given: Mapping[str, Any]) -> FunctionCall:
        """Show a call that does not stream, which ends the round; nothing waits once it is shown."""
        await self.model.prepare_call()
        await self._pieces.set_aside(self._step)
        await self.reply_stream.begin_call(call_id, name)
        await self.reply_stream.add_input(call_id, to_json(given))
        made = await self.reply_stream.end_call(call_id)
        assert made  # the input is valid JSON
        await self.settle("tool_use")
        return made

    async def keep_now(self, step: str, value: object) -> None:
        """Record a result in this event-loop step."""
        self._kept[step] = to_json(value)
        await self._services.record("kept", step, self._kept[step])

    def check_step(self, what: str, advice: str = "Steps cannot contain each other.") -> None:
        """Raises `RuntimeError` in a step, and after the end of the turn."""
        self._check_open()
        if self._step:
            raise RuntimeError(f"{what} in the step {self._step!r}. {advice}")

    def new_call_id(self, name: str) -> str:
        """An id of the next call of a tool, the same when the function runs again, and no other turn's."""
        return self._unique_id(self.number_step(f"{name} call").replace(" ", "-").replace("#", "-"))

    def _unique_id(self, call: str) -> str:
        turn = hashlib.sha256(to_json([self.task_id, self.message.message_id]).encode()).hexdigest()[:8]
        return f"{call}-{turn}"

    async def share_artifacts(self) -> None:
        """Save the changes made so far, so that a call of a tool may change the same artifacts."""
        await self.save()
        self._changes.share()

    async def record_shown(self, step: str = "") -> None:
        """Record what was shown, and the state that was set, in a step, and outside of steps since the last record."""
        shown = await self._pieces.record(step)
        if shown != ShownText() or self._agui.has_unrecorded:
            await self._services.record("shown", "", shown.to_json())
        await self.save_sets(step)

    async def begin(self, shown: ShownText) -> None:
        """The function is about to run: the round begins with what is recorded of it."""
        await self._pieces.begin(shown)

    async def finish(self) -> None:
        """The function has returned. Raises `TurnEnded` if it has not repeated its recorded changes."""
        for step in tuple(self._running):
            logger.warning("The agent returned while its step %r ran, which is undone", step)
            await self._undo_step(step)
        await self._pieces.show_waiting()
        if steps := sorted(str(each) for each in self._unasked):
            logger.warning("The agent's code has changed: these recorded steps are ignored: %s", ", ".join(steps))
            self._unasked.clear()
            for kind, text in self._held:
                await self._pieces.add("", kind, text)
        for artifact_id in self._changes.missing():
            self._refuse(artifact_id)

    async def save_sets(self, step: str = "") -> None:
        """Stage what was set outside of steps and in this one, and record it, in this event-loop step."""
        for name, sets in self.state.save(step).items():
            await self._services.record("set", name, to_json(sets))

    def check_set(self, name: str) -> None:
        """Raises if a value of the context may not be set."""

    def release(self) -> None:
        self.values.drop()
        super().release()

    async def undo(self) -> None:
        self.release()
        await self._calls.abort_all(running=True)
        await super().undo()

    def skip_saved_changes(self) -> None:
        super().skip_saved_changes()
        self._unasked.clear()

    def mark_cancelled(self, reason: tuple[object, ...]) -> None:
        """The function is about to be cancelled."""
        self.handed_over = reason == (HANDED_OVER,)

    def claim_reply(self) -> bool:
        """Whether the step that is running may show calls now; what others say then waits for its end."""
        return self._pieces.claim(self._step)

    async def _run_step(self, name: str, fn: Callable[[], Awaitable[T]], recorded: Callable[[], Awaitable[None]]) -> T:
        value = await super()._run_step(name, fn, recorded)
        if not self._ended:
            await self._pieces.end(name)
        return value

    async def _undo_step(self, name: str) -> None:
        if not self.handed_over and not self._ended:
            self.state.drop_step(name)
            await super()._undo_step(name)
            await self._pieces.drop(name)

    def _refuse(self, artifact_id: str) -> NoReturn:
        self.end(Ending(State.FAILED, differs_message(artifact_id)))

    async def _show(self, kind: PieceKind, text: str = "") -> None:
        await self.pace(len(require_text(text)))
        if not text and kind != "end":
            return
        if not self.is_live:
            self._held.append((kind, text))
            return
        self._shown_size += len(text)
        if self._shown_size > MAX_REPLY:
            error = ReplyTooLong()
            self.ending = self.ending or Ending(State.FAILED, str(error))
            raise error
        await self._pieces.add(self._step, kind, text)

    @property
    def is_live(self) -> bool:
        return bool(self._step) or not self._unasked

    def number_step(self, name: str, key: str = "") -> str:
        """The name of a step's record: no two steps share one."""
        if key:
            return f"{name}#{to_json(key)}"
        self._names[name] += 1
        return name if self._names[name] == 1 and "#" not in name else f"{name}#{self._names[name]}"

    def pass_point(self, point: str | int) -> None:
        """A record of the run before was asked for: what follows the last one is shown."""
        self._unasked.discard(point)
        self._held.clear()

    async def check_limits(self) -> None:
        if reason := await self._turn.stop():
            self.end(Ending(State.FAILED, reason))

    def end(self, ending: Ending) -> NoReturn:
        """End the function, and its task."""
        self.ending = self.ending or ending
        raise TurnEnded(self.ending)
