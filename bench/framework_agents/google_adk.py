"""The agent in Google's ADK."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from a2a_canvas.frameworks import adk_agent
from bench.framework_agents import ledger


async def note(task: str, number: int) -> str:
    """Take a note."""
    return await ledger.note(task, number)


def response(*parts: types.Part, partial: bool = False) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[*parts]), partial=partial)


def call(name: str, args: dict[str, object], call_id: str) -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=call_id, name=name, args=args))


class Model(BaseLlm):
    """The model."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        task = next(part.text for part in parts if part.text) or ""
        number = sum(bool(part.function_response and part.function_response.name == "note") for part in parts)
        ledger.enter(task, 2 * number)
        said = ledger.words(number) if number < ledger.ROUNDS else [ledger.CLOSING]
        for word in said:
            await ledger.pause()
            yield response(types.Part(text=word), partial=True)
        text = types.Part(text="".join(said))
        if number == ledger.ROUNDS:
            yield response(text)
            return
        update = call("artifact_update", json.loads(ledger.update(number)), f"u{number}")
        yield response(text, update, call("note", {"task": task, "number": number}, f"n{number}"))


agent = adk_agent(LlmAgent(name="notes", model=Model(model="fake"), tools=[note]))
