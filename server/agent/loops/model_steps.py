"""The answers of an agent's own model and its tool calls, as they stream: for adapters of frameworks.

Rule 1: an answer is a step (`respond`): its text, thinking and calls stream while the step runs, and its round ends
        with the record. A crash before the record repeats the answer, and what the first try showed is replaced.
        Of answers that are made at the same time, one streams its calls. Those of the others are shown when they run,
        and after its end: a call that is shown whole ends the round.
Rule 2: a call is a step (`run_call`), named by the call's id, because frameworks run calls in parallel: their order
        differs from run to run.
Rule 3: a call that failed is recorded, too: the model has read the failure.
Rule 4: a framework with checkpoints of its own does not run again from its start: it continues from its newest one.
        What each of its units (a node of a graph) shows and changes belongs to the unit's step (`within`), and is
        recorded with the rows of the checkpoint that says that the unit has ended (`checkpoint`), in one transaction.
        After a crash all recorded steps count as asked for (`resume`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from a2a_canvas.server.agent.endings import to_tool_result
from a2a_canvas.server.agent.loops.reply_stream import ReplyStream
from a2a_canvas.server.agent.loops.streamed_calls import ARTIFACT_TOOLS, StreamedCalls
from a2a_canvas.server.agent.model import StopReason
from a2a_canvas.server.agent.turn.call import TurnOutput
from a2a_canvas.server.agent.turn.pending_calls import FunctionCall
from a2a_canvas.tools.functions.results import ToolError
from a2a_canvas.tools.tool import Done, Failed, Outcome, to_json

T = TypeVar("T")

_BEGIN, _CALL, _CHECKPOINT = "#begin ", "#call ", "#checkpoint "
"""What the names of steps begin with: no step of `once` has such a name (`Turn.number_step`)."""


def _done(value: Any) -> Outcome:
    return Done(value if isinstance(value, str) else to_json(value))


class SteppedTurn(Protocol):
    """What `ModelSteps` needs of a turn; see `Turn`."""

    reply_stream: ReplyStream
    output: TurnOutput

    @property
    def results(self) -> Mapping[str, str]: ...

    @property
    def is_live(self) -> bool: ...

    def number_step(self, name: str) -> str: ...

    def within(self, name: str) -> AbstractContextManager[None]: ...

    def claim_reply(self) -> bool: ...

    def enter(self, name: str) -> None: ...

    def pass_step(self, step: str) -> Any: ...

    async def run_step(
        self, step: str, fn: Callable[[], Awaitable[T]], recorded: Callable[[], Awaitable[None]] = ...
    ) -> T: ...

    async def begin_whole_call(self, call_id: str, name: str, given: Mapping[str, Any]) -> FunctionCall: ...

    async def keep_now(self, step: str, value: object) -> None: ...

    async def pace(self, size: int) -> None: ...

    async def prepare(self) -> None: ...

    async def settle(self, reason: StopReason) -> None: ...

    async def take_back(self) -> None: ...

    async def check_limits(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call that clients have seen: its block's index, and its id in the events."""

    index: int
    use_id: str


@dataclass(slots=True, eq=False)
class _ModelAnswer:
    """An answer that is being made.

    Attributes:
        streams: a call of it has begun to stream.
        calls: those that clients have seen.
    """

    streams: bool = False
    calls: list[str] = field(default_factory=list)


_ANSWER: ContextVar[_ModelAnswer | None] = ContextVar("answer", default=None)
"""The answer that is made in this context."""


