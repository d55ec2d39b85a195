"""Runs the calls of function tools: those of a complete model message, and those that were waiting.

Rule 1: a call is in the transcript before it runs, and its result is emitted with the versions that it makes, in one
        event-loop step.
Rule 2: a call interrupted by a crash runs again, unless its tool is not idempotent: the model then learns that the
        outcome is unknown. So a call that must not run twice is durable before it begins.
Rule 3: a call of a missing tool, as after a restart, waits for the tool, and then fails with the reason.
Rule 4: a call that is not run again, because its task ends, abandons what it has started elsewhere.
Rule 5: a tool's exception never ends the turn; a call without a result exists only if the turn is cancelled.
Rule 6: the user is asked to approve a call only if its input is valid.
Rule 7: credentials given to a call appear in none of its results, questions, labels and log lines.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from a2a_canvas.server.agent.endings import to_tool_result, visible_outcome
from a2a_canvas.server.agent.events import ToolStep, Transcript
from a2a_canvas.server.agent.turn.approval import approval_question, escape_invisible
from a2a_canvas.server.agent.turn.call import TurnOutput, log_failure
from a2a_canvas.server.agent.turn.pending_calls import FunctionCall, kept_values, pending_calls
from a2a_canvas.server.wire import is_yes
from a2a_canvas.store.models import JsonValue
from a2a_canvas.tools.functions.canvas import Canvas
from a2a_canvas.tools.functions.canvas_artifact import CanvasArtifact
from a2a_canvas.tools.functions.function_tool import FindTool, FunctionTool
from a2a_canvas.tools.functions.recorded_call import CallPaused, CallServices, StepKind
from a2a_canvas.tools.functions.results import TO_THE_MODEL, File, ToolError, digest
from a2a_canvas.tools.functions.running import HANDED_OVER, CallTimeout, run_within
from a2a_canvas.tools.tool import Ask, Done, Failed, Outcome, Workspace

logger = logging.getLogger(__name__)

LABEL_SECONDS = 0.1
"""Seconds between two labels of one call; those in between are dropped."""
APPROVAL = 0
"""The number of the question for approval among those of a call; the questions of the tool itself follow it."""


async def find_no_tool(name: str) -> str:
    """A `FindTool` that knows no tools: all exist from the start."""
    return ""


@dataclass(frozen=True, slots=True)
class Question:
    """What a call, or an agent's function, asks the user.

    Attributes:
        call_id: of the call; `FUNCTION` for the agent's function.
        number: among the questions of the call.
        index: of the call's block.
    """

    call_id: str
    number: int
    ask: Ask
    index: int = -1

    @property
    def step(self) -> ToolStep:
        """Records that the call waits for the answer."""
        kind: StepKind = "authentication" if self.ask.authentication else "asked"
        return ToolStep(self.call_id, kind, self.ask.question, str(self.number))


def paced_label(output: TurnOutput) -> Callable[[str], Awaitable[None]]:
    """Shows labels of a call, at most one in `LABEL_SECONDS`."""
    clock, shown = asyncio.get_running_loop().time, -LABEL_SECONDS

    async def label(text: str) -> None:
        nonlocal shown
        if clock() - shown >= LABEL_SECONDS:
            shown = clock()
            await output.label(text, of_tool=True)

    return label


@dataclass(slots=True)
class FunctionCalls:
    """Runs calls for one turn.

    Attributes:
        flushed: waits until all emitted events are durable.
        owner: of the context; empty if unknown.
        find_tool: waits for a tool missing from `tools` (rule 3).
        earlier: the transcripts of the context's earlier tasks.
        asked: ids of the calls that wait for the user, in their order.
        writers: ids of artifacts changed by running calls, with the ids of these calls.
        on_question: takes what a call asks, in place of `record_question`.
    """

    tools: dict[str, FunctionTool]
    workspace: Workspace
    output: TurnOutput
    flushed: Callable[[], Awaitable[None]]
    owner: str = ""
    find_tool: FindTool = find_no_tool
    earlier: Sequence[Transcript] = ()
    asked: list[str] = field(default_factory=list)
    writers: dict[str, str] = field(default_factory=dict)
    on_question: Callable[[Question], Awaitable[None]] | None = None
    _missing: dict[str, str] = field(default_factory=dict)
    _exclusive: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, calls: Sequence[FunctionCall]) -> list[Outcome]:
        """Run the calls, adjacent parallel ones concurrently; returns the outcomes in their order."""
        self.asked.clear()
        try:
            return await self._run_all(calls)
        except asyncio.CancelledError as error:
            if error.args != (HANDED_OVER,):
                waiting = [call for call in pending_calls(self.output.transcript) if call.id in self.asked]
                await abandon(waiting, self.tools)
            raise

    async def _run_all(self, calls: Sequence[FunctionCall]) -> list[Outcome]:
        await self.find({call.name for call in calls})
        outcomes: list[Outcome] = []
        for parallel, group in groupby(calls, self._is_parallel):
            if parallel:
                outcomes += await _gather([self._run(call) for call in group])
            else:
                outcomes += [await self._run(call) for call in group]
        return outcomes

    async def run_one(self, call: FunctionCall) -> Outcome:
        """Run a call. Calls of tools that are not parallel wait for each other."""
        if self._is_parallel(call):
            return await self._run(call)
        async with self._exclusive:
            return await self._run(call)

    async def approve(self, call: FunctionCall) -> Outcome | None:
        """Ask whether a call may run, if its tool needs approval; None if it may."""
        tool = self.tools.get(call.name)
        return await self._check_approval(tool, call) if tool and needs_approval(tool) else None

    async def find(self, names: Iterable[str]) -> None:
        """Wait for the tools that are missing (rule 3)."""
        await asyncio.gather(*map(self._find, set(names) - self.tools.keys()))

    async def _find(self, name: str) -> None:
        await self.output.label(f"Waiting for {name}…", of_tool=True)
        found = await self.find_tool(name)
        if isinstance(found, FunctionTool):
            self.tools[name] = found
        elif isinstance(found, str):
            self._missing[name] = found

    def _is_parallel(self, call: FunctionCall) -> bool:
        tool = self.tools.get(call.name)
        return tool is not None and tool.parallel

    async def _run(self, call: FunctionCall) -> Outcome:
        tool = self.tools.get(call.name)
        if tool is None:
            return await self._end(call, Failed(_missing_tool_message(call, self._missing.get(call.name, ""))))
        if call.interrupted and not tool.idempotent:
            return await self._end(call, Failed(_unknown_outcome_message(tool)))
        if needs_approval(tool) and not call.approved and (refused := await self._check_approval(tool, call)):
            return refused
        await self._step(call, "began")
        if not tool.idempotent:
            await self.flushed()
        record = replace(call.record, answers=call.record.answers[_first_own_question(tool) :])
        canvas = Canvas(call.id, self.workspace, self._services(call), record)
        await self.output.label(f"Running {tool.name}…", of_tool=True)
        try:
            outcome = _without_credentials(call, await self._carry_out(tool, call, canvas))
        except BaseException:
            await canvas.undo()
            raise
        if isinstance(outcome, Ask):
            await canvas.save()
            return await self._ask(call, outcome, canvas)
        if isinstance(outcome, Failed):
            await canvas.undo()
        await canvas.prepare()
        await canvas.close()  # nothing waits from here (rule 1)
        return await self._end(call, outcome)

    async def _check_approval(self, tool: FunctionTool, call: FunctionCall) -> Outcome | None:
        """The outcome of a call that is not approved yet; None if it may run."""
        answers = call.record.answers
        answer = answers[APPROVAL] if answers else None
        if answer is None:
            if tool.check and (fault := tool.check(call.input)):
                return await self._end(call, Failed(fault))
            return await self._ask(call, self.approval(call))
        if not is_yes(answer):
            return await self._end(call, Failed(f"The user did not approve this call, and answered: {answer}"))
        return None

    def approval(self, call: FunctionCall) -> Ask:
        """The question whether a call may run. It names the caller, if not the owner."""
        guest = call.caller if self.owner and call.caller != self.owner else ""
        asked: Mapping[str, JsonValue] = {"toolCallId": call.id, "tool": call.name, "input": dict(call.input)}
        return Ask(approval_question(call.name, call.input, guest), approval=asked)

    async def _carry_out(self, tool: FunctionTool, call: FunctionCall, canvas: Canvas) -> Outcome:
        try:
            result = await run_within(f"The tool {tool.name}", tool.run(call.input, canvas), tool.timeout)
            shown = digest(result, tool.name, call.id)
            for artifact_id, file in shown.files:
                await _keep(tool.name, file, canvas.artifact(artifact_id))
            return Done(shown.text)
        except CallPaused as paused:
            named = f"For {escape_invisible(call.caller)}: " if paused.authentication and call.caller else ""
            return Ask(named + paused.question, authentication=paused.authentication)
        except ToolError as error:
            return Failed(str(error) or f"{tool.name} failed.")
        except CallTimeout:
            return Failed(
                f"{tool.name} took longer than {tool.timeout:g} seconds and was stopped; its outcome is unknown."
            )
        except asyncio.CancelledError:
            if (current := asyncio.current_task()) and current.cancelling():
                raise
            return Failed(f"{tool.name} was cancelled by itself.")
        except Exception as error:
            if call.credentials:  # they may be in the trace
                logger.error("The tool %s failed with %s", tool.name, type(error).__name__)
            else:
                logger.exception("The tool %s failed", tool.name)
            return Failed(
                f"{tool.name} failed with an unexpected error. The operator's log has the details.{TO_THE_MODEL}"
            )

    def _services(self, call: FunctionCall) -> CallServices:
        async def record(kind: StepKind, name: str, value: str) -> None:
            await self._step(call, kind, value, name)

        async def label(text: str) -> None:
            await show(call.hide_credentials(text))

        show = paced_label(self.output)
        return CallServices(record, self.flushed, label, call.caller, self.writers, self._kept_values)

    def _kept_values(self, names: Collection[str]) -> list[str]:
        return kept_values((*self.earlier, self.output.transcript), names)

    async def _step(self, call: FunctionCall, kind: StepKind, value: str = "", name: str = "") -> None:
        await self.output.append_transcript((ToolStep(call.id, kind, value, name),))

    async def _ask(self, call: FunctionCall, ask: Ask, canvas: Canvas | None = None) -> Outcome:
        shown = visible_outcome(ask)
        if not isinstance(shown, Ask):
            if canvas:
                await canvas.undo()
            return await self._end(call, shown)
        number = _first_own_question(self.tools[call.name]) + canvas.question_count - 1 if canvas else APPROVAL
        await (self.on_question or self.record_question)(Question(call.id, number, shown, call.index))
        if canvas:
            canvas.release()
        return shown

    async def record_question(self, question: Question) -> None:
        """Record that a call waits for the user."""
        await self.output.append_transcript((question.step,))
        self.asked.append(question.call_id)
        await self.output.emit(to_tool_result(question.index, question.call_id, question.ask)[1])

    async def _end(self, call: FunctionCall, outcome: Outcome) -> Outcome:
        log_failure(call.name, outcome)
        result, event = to_tool_result(call.index, call.id, outcome)
        await self.output.emit(event)
        await self.output.append_transcript((result,) if result else ())
        return outcome


def needs_approval(tool: FunctionTool) -> bool:
    """Whether the user is asked before each call."""
    return tool.approval != "never"


def _first_own_question(tool: FunctionTool) -> int:
    """The number of the first question that the tool itself asks."""
    return APPROVAL + 1 if needs_approval(tool) else 0


def _without_credentials(call: FunctionCall, outcome: Outcome) -> Outcome:
    """The outcome without credentials, which tools and remote agents may repeat (rule 7)."""
    match outcome:
        case Done(content=content) | Failed(content=content):
            return replace(outcome, content=call.hide_credentials(content))
        case Ask(question=question):
            return replace(outcome, question=call.hide_credentials(question))
        case _:
            return outcome


async def _keep(tool: str, file: File, artifact: CanvasArtifact) -> None:
    try:
        await artifact.replace(file, name=file.name or None)
    except ToolError as error:
        raise ToolError(f"{tool} has run, but what it returned cannot be kept: {error}") from None


async def abandon(calls: Sequence[FunctionCall], tools: Mapping[str, FunctionTool]) -> None:
    """Abandon what the calls have started elsewhere: they are not run again (rule 4)."""
    for name in {call.name for call in calls} - tools.keys():
        logger.warning("Cannot end what a call of %s has started elsewhere: the tool is missing", name)
    given_up = [tool.abandon(call.record) for call in calls if (tool := tools.get(call.name)) and tool.abandon]
    for failure in await asyncio.gather(*given_up, return_exceptions=True):
        if isinstance(failure, Exception):
            logger.error("A call could not be abandoned", exc_info=failure)


async def _gather(calls: Sequence[Awaitable[Outcome]]) -> list[Outcome]:
    """All outcomes. If the turn is cancelled, every call ends first."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException as error:
        reason = error.args if isinstance(error, asyncio.CancelledError) else ()
        for task in tasks:
            task.cancel(*reason)
        await asyncio.wait(tasks)
        raise


def _missing_tool_message(call: FunctionCall, reason: str) -> str:
    if not reason:
        return f"The tool {call.name!r} no longer exists."
    begun = (
        " It had started, so its outcome is unknown."
        if call.interrupted or call.record.kept or call.record.changes
        else ""
    )
    return f"{call.name} could not continue: {reason}.{begun}{TO_THE_MODEL}"


def _unknown_outcome_message(tool: FunctionTool) -> str:
    return (
        f"The server was interrupted while {tool.name} ran, so its outcome is unknown: it may have been carried out. "
        "It is not run again by itself. Find out whether it was, or ask the user."
    )
