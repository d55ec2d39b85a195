"""An agent of the OpenAI Agents SDK as the loop. Only this module imports agents.

Rule 1: each run works with copies of the agent and of those it hands over to, whose model and tools are steps.
Rule 2: approvals and `ask_user` are the framework's interruptions. They are asked outside its run, as one question.
Rule 3: nothing is traced unless `run_config` says so: the framework would send the conversation to its vendor.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import agents as sdk
from agents.models.interface import Model
from agents.tool_context import ToolContext
from openai.types import responses as r
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.frameworks import canvas_tools as ours
from a2a_canvas.server.frameworks.message_history import MessageHistory
from a2a_canvas.tools.ask_user import ask_user
from a2a_canvas.tools.functions.results import File, ToolError
from a2a_canvas.tools.tool import to_json

KEY = "openai_agents"
_RESPONSE: TypeAdapter[sdk.ModelResponse] = TypeAdapter(sdk.ModelResponse)
_SHOWN_OTHERWISE = (
    *(r.ResponseQueuedEvent, r.ResponseCreatedEvent, r.ResponseInProgressEvent),
    *(r.ResponseOutputItemAddedEvent, r.ResponseOutputItemDoneEvent, r.ResponseFunctionCallArgumentsDeltaEvent),
    *(r.ResponseContentPartAddedEvent, r.ResponseContentPartDoneEvent, r.ResponseOutputTextAnnotationAddedEvent),
    *(
        r.ResponseTextDoneEvent,
        r.ResponseRefusalDeltaEvent,
        r.ResponseRefusalDoneEvent,
        r.ResponseFunctionCallArgumentsDoneEvent,
    ),
    *(r.ResponseReasoningSummaryPartAddedEvent, r.ResponseReasoningSummaryPartDoneEvent),
    *(r.ResponseReasoningSummaryTextDoneEvent, r.ResponseReasoningTextDoneEvent),
)
"""The events of what other events show."""
_UNTRACED = sdk.RunConfig(tracing_disabled=True)


def openai_agent(
    agent: sdk.Agent[Any], *, context: Any = None, run_config: sdk.RunConfig = _UNTRACED, max_turns: int = 50
) -> AgentFunction:
    """An agent of the OpenAI Agents SDK, for `create_app(loop=…)`, or as `agent` in agent.py.

    Args:
        context: what its tools get; or a function of the turn that returns it.
        max_turns: requests to the model for one message.

    Raises:
        AgentDefinitionError: it is no such agent, or a tool has the name of one of ours.

    >>> from agents import Agent
    >>> reef = openai_agent(Agent(name="reef", instructions="You know tides."))
    """
    ours.check_agent(agent, sdk.Agent, "openai_agent")
    ours.check_names(each.name for each in agent.tools)
    make = context if callable(context) else lambda turn: context

    async def carry_out(agents: _SteppedAgents, given: Any, context: Any) -> sdk.RunResult:
        try:
            return await sdk.Runner.run(
                agents.copy(agent), given, context=context, run_config=run_config, max_turns=max_turns
            )
        except sdk.ModelRefusalError as error:
            await agents.turn.decline(error.refusal)
            raise

    async def run(turn: Turn) -> None:
        agents, context = _SteppedAgents(turn, run_config, await ours.instructions_for(turn)), make(turn)
        history = MessageHistory(turn, KEY, is_file=lambda value: value.get("type") in ("input_image", "input_file"))
        loaded = await history.load(list)
        given: Any = [*(turn.history.pairs() if loaded is None else loaded), _message(turn)]
        while (result := await carry_out(agents, given, context)).interruptions:
            given = await agents.ask(result)
        if not isinstance(result.new_items[-1], sdk.MessageOutputItem):  # a tool's result is the final output
            await turn.say(_as_text(result.final_output))
        await history.save(to_jsonable_python(result.to_input_list()))

    async def edit(turn: Turn) -> None:
        assert turn.edit
        agents = _SteppedAgents(turn, run_config, turn.edit.system_prompt)
        if (await carry_out(agents, turn.edit.user_prompt, make(turn))).interruptions:
            raise ToolError(ours.NO_QUESTIONS)

    return AgentFunction(agent.name, run, editor=edit, package="openai-agents")


class _SteppedAgents:
    """Copies agents for one run (rule 1)."""

    def __init__(self, turn: Turn, config: sdk.RunConfig, instructions: str) -> None:
        self.turn = turn
        self._config = config
        self._instructions = instructions
        self._copies: dict[int, sdk.Agent[Any]] = {}
        self._answers: dict[str, str] = {}

    def copy(self, agent: sdk.Agent[Any]) -> sdk.Agent[Any]:
        """The copy of an agent, which is one even if agents hand over to each other."""
        if id(agent) not in self._copies:
            self._copies[id(agent)] = made = agent.clone()
            made.model = _SteppedModel(self._model_of(agent), self.turn, f"{agent.name} model")
            made.output_type = None if self.turn.edit else made.output_type  # a passage is text
            made.handoffs = [self._hand_over(each) for each in agent.handoffs]
            made.get_all_tools = partial(self._tools, agent)  # type: ignore[method-assign]
            made.get_system_prompt = partial(self._prompt, agent)  # type: ignore[method-assign]
        return self._copies[id(agent)]

    def _model_of(self, agent: sdk.Agent[Any]) -> Model:
        model = self._config.model or agent.model
        return model if isinstance(model, Model) else self._config.model_provider.get_model(model)

    def _hand_over(self, target: sdk.Agent[Any] | sdk.Handoff[Any, Any]) -> sdk.Agent[Any] | sdk.Handoff[Any, Any]:
        if isinstance(target, sdk.Agent):
            return self.copy(target)

        async def invoke(context: sdk.RunContextWrapper[Any], given: str) -> sdk.Agent[Any]:
            return self.copy(await target.on_invoke_handoff(context, given))

        return replace(target, on_invoke_handoff=invoke)

    async def _tools(self, agent: sdk.Agent[Any], context: sdk.RunContextWrapper[Any]) -> list[sdk.Tool]:
        tools = await agent.get_all_tools(context)
        ours.check_offered((each.name for each in tools), self.turn)
        own = [self._step(tool) if isinstance(tool, sdk.FunctionTool) else tool for tool in tools]
        return [*own, *map(self._offer, ours.offered_tools(self.turn))]

    async def _prompt(self, agent: sdk.Agent[Any], context: sdk.RunContextWrapper[Any]) -> str:
        return "\n\n".join(filter(None, (await agent.get_system_prompt(context), self._instructions)))

    def _step(self, tool: sdk.FunctionTool) -> sdk.FunctionTool:
        async def invoke(context: ToolContext[Any], given: str) -> Any:
            async def run() -> Any:
                return to_jsonable_python(await tool.on_invoke_tool(context, given), fallback=str)

            return await self.turn.model.run_call(context.tool_call_id, tool.name, _parse(given), run)

        return replace(tool, on_invoke_tool=invoke)

    def _offer(self, tool: ours.OfferedTool) -> sdk.FunctionTool:
        async def invoke(context: ToolContext[Any], given: str) -> str:
            call_id = context.tool_call_id
            return self._answers[call_id] if tool.asks else await tool.call(call_id, _parse(given))

        schema, waits = dict(tool.input_schema), tool.needs_approval or tool.asks
        return sdk.FunctionTool(tool.name, tool.description, schema, invoke, False, needs_approval=waits)

    async def ask(self, result: sdk.RunResult) -> sdk.RunState[Any]:
        """Ask what interrupts the run, all at once (rule 2)."""
        state, items = result.to_state(), result.interruptions
        calls = [
            ours.PendingCall(
                each.call_id or "", each.name or "", _parse(each.arguments or ""), each.name != ask_user.name
            )
            for each in items
        ]
        for item, call, answer in zip(items, calls, await ours.ask_all(self.turn, calls), strict=True):
            self._answers[call.call_id] = answer.text
            if not call.approval or answer.approves:
                state.approve(item)
            else:
                state.reject(item, rejection_message=answer.refusal)
        return state


class _SteppedModel(Model):
    """A model whose answers are steps of a turn, shown while they stream."""

    def __init__(self, model: Model, turn: Turn, step: str) -> None:
        self._model = model
        self._turn = turn
        self._step = step

    async def get_response(self, *given: Any, **more: Any) -> sdk.ModelResponse:
        handoffs = {each.tool_name for each in more["handoffs"]}

        async def answer() -> Any:
            stream = self._model.stream_response(*given, **more)
            return _RESPONSE.dump_python(
                await _OutputStream(self._turn, handoffs).show(stream), mode="json", by_alias=True, exclude_unset=True
            )

        return _RESPONSE.validate_python(await self._turn.model.respond(self._step, answer))

    def stream_response(self, *given: Any, **more: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("The adapter runs agents without streaming: it shows the model's stream itself.")


@dataclass(slots=True)
class _OutputStream:
    """Shows an answer while it streams.

    Attributes:
        hidden: names of tools whose calls hand over to another agent.
    """

    turn: Turn
    hidden: Set[str]
    _ids: dict[int, str] = field(default_factory=dict)
    _written: set[int] = field(default_factory=set)

    async def show(self, events: AsyncIterator[r.ResponseStreamEvent]) -> sdk.ModelResponse:
        async for event in events:
            if isinstance(event, r.ResponseCompletedEvent):
                return _response(self.turn, event.response)
            await self._take(event)
        raise ConnectionError("The model's answer broke off.")

    async def _take(self, event: r.ResponseStreamEvent) -> None:
        model = self.turn.model
        match event:
            case r.ResponseTextDeltaEvent(delta=text):
                await self.turn.stream(text)
            case r.ResponseReasoningSummaryTextDeltaEvent(delta=text) | r.ResponseReasoningTextDeltaEvent(delta=text):
                await self.turn.think(text)
            case r.ResponseOutputItemAddedEvent(item=r.ResponseFunctionToolCall() as call, output_index=index):
                if call.name not in self.hidden:
                    self._ids[index] = call.call_id
                    await model.begin_call(call.call_id, call.name)
            case r.ResponseFunctionCallArgumentsDeltaEvent(delta=piece, output_index=index) if index in self._ids:
                self._written.add(index)
                await model.add_input(self._ids[index], piece)
            case r.ResponseOutputItemDoneEvent(item=r.ResponseFunctionToolCall() as call, output_index=index):
                if index in self._ids and index not in self._written:
                    await model.add_input(call.call_id, call.arguments)
                await model.end_call(call.call_id)
            case _ if not isinstance(event, _SHOWN_OTHERWISE):
                ours.log_unknown("the OpenAI Agents SDK", event.type)


def _response(turn: Turn, response: r.Response) -> sdk.ModelResponse:
    usage = sdk.Usage()
    if told := response.usage:
        cached = told.input_tokens_details.cached_tokens
        turn.spend(told.input_tokens - cached, told.output_tokens, cached)
        usage = sdk.Usage(
            1, told.input_tokens, told.input_tokens_details, told.output_tokens, told.output_tokens_details
        )
    return sdk.ModelResponse(response.output, usage, response.id)


def _as_text(output: Any) -> str:
    return output if isinstance(output, str) else to_json(to_jsonable_python(output, fallback=str))


def _parse(given: str) -> dict[str, Any]:
    try:
        found = json.loads(given or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _message(turn: Turn) -> dict[str, Any]:
    text = {"type": "input_text", "text": turn.message.content}
    return {"role": "user", "content": [text, *map(_attachment, turn.message.files)]}


def _attachment(file: File) -> dict[str, str]:
    kind, data = file.media_type, b64encode(file.content or b"").decode()
    url = file.url or f"data:{kind};base64,{data}"
    if kind.startswith("image/"):
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return (
        {"type": "input_file", "file_url": url}
        if file.url
        else {"type": "input_file", "filename": file.name, "file_data": url}
    )
