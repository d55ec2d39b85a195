"""An agent of pydantic-ai as the loop. Only this module imports pydantic_ai.

Rule 1: a model request and a tool call are steps, by the framework's durable-execution interface: none that is recorded
        is made again after a crash. Deltas are shown while the step runs.
Rule 2: calls that the framework defers (approvals, external tools, `ask_user`) are asked outside its run, as one
        question; the next run has the answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import pydantic_ai as pa
from pydantic_ai import durable_exec as durable
from pydantic_ai import messages as m
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.toolsets import AbstractToolset, DynamicToolset, FunctionToolset
from pydantic_core import to_jsonable_python

from a2a_canvas.server.agent.loops.agent_function import AgentDefinitionError, AgentFunction
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.frameworks import canvas_tools as ours
from a2a_canvas.server.frameworks.message_history import MessageHistory
from a2a_canvas.tools.functions.results import File, ToolError
from a2a_canvas.tools.tool import Done, Failed, Outcome, to_json

MESSAGES = m.ModelMessagesTypeAdapter
KEY = "pydantic_ai"
_SHOWN_OTHERWISE = {
    *("part_delta", "part_end", "final_result"),
    *("function_tool_call", "function_tool_result", "output_tool_call", "output_tool_result"),
    *("deferred_tool_requests", "deferred_tool_results"),
}
"""The kinds of events that the steps and the reply show, or that end a part."""


def pydantic_ai_agent(agent: pa.Agent[Any, Any], *, deps: Any = None) -> AgentFunction:
    """An agent of pydantic-ai, for `create_app(loop=…)`, or as `agent` in agent.py.

    Args:
        agent: with its model and tools. Its toolsets need an `id`, which names their steps.
        deps: its dependencies; or a function of the turn that returns them.

    Raises:
        AgentDefinitionError: it is no such agent, a toolset has no `id`, or a tool has the name of one of ours.

    >>> from pydantic_ai import Agent
    >>> reef = pydantic_ai_agent(Agent("test", name="reef"))
    """
    ours.check_agent(agent, AbstractAgent, "pydantic_ai_agent")
    for toolset in agent.toolsets:
        toolset.apply(_check_id)
    ours.check_names(_names_of(agent))
    name = agent.name or "agent"
    deps_of = deps if callable(deps) else lambda turn: deps
    run, edit = (partial(each, agent, name, deps_of) for each in (_run, _edit))
    return AgentFunction(name, run, editor=edit, package="pydantic-ai-slim")


def _names_of(agent: pa.Agent[Any, Any]) -> Iterable[str]:
    """The names of its tools, as far as they are known without a run."""
    return [name for each in agent.toolsets if isinstance(each, FunctionToolset) for name in each.tools]


def _check_id(toolset: AbstractToolset[Any]) -> None:
    if isinstance(toolset, FunctionToolset | DynamicToolset) and toolset.id is None:
        kind = type(toolset).__name__
        raise AgentDefinitionError(f"A toolset has no id, which names its steps. Write {kind}(…, id='tools').")


async def _run(agent: pa.Agent[Any, Any], name: str, deps: Callable[[Turn], Any], turn: Turn) -> None:
    ours.check_offered(_names_of(agent), turn)
    history = MessageHistory(turn, KEY, is_file=lambda value: value.get("kind") == "binary")
    messages = await _load(turn, history)
    answers: pa.DeferredToolResults | None = None
    while True:
        result: pa.AgentRunResult[Any] = await agent.run(
            None if answers else _prompt(turn),
            message_history=messages,
            deferred_tool_results=answers,
            output_type=[agent.output_type, pa.DeferredToolRequests],
            deps=deps(turn),
            instructions=await ours.instructions_for(turn),
            toolsets=[_offered_tools(turn)],
            capabilities=[TurnDurability(turn, name)],
        )
        messages = result.all_messages()
        if not isinstance(result.output, pa.DeferredToolRequests):
            break
        answers = await _ask(turn, result.output)
    if not isinstance(result.output, str):
        await turn.say(to_json(to_jsonable_python(result.output)))
    await history.save(MESSAGES.dump_python(messages, mode="json"))


async def _edit(agent: pa.Agent[Any, Any], name: str, deps: Callable[[Turn], Any], turn: Turn) -> None:
    """Write the new text of a passage, which streams."""
    assert turn.edit
    ours.check_offered(_names_of(agent), turn)
    result: pa.AgentRunResult[Any] = await agent.run(
        turn.edit.user_prompt,
        output_type=[str, pa.DeferredToolRequests],
        deps=deps(turn),
        instructions=turn.edit.system_prompt,
        toolsets=[_offered_tools(turn)],
        capabilities=[TurnDurability(turn, name)],
    )
    if isinstance(result.output, pa.DeferredToolRequests):
        raise ToolError(ours.NO_QUESTIONS)


class TurnDurability(durable.BaseDurabilityCapability[Any]):
    """Makes model requests and tool calls steps of a turn (rule 1)."""

    engine_spec = durable.DurabilityEngineSpec(
        engine_name="a2a-canvas",
        durable_unit_noun="step",
        durable_container_noun="turn",
        codec=durable.JSON_CODEC,
        journal_discovery=False,
    )
    in_durable_context = True

    def __init__(self, turn: Turn, name: str) -> None:
        self._turn = turn
        super().__init__(name=name, event_stream_handler=_AnswerStream(turn).show)

    def get_durable_operation_backend(self) -> durable.DurableOperationBackend[None]:
        config = durable.RoleBasedOperationConfig[None](model=None, event=None, capability=None, tool=None)
        backend = _Backend(agent_name=self.name, default_model_id=self.default_model_id, config=config)
        backend.turn = self._turn
        return backend


class _Backend(durable.JournalCallableOperationBackend[None]):
    turn: Turn

    async def execute(
        self,
        *,
        operation_id: object,
        name: str,
        body: Callable[[], Awaitable[object]],
        cache_key: tuple[object, ...],
        config: None,
    ) -> object:
        match operation_id:
            case durable.EventStreamHandlerId():  # the steps of the calls show their results
                return await body()
            case durable.ModelRequestId():
                return await self.turn.model.respond(name, partial(self._request, body))
            case durable.ToolsetCallToolId():
                tool, given, context = cast(tuple[str, dict[str, Any], pa.RunContext[Any]], cache_key[:3])
                call_id = context.tool_call_id or name
                key = "approved" if context.tool_call_approved else ""
                return await self.turn.model.run_call(call_id, tool, given, body, key=key, outcome_of=_outcome_of)
            case _:
                return await self.turn.once(name, body)

    async def _request(self, body: Callable[[], Awaitable[object]]) -> object:
        response = cast(dict[str, Any], await body())
        usage = response["usage"]
        cached = usage.get("cache_read_tokens", 0)
        self.turn.spend(usage.get("input_tokens", 0) - cached, usage.get("output_tokens", 0), cached)
        return response


def _outcome_of(recorded: object) -> Outcome | None:
    """What clients see of the recorded result of a call."""
    match recorded:
        case {"kind": "approval_required" | "call_deferred"}:
            return None
        case {"kind": "model_retry", "message": str(message)}:
            return Failed(message)
        case {"result": {"content": content}} | {"result": content}:
            return Done(content if isinstance(content, str) else to_json(content))
        case _:
            return Failed("The call failed.")


@dataclass(slots=True)
class _AnswerStream:
    """Shows the answers of the model while they stream."""

    turn: Turn
    _calls: dict[int, str] = field(default_factory=dict)

    async def show(self, context: pa.RunContext[Any], events: AsyncIterable[pa.AgentStreamEvent]) -> None:
        async for event in events:
            match event:
                case (
                    pa.PartStartEvent(part=m.TextPart(content=text))
                    | pa.PartDeltaEvent(delta=m.TextPartDelta(content_delta=text))
                ):
                    await self.turn.stream(text)
                case (
                    pa.PartStartEvent(part=m.ThinkingPart(content=str(text)))
                    | pa.PartDeltaEvent(delta=m.ThinkingPartDelta(content_delta=str(text)))
                ):
                    await self.turn.think(text)
                case pa.PartStartEvent(index=index, part=pa.ToolCallPart() as part):
                    self._calls[index] = part.tool_call_id
                    await self.turn.model.begin_call(part.tool_call_id, part.tool_name)
                    await self._add_input(index, part.args)
                case pa.PartDeltaEvent(index=index, delta=m.ToolCallPartDelta(args_delta=args)):
                    await self._add_input(index, args)
                case pa.PartEndEvent(part=pa.ToolCallPart(tool_call_id=call_id)):
                    await self.turn.model.end_call(call_id)
                case pa.PartStartEvent(part=other):
                    ours.log_unknown("pydantic-ai", other.part_kind)
                case _ if event.event_kind not in _SHOWN_OTHERWISE:
                    ours.log_unknown("pydantic-ai", event.event_kind)

    async def _add_input(self, index: int, args: str | dict[str, Any] | None) -> None:
        if args:
            await self.turn.model.add_input(self._calls[index], args if isinstance(args, str) else to_json(args))


def _offered_tools(turn: Turn) -> FunctionToolset[Any]:
    def wrap(offered: ours.OfferedTool) -> pa.Tool[Any]:
        async def call(context: pa.RunContext[Any], **given: Any) -> str:
            if offered.asks:
                raise pa.CallDeferred
            return await offered.call(context.tool_call_id or "", given)

        schema = dict(offered.input_schema)
        tool = pa.Tool.from_schema(call, offered.name, offered.description, schema, takes_ctx=True)
        tool.requires_approval = offered.needs_approval
        return tool

    return FunctionToolset([wrap(each) for each in ours.offered_tools(turn)])


async def _ask(turn: Turn, requests: pa.DeferredToolRequests) -> pa.DeferredToolResults:
    asked = [
        ours.PendingCall(call.tool_call_id, call.tool_name, call.args_as_dict(), call in requests.approvals)
        for call in (*requests.approvals, *requests.calls)
    ]
    results = pa.DeferredToolResults()
    for call, answer in zip(asked, await ours.ask_all(turn, asked), strict=True):
        if call.approval:
            results.approvals[call.call_id] = answer.approves or pa.ToolDenied(answer.refusal)
        else:
            results.calls[call.call_id] = answer.text
    return results


def _prompt(turn: Turn) -> list[m.UserContent]:
    return [turn.message.content, *map(_attachment, turn.message.files)]


def _attachment(file: File) -> m.UserContent:
    if file.content is not None:
        return pa.BinaryContent(file.content, media_type=file.media_type)
    return (pa.ImageUrl if file.media_type.startswith("image/") else pa.DocumentUrl)(file.url)


async def _load(turn: Turn, history: MessageHistory) -> list[m.ModelMessage]:
    if (kept := await history.load(MESSAGES.validate_python)) is not None:
        return kept
    return [
        m.ModelRequest.user_text_prompt(each["content"])
        if each["role"] == "user"
        else m.ModelResponse([m.TextPart(each["content"])])
        for each in turn.history.pairs()
    ]
