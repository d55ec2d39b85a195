"""Runs the calls of `Turn.tools`, as `turn/function_calls.py` runs those of a model.

Rule 1: a call is in the transcript before it runs, and its result is its record: once that is there, a function that
        runs again gets the result. One without a result runs again with its own record.
Rule 2: what the function itself has changed so far is saved before a call begins, so that a call that fails undoes only
        its own changes, and may write the same artifacts.
Rule 3: when the function pauses for a question, its other calls run to their ends. When it ends, they are cancelled.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, assert_never

from a2a_canvas.server.agent.events import ToolStep
from a2a_canvas.server.agent.loops.model_steps import ModelSteps, ShownCall
from a2a_canvas.server.agent.loops.run_record import RunRecord, result_point
from a2a_canvas.server.agent.model import ToolResult
from a2a_canvas.server.agent.turn.call import TurnOutput
from a2a_canvas.server.agent.turn.function_calls import FunctionCalls, Question
from a2a_canvas.server.agent.turn.pending_calls import FunctionCall
from a2a_canvas.tools.functions.recorded_call import CallPaused
from a2a_canvas.tools.functions.results import ToolError
from a2a_canvas.tools.part_inputs import require_portable
from a2a_canvas.tools.tool import Ask, Decline, Done, Failed, Outcome, to_json


class CallingTurn(Protocol):
    """What `ToolRuns` needs of a turn; see `Turn`."""

    caller: str
    asked: list[Question]
    output: TurnOutput
    model: ModelSteps

    def check_step(self, what: str) -> None: ...

    def new_call_id(self, name: str) -> str: ...

    def pass_point(self, point: str) -> None: ...

    async def check_limits(self) -> None: ...

    async def share_artifacts(self) -> None: ...

    async def record_shown(self) -> None: ...


class ToolRuns:
    """The calls of one run of an agent's function."""

    def __init__(self, turn: CallingTurn, functions: FunctionCalls, record: RunRecord) -> None:
        self._turn = turn
        self._functions = functions
        self._results = dict(record.results)
        self._recorded = set(record.results)
        self._pending = dict(record.pending)
        self._running: dict[str, asyncio.Task[Outcome | None]] = {}

    async def call_tool(self, name: str, given: Mapping[str, Any], call_id: str | None, *, approved: bool) -> str:
        """See `TurnTool.call`."""
        call = await self._begin(name, given, call_id)
        if call.id not in self._results:
            await self._run(call, lambda: self._functions.run_one(replace(call, approved=approved)))
        result = self._result(call.id)
        if result.is_error:
            raise ToolError(result.content)
        return result.content

    async def approve_call(self, name: str, given: Mapping[str, Any], call_id: str | None) -> bool:
        """See `TurnTool.approve`."""
        call = await self._begin(name, given, call_id)
        if call.id not in self._results:
            await self._run(call, lambda: self._functions.approve(call))
        return not (call.id in self._results and self._result(call.id).is_error)

    def _result(self, use_id: str) -> ToolResult:
        if use_id in self._recorded:
            self._recorded.remove(use_id)
            self._turn.pass_point(result_point(use_id))
        return self._results[use_id]

    async def _begin(self, name: str, given: Mapping[str, Any], call_id: str | None) -> FunctionCall:
        """The call, as recorded or as clients see it from now on."""
        self._turn.check_step(f"{name!r} was called")
        call_id = call_id or self._turn.new_call_id(name)
        shown = self._turn.model.find_call(call_id)
        if shown is None or not self._is_known(shown):
            given = _as_json(name, given)
            await self._turn.check_limits()
            await self._turn.share_artifacts()
            shown = await self._turn.model.show_call(call_id, name, given)  # nothing waits from here
            if not self._is_known(shown):
                await self._record_call(name, given, shown)
        return self._pending.get(shown.use_id) or FunctionCall(shown.use_id, shown.index, name, given)

    def _is_known(self, shown: ShownCall) -> bool:
        return shown.use_id in self._results or shown.use_id in self._pending

    async def _record_call(self, name: str, given: Mapping[str, Any], shown: ShownCall) -> None:
        call = self._pending[shown.use_id] = FunctionCall(shown.use_id, shown.index, name, given, self._turn.caller)
        called = ToolStep(call.id, "called", str(call.index), call.caller)
        await self._turn.output.append_transcript((called,))

    async def _run(self, call: FunctionCall, run: Callable[[], Awaitable[Outcome | None]]) -> None:
        task = self._running.get(call.id)
        if task is None:
            task = self._running[call.id] = asyncio.create_task(self._carry_out(call, run))
            task.add_done_callback(lambda ended: self._forget(call.id, ended))
        try:
            outcome = await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if not self._turn.asked:  # rule 3
                task.cancel(*error.args)
                await asyncio.wait((task,))
            raise
        if isinstance(outcome, Ask):
            raise CallPaused(outcome.question, outcome.authentication)

    def _forget(self, use_id: str, ended: asyncio.Task[Outcome | None]) -> None:
        del self._running[use_id]
        if not ended.cancelled():
            ended.exception()  # so that it is not reported if the function has ended

    async def _carry_out(self, call: FunctionCall, run: Callable[[], Awaitable[Outcome | None]]) -> Outcome | None:
        outcome = await run()
        match outcome:
            case Done(content=content) | Failed(content=content):
                self._results[call.id] = ToolResult(call.id, content, isinstance(outcome, Failed))
                await self._turn.record_shown()  # in the event-loop step of the result
            case Ask() | None:
                pass
            case Decline():
                raise AssertionError(f"{call.name} declined")
            case _:
                assert_never(outcome)
        return outcome

    async def wait(self) -> None:
        """Wait until no call runs."""
        while self._running:
            await asyncio.wait(self._running.values())

    async def cancel(self, reason: Sequence[str] = ()) -> None:
        """Cancel the calls that run, and wait until they have ended."""
        for task in self._running.values():
            task.cancel(*reason)
        await self.wait()


def _as_json(name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        copy: Mapping[str, Any] = json.loads(to_json(require_portable(dict(given))))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"The input of {name} is not JSON: {error}.") from None
    return copy
