"""An agent of Google's ADK as the loop. Only this module imports google.adk.

Rule 1: each run works with a copy of the agent and its sub-agents, whose models and tools are steps. What a tool does
        to the session is recorded with its result.
Rule 2: a partial event shows text and arguments early; the response that completes it is not shown again.
Rule 3: long-running tools, confirmations and `ask_user` are asked outside the framework's run, as one question.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.events import Event, EventActions
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.frameworks import canvas_tools as ours
from a2a_canvas.server.frameworks.message_history import MessageHistory
from a2a_canvas.server.frameworks.partial_arguments import ArgumentWriter, UnorderedArguments, parse_path
from a2a_canvas.tools.functions.results import File, ToolError
from a2a_canvas.tools.tool import Done, Outcome, to_json

logging.getLogger("google_adk.google.adk.telemetry._metrics").addFilter(
    lambda record: not str(record.msg).startswith("Skipping missing token usage metadata")
)  # of each request, if a model counts no tokens

KEY = "google_adk"
APP = "a2a-canvas"
CONFIRMATION = "adk_request_confirmation"
HANDOVER = "transfer_to_agent"
_SHOWN = {"text", "thought", "thought_signature", "function_call"}
"""What clients see of a part."""


def adk_agent(agent: BaseAgent) -> AgentFunction:
    """An agent of ADK, for `create_app(loop=…)`, or as `agent` in agent.py.

    Args:
        agent: the root agent, with its model, tools and sub-agents.

    Raises:
        AgentDefinitionError: it is no such agent, or a tool has the name of one of ours.

    >>> from google.adk.agents import LlmAgent
    >>> reef = adk_agent(LlmAgent(name="reef", model="gemini-flash-latest"))
    """
    ours.check_agent(agent, BaseAgent, "adk_agent")
    for each in _tree(agent):
        ours.check_names(_names_of(each))
    return AgentFunction(agent.name, partial(_run, agent), editor=partial(_edit, agent), package="google-adk")


async def _run(agent: BaseAgent, turn: Turn) -> None:
    run = _AdkRun(_with_steps(agent, turn, await ours.instructions_for(turn)), turn)
    history = MessageHistory(turn, KEY, is_file=lambda value: "inlineData" in value)
    for event in await _load(turn, history):
        await run.append(event)
    message: types.Content | None = _message(turn)
    while message:
        pending = await run.carry_out(message)
        *given, message = await _ask(turn, pending) if pending else (None,)
        for content in given:
            await run.append(Event(author="user", content=content))
    await history.save([_dump(event) for event in await run.events()])


async def _edit(agent: BaseAgent, turn: Turn) -> None:
    """Write the new text of a passage, which streams."""
    assert turn.edit
    run = _AdkRun(_with_steps(agent, turn, turn.edit.system_prompt), turn)
    if await run.carry_out(_content("user", turn.edit.user_prompt)):
        raise ToolError(ours.NO_QUESTIONS)


class _AdkRun:
    """The session of one turn, and the runner."""

    def __init__(self, agent: BaseAgent, turn: Turn) -> None:
        self._sessions = InMemorySessionService()
        self._runner = Runner(app_name=APP, agent=agent, session_service=self._sessions)
        self._place: dict[str, Any] = {"app_name": APP, "user_id": turn.caller or "user", "session_id": turn.thread_id}

    async def _session(self) -> Session:
        found = await self._sessions.get_session(**self._place)
        return found or await self._sessions.create_session(**self._place)

    async def append(self, event: Event) -> None:
        await self._sessions.append_event(await self._session(), event)

    async def events(self) -> Sequence[Event]:
        return (await self._session()).events

    async def carry_out(self, message: types.Content) -> Sequence[types.FunctionCall]:
        """Run the agent with a message. Returns the calls whose results it waits for."""
        session, pending = await self._session(), dict[str, types.FunctionCall]()
        async for event in self._runner.run_async(user_id=session.user_id, session_id=session.id, new_message=message):
            asked = event.long_running_tool_ids or ()
            pending |= {call.id: call for call in event.get_function_calls() if call.id and call.id in asked}
            if event.error_code:
                raise RuntimeError(f"{event.error_code}: {event.error_message}")
        return tuple(pending.values())


def _with_steps(agent: BaseAgent, turn: Turn, instructions: str) -> BaseAgent:
    """A copy of the agent for one run (rule 1)."""
    made = agent.clone()
    for original, each in zip(_tree(agent), _tree(made), strict=True):
        if isinstance(original, LlmAgent) and isinstance(each, LlmAgent):
            ours.check_offered(_names_of(original), turn)
            each.model = _SteppedLlm(original.canonical_model, turn, f"{each.name} model", instructions)
            each.tools = [_SteppedTools(original, turn)]
    return made


def _names_of(agent: BaseAgent) -> Iterable[str]:
    """The names of its tools, as far as they are known without a run."""
    tools = [each for each in getattr(agent, "tools", ()) if not isinstance(each, BaseToolset)]
    return [str(getattr(each, "name", None) or getattr(each, "__name__", each)) for each in tools]


def _tree(agent: BaseAgent) -> Iterable[BaseAgent]:
    yield agent
    for each in agent.sub_agents:
        yield from _tree(each)


class _SteppedLlm(BaseLlm):
    """A model whose answers are steps of a turn, shown while they stream."""

    def __init__(self, model: BaseLlm, turn: Turn, step: str, instructions: str) -> None:
        super().__init__(model=model.model)
        self._given = (model, turn, step, instructions)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        model, turn, step, instructions = self._given
        llm_request.append_instructions([instructions])

        async def answer() -> Any:
            shown = _ResponseStream(turn)
            async for response in model.generate_content_async(llm_request, stream=True):
                await shown.take(response)
            return _dump(shown.whole())

        yield LlmResponse.model_validate_json(json.dumps(await turn.model.respond(step, answer)))


@dataclass(slots=True)
class _ResponseStream:
    """Shows an answer while it streams (rule 2)."""

    turn: Turn
    _completed: list[LlmResponse] = field(default_factory=list)
    _text_shown: bool = False
    _writers: dict[str, ArgumentWriter] = field(default_factory=dict)
    _shown: set[str] = field(default_factory=set)

    async def take(self, response: LlmResponse) -> None:
        for part in (response.content and response.content.parts) or ():
            if part.text and (response.partial or not self._text_shown):
                await (self.turn.think if part.thought else self.turn.stream)(part.text)
            if call := part.function_call:
                call.id = call.id or f"adk-{uuid4()}"
                await self._show_call(call)
            for name in part.model_dump(exclude_none=True).keys() - _SHOWN:
                ours.log_unknown("ADK", name)
        self._text_shown = bool(response.partial)
        if not response.partial:
            self._completed.append(response)

    async def _show_call(self, call: types.FunctionCall) -> None:
        call_id = call.id or ""
        if call_id in self._shown:
            return
        if call.name == HANDOVER:
            self._shown.add(call_id)
            await self.turn.progress(f"Handing over to {(call.args or {}).get('agent_name')}…")
            return
        if call_id not in self._writers:
            self._writers[call_id] = ArgumentWriter()
            await self.turn.model.begin_call(call_id, call.name or "")
        await self.turn.model.add_input(call_id, self._text_of(call))
        if not call.will_continue:
            self._shown.add(call_id)
            await self.turn.model.end_call(call_id)

    def _text_of(self, call: types.FunctionCall) -> str:
        """The JSON text that a call adds to what is shown of its arguments."""
        writer, text = self._writers[call.id or ""], ""
        if not call.partial_args and not call.will_continue and not writer.begun:
            return to_json(call.args or {})
        for each in call.partial_args or ():
            values = (each.string_value, each.number_value, each.bool_value)
            value = next((value for value in values if value is not None), None)
            with suppress(UnorderedArguments):  # then the text is no JSON, and the call is shown again when it runs
                text += writer.add(parse_path(each.json_path or ""), value, more=bool(each.will_continue))
        return text + ("" if call.will_continue else writer.end())

    def whole(self) -> LlmResponse:
        """The answer as one response.

        Raises:
            ConnectionError: the model failed.
        """
        if not self._completed or self._completed[-1].error_code:
            raise ConnectionError(self._completed[-1].error_message if self._completed else "The answer broke off.")
        last = self._completed[-1]
        if usage := last.usage_metadata:
            cached = usage.cached_content_token_count or 0
            tokens_in = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
            tokens_out = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
            self.turn.spend(tokens_in - cached, tokens_out, cached)
        parts = [part for each in self._completed for part in (each.content and each.content.parts) or ()]
        return last.model_copy(update={"content": types.Content(role="model", parts=parts)})


class _SteppedTools(BaseToolset):
    """The tools of an agent, whose calls are steps, and ours."""

    def __init__(self, agent: LlmAgent, turn: Turn) -> None:
        super().__init__()
        self._agent = agent
        self._turn = turn

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        own = [copy.copy(tool) for tool in await self._agent.canonical_tools(readonly_context)]
        for tool in own:
            tool.run_async = partial(self._run, tool, type(tool).run_async)  # type: ignore[method-assign]
        return [*own, *map(_OfferedTool, ours.offered_tools(self._turn))]

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        for each in self._agent.tools:
            if isinstance(each, BaseToolset):
                await each.process_llm_request(tool_context=tool_context, llm_request=llm_request)

    async def _run(self, tool: BaseTool, carry_out: Any, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        ran = False

        async def run() -> list[Any]:
            nonlocal ran
            ran, result = True, await carry_out(tool, args=args, tool_context=tool_context)
            return [to_jsonable_python(result, fallback=str), _dump(tool_context.actions)]

        def outcome_of(recorded: list[Any]) -> Outcome | None:
            waits = tool.is_long_running or recorded[1].get("requestedToolConfirmations")
            return None if waits else Done(recorded[0] if isinstance(recorded[0], str) else to_json(recorded[0]))

        call_id, key = tool_context.function_call_id or tool.name, "confirmed" if tool_context.tool_confirmation else ""
        result, actions = await self._turn.model.run_call(call_id, tool.name, args, run, key=key, outcome_of=outcome_of)
        if not ran:
            _repeat(actions, tool_context)
        return result


def _repeat(actions: Any, context: ToolContext) -> None:
    """Do to the session what a recorded call did (rule 1)."""
    made = EventActions.model_validate_json(json.dumps(actions))
    context.state.update(made.state_delta)
    for name in made.model_fields_set - {"state_delta"}:
        setattr(context.actions, name, getattr(made, name))


class _OfferedTool(BaseTool):
    def __init__(self, tool: ours.OfferedTool) -> None:
        super().__init__(name=tool.name, description=tool.description, is_long_running=tool.asks)
        self._tool = tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        schema = dict(self._tool.input_schema)
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        return self._tool.needs_approval

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> str | None:
        return None if self._tool.asks else await self._tool.call(tool_context.function_call_id or "", args)


async def _ask(turn: Turn, calls: Iterable[types.FunctionCall]) -> Sequence[types.Content]:
    """Ask what the framework waits for, all at once (rule 3).

    Returns:
        Messages to the agent. Confirmations are one of their own: the framework drops other results beside them.
    """
    waiting = [(call, _pending(call)) for call in calls]
    results: list[types.Part] = []
    confirmations: list[types.Part] = []
    answers = await ours.ask_all(turn, [pending for _, pending in waiting])
    for (call, pending), answer in zip(waiting, answers, strict=True):
        response = {"confirmed": answer.approves} if pending.approval else {"result": answer.text}
        given = types.FunctionResponse(id=call.id, name=call.name, response=response)
        (confirmations if pending.approval else results).append(types.Part(function_response=given))
    return [types.Content(role="user", parts=parts) for parts in (results, confirmations) if parts]


def _pending(call: types.FunctionCall) -> ours.PendingCall:
    args: Mapping[str, Any] = call.args or {}
    if call.name == CONFIRMATION:
        original = args["originalFunctionCall"]
        return ours.PendingCall(original["id"], original["name"], original.get("args", {}), approval=True)
    return ours.PendingCall(call.id or "", call.name or "", args)


def _message(turn: Turn) -> types.Content:
    parts = [types.Part(text=turn.message.content), *map(_attachment, turn.message.files)]
    return types.Content(role="user", parts=parts)


def _attachment(file: File) -> types.Part:
    if file.content is not None:
        return types.Part.from_bytes(data=file.content, mime_type=file.media_type)
    return types.Part.from_uri(file_uri=file.url, mime_type=file.media_type)


async def _load(turn: Turn, history: MessageHistory) -> Iterable[Event]:
    if (
        kept := await history.load(lambda kept: [Event.model_validate_json(json.dumps(each)) for each in kept])
    ) is not None:
        return kept
    return [
        Event(author="user" if each["role"] == "user" else "agent", content=_content(**each))
        for each in turn.history.pairs()
    ]


def _content(role: str, content: str) -> types.Content:
    return types.Content(role="user" if role == "user" else "model", parts=[types.Part(text=content)])


def _dump(value: BaseModel) -> Any:
    return json.loads(value.model_dump_json(exclude_none=True, by_alias=True))
