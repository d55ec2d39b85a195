"""An agent of Google's ADK that writes notes about tides.

.venv/bin/pip install 'a2a-canvas[google-adk]'
.venv/bin/a2a-canvas serve examples/google_adk
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai.types import Content, FunctionCall, Part
from google.genai.types import GenerateContentResponseUsageMetadata as Usage

from a2a_canvas.frameworks import adk_agent

HIGH_WATER = {"Brest": "5.9 m", "Cuxhaven": "3.3 m"}


class Offline(BaseLlm):
    """Answers in place of a model: looks high water up, writes the note, says so. Passages become upper case."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        for part in self.answer((llm_request.contents[-1].parts or [Part()])[-1]):
            await asyncio.sleep(0.03)  # as slowly as a model
            yield LlmResponse(
                content=Content(role="model", parts=[part]),
                usage_metadata=Usage(prompt_token_count=1, candidates_token_count=1),
            )

    def answer(self, last: Part) -> list[Part]:
        if passage := re.search(r"<selection-\d+>(.*)</selection", last.text or "", re.DOTALL):
            return [Part(text=passage[1].upper())]
        if (result := last.function_response) is None:
            look = FunctionCall(name="high_water", args={"port": "Brest"})
            return [Part(text="I look it up. "), Part(function_call=look)]
        if result.name == "high_water":
            height = (result.response or {})["result"]
            text = f"# Tides\n\nHigh water in Brest: {height}.\nLow water: six hours later.\n"
            note = {"artifact_id": "tides", "name": "tides.md", "parts": [{"kind": "text", "text": text}]}
            write = FunctionCall(name="artifact_update", args={"append": False, "artifact": note})
            return [Part(function_call=write)]
        return [Part(text="The note is ready.")]


def high_water(port: str) -> str:
    """The height of high water in a port."""
    return HIGH_WATER.get(port, "unknown")


reef = LlmAgent(
    name="reef",
    instruction="You write short notes about tides. Look heights up with high_water.",
    model="gemini-flash-latest" if "GOOGLE_API_KEY" in os.environ else Offline(model="offline"),
    tools=[high_water],
)

agent = adk_agent(reef)
