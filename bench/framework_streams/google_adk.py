"""The stream in Google's ADK: arguments by JSON path, as Gemini sends them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode  # type: ignore[attr-defined]
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from a2a_canvas.frameworks import adk_agent
from bench.pace import PIECE, Order

TEXT = "$.artifact.parts[0].text"
HEAD: dict[str, Any] = {
    "$.append": {"bool_value": False},
    "$.artifact.artifact_id": {"string_value": "text"},
    "$.artifact.parts[0].kind": {"string_value": "text"},
}


def response(part: types.Part, *, partial: bool) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[part]), partial=partial)


def piece(path: str, name: str | None = None, *, more: bool = True, **value: Any) -> LlmResponse:
    arg = types.PartialArg(json_path=path, will_continue=more and path == TEXT, **value)
    call = types.FunctionCall(id="u1", name=name, partial_args=[arg], will_continue=more)
    return response(types.Part(function_call=call), partial=True)


class Model(BaseLlm):
    """The model."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        if any(part.function_response for part in parts):
            yield response(types.Part(text="Done."), partial=False)
            return
        order = Order.read(next(part.text for part in parts if part.text) or "")
        for path, value in HEAD.items():
            yield piece(path, "artifact_update" if path == "$.append" else None, **value)
        async for text in order.pieces():
            yield piece(TEXT, string_value=text)
        yield piece(TEXT, more=False, string_value="")
        artifact = {"artifact_id": "text", "parts": [{"kind": "text", "text": PIECE * order.count}]}
        args = {"append": False, "artifact": artifact}
        call = types.FunctionCall(id="u1", name="artifact_update", args=args)
        yield response(types.Part(function_call=call), partial=False)


agent = adk_agent(LlmAgent(name="writer", model=Model(model="fake")))


async def artifact_update(append: bool, artifact: dict[str, Any]) -> str:
    """Write."""
    return "Written."


async def alone(order: Order) -> None:
    """Consume the stream with the framework alone."""
    sessions = InMemorySessionService()
    session = await sessions.create_session(app_name="alone", user_id="user")
    writer = LlmAgent(name="writer", model=Model(model="fake"), tools=[artifact_update])
    runner = Runner(app_name="alone", agent=writer, session_service=sessions)
    message = types.Content(role="user", parts=[types.Part(text=str(order))])
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=message, run_config=config):
        pass