class ModelSteps:
    """The answers and tool calls of the agent's own model: `turn.model`."""

    def __init__(self, turn: SteppedTurn, calls: StreamedCalls) -> None:
        self._turn = turn
        self._calls = calls
        self._shown: dict[str, ShownCall] = {}
        self._streaming: _ModelAnswer | None = None
        self._answer_ended = asyncio.Event()

    async def respond(self, name: str, fn: Callable[[], Awaitable[T]], *, key: str = "") -> T:
        """An answer of the model, as a step: what `fn` streams is its text, thinking and calls.

        Args:
            fn: requests the answer, streams it (`turn.stream`, `turn.think`, `begin_call`…) and returns it, as JSON.
            key: of the step; by default, the n-th answer with this name is a step of its own.
        """
        step = key or self._turn.number_step(name)
        result: T
        if step in self._turn.results:
            result, shown = self._turn.pass_step(step)
            self._shown |= {call_id: ShownCall(*place) for call_id, place in shown.items()}
            return result
        await self._turn.check_limits()
        made = _ModelAnswer()
        if self._streaming is None:
            self._streaming = made
            await self._calls.abort_all()

        async def end_round() -> None:
            if made.calls:  # an answer without calls may be the last one, whose text is the reply
                await self._turn.settle("tool_use")

        try:
            result, _ = await self._turn.run_step(step, lambda: self._make(made, fn), end_round)
        finally:
            if self._streaming is made:
                self._streaming = None
                self._answer_ended.set()
        return result

    async def _make(self, answer: _ModelAnswer, fn: Callable[[], Awaitable[object]]) -> list[Any]:
        """The value of an answer, and the places of its calls."""
        outer = _ANSWER.set(answer)
        try:
            value = await fn()
            for call_id in self._turn.reply_stream.open_calls if self._streaming is answer else ():
                await self.end_call(call_id)
        except BaseException as error:
            if self._streaming is answer:
                await self._calls.abort_all()
            if isinstance(error, Exception):
                await self._turn.take_back()
            raise
        finally:
            _ANSWER.reset(outer)
        shown = {call_id: self._shown[call_id] for call_id in answer.calls}
        return [value, {call_id: [each.index, each.use_id] for call_id, each in shown.items()}]

    async def prepare_call(self) -> None:
        """Wait until a call may be shown whole, which ends the round: no answer streams one."""
        await self._turn.prepare()
        while self._streaming and self._streaming.streams:
            self._answer_ended.clear()
            await self._answer_ended.wait()
            await self._turn.prepare()

    async def begin_call(self, call_id: str, name: str) -> None:
        """The model begins to write a call of a tool; ignored if clients have seen the call."""
        if self._turn.is_live and call_id not in self._shown and self._may_stream(_ANSWER.get()):
            self._calls.begin(call_id, name)
            await self._turn.reply_stream.begin_call(call_id, name)

    def _may_stream(self, answer: _ModelAnswer | None) -> bool:
        if answer is None:  # of a framework with checkpoints
            return True
        answer.streams = answer.streams or (answer is self._streaming and self._turn.claim_reply())
        return answer.streams

    async def add_input(self, call_id: str, piece: str) -> None:
        """A piece of the JSON of a call's input. An artifact grows with it, if the tool is one of `ARTIFACT_TOOLS`."""
        await self._turn.pace(len(piece))
        if self._turn.is_live and piece and call_id in self._turn.reply_stream.open_calls:
            await self._turn.reply_stream.add_input(call_id, piece, partial(self._feed, call_id))

    async def _feed(self, call_id: str, piece: str) -> None:
        if label := await self._calls.feed(call_id, piece):
            await self._turn.output.label(label, of_tool=True)

    async def end_call(self, call_id: str) -> None:
        """The input of a call is complete."""
        if self._turn.is_live and call_id in self._turn.reply_stream.open_calls:
            if made := await self._turn.reply_stream.end_call(call_id):
                self._shown[call_id] = ShownCall(made.index, made.id)
                if answer := _ANSWER.get():
                    answer.calls.append(call_id)
            else:
                await self._calls.abort(call_id)

    async def run_call(
        self,
        call_id: str,
        name: str,
        given: Mapping[str, Any],
        fn: Callable[[], Awaitable[T]],
        *,
        key: str = "",
        outcome_of: Callable[[T], Outcome | None] = _done,
    ) -> T:
        """Run a call of one of the agent's tools, as a step; clients see its result.

        Args:
            fn: returns the result, a JSON value.
            key: tells the steps of one call apart: of a call that is run again once it is approved.
            outcome_of: what clients see of the result; None: nothing yet.

        Raises:
            ToolError: `fn` raised one, now or when the call was run before.
        """

        async def run() -> tuple[Outcome | None, T]:
            value = await fn()
            return outcome_of(value), value

        value: T = await self._run(call_id, name, given, run, key)
        return value

    async def run_artifact_call(self, call_id: str, name: str, given: Mapping[str, Any]) -> str:
        """Run a call of one of `ARTIFACT_TOOLS`, as a step. Returns what the model reads, also if the call failed."""

        async def run() -> tuple[Outcome, str]:
            outcome = await self._calls.run(call_id, name, given, self._turn.prepare)
            assert isinstance(outcome, Done | Failed)
            return outcome, outcome.content

        return await self._run(call_id, name, given, run)

    async def fail_call(self, call_id: str, name: str, given: Mapping[str, Any], reason: str) -> None:
        """The framework does not run a call, for a reason that the model reads."""

        async def fail() -> str:
            raise ToolError(reason)

        with suppress(ToolError):
            await self.run_call(call_id, name, given, fail)

    # ---------------------------------------------------------- for frameworks with checkpoints of their own (rule 4)

    def resume(self) -> dict[str, Any]:
        """Count every recorded step as asked for; returns the values of `checkpoint`, by key."""
        values: dict[str, Any] = {}
        for step in self._turn.results:
            kept = self._turn.pass_step(step)
            if step.startswith(_CHECKPOINT):
                values[step.removeprefix(_CHECKPOINT)], calls = kept
            elif step.startswith(_BEGIN):
                calls = {step.removeprefix(_BEGIN): kept}
            else:
                continue
            self._shown |= {call_id: ShownCall(*place) for call_id, place in calls.items()}
        return values

    def within(self, key: str) -> AbstractContextManager[None]:
        """What is shown and changed here is recorded with the checkpoint of this key; an empty one leaves it."""
        return self._turn.within(_CHECKPOINT + key if key else "")

    def enter(self, key: str) -> None:
        """As `within`, for what is left of this context: of a task that runs a unit."""
        self._turn.enter(_CHECKPOINT + key)

    async def checkpoint(
        self,
        key: str,
        fn: Callable[[], Awaitable[Any]],
        *,
        calls: Collection[str] = (),
        results: Iterable[tuple[str, Outcome]] = (),
    ) -> None:
        """Record what was shown and changed within a key. It is durable when this returns.

        Args:
            fn: sets the rows of the checkpoint; returns a JSON value for `resume`.
            calls: the ids of the calls that were shown.
            results: of calls that the framework has run, for clients; by the calls' ids.
        """
        with self.within(key):
            for call_id in calls:
                await self.end_call(call_id)
        made = {each: [self._shown[each].index, self._shown[each].use_id] for each in calls if each in self._shown}

        async def record() -> list[Any]:
            return [await fn(), made]

        async def show() -> None:
            if made and not self._turn.reply_stream.open_calls:  # else the round ends with the last of the calls
                await self._turn.settle("tool_use")
            for call_id, outcome in results:
                if call_id in self._shown and f"{_CALL}{call_id}" not in self._turn.results:
                    await self._show(call_id, outcome)

        with self.within(""):  # a unit may contain others
            await self._turn.run_step(_CHECKPOINT + key, record, show)

    async def undo_previews(self) -> None:
        """No call is run before the next answer: undo what grew while they streamed."""
        await self._calls.abort_all()

    async def _run(
        self,
        call_id: str,
        name: str,
        given: Mapping[str, Any],
        run: Callable[[], Awaitable[tuple[Outcome | None, T]]],
        key: str = "",
    ) -> T:
        turn, step = self._turn, f"{_CALL}{call_id} {key}".rstrip()
        self.find_call(call_id)
        if step not in turn.results:
            await turn.check_limits()
            await self.show_call(call_id, name, given)
            if name not in ARTIFACT_TOOLS:
                await turn.output.label(f"Running {name}…", of_tool=True)
            outcome: Outcome | None = None

            async def record() -> list[Any]:
                nonlocal outcome
                try:
                    outcome, value = await run()
                except ToolError as error:
                    await self._calls.abort(call_id)
                    outcome = Failed(str(error))
                    return [None, str(error)]
                return [value, None]

            value, failure = await turn.run_step(step, record, lambda: self._show(call_id, outcome))
        else:
            value, failure = turn.pass_step(step)
        if failure is not None:
            raise ToolError(failure)
        result: T = value
        return result

    def find_call(self, call_id: str) -> ShownCall | None:
        """A call that clients have seen, in this run or in the one before; None if they have not."""
        step = f"{_BEGIN}{call_id}"
        if call_id not in self._shown and step in self._turn.results:
            self._shown[call_id] = ShownCall(*self._turn.pass_step(step))
        return self._shown.get(call_id)

    async def show_call(self, call_id: str, name: str, given: Mapping[str, Any]) -> ShownCall:
        """Show a call, unless it streamed; nothing waits once it is shown."""
        if found := self.find_call(call_id):
            return found
        made = await self._turn.begin_whole_call(call_id, name, given)
        shown = self._shown[call_id] = ShownCall(made.index, made.id)
        await self._turn.keep_now(f"{_BEGIN}{call_id}", [made.index, made.id])
        return shown

    async def _show(self, call_id: str, outcome: Outcome | None) -> None:
        if outcome is None:
            return
        shown = self._shown[call_id]
        result, event = to_tool_result(shown.index, shown.use_id, outcome)
        await self._turn.output.emit(event)
        await self._turn.output.append_transcript((result,) if result else ())
