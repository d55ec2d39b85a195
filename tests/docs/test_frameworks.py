"""The pages of pydantic-ai, the OpenAI Agents SDK and ADK: their agents run as shown, with all arguments.

What else the pages say is shown by the tests of the adapters, in tests/server/frameworks.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from google.adk.models import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai.types import Content, FunctionCall, Part
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from a2a_canvas import frameworks
from a2a_canvas.server.tool_sources.framework_extras import EXTRAS
from a2a_canvas.testing import agent
from tests.docs.pages import README, blocks, page, rows


async def answer(messages: Any, info: Any) -> AsyncIterator[Any]:
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        yield f"It is {last.content}."
    else:
        yield {0: DeltaToolCall("high_water", json.dumps({"port": "Brest"}))}


def answer_items(call: ModelCall) -> list[Any]:
    last = call.input[-1]
    if "output" in last:
        return [assistant_message(f"It is {last['output']}.")]
    return [function_call("high_water", {"port": "Brest"}, call_id="c1")]


class Gemini(BaseLlm):
    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:
        last = llm_request.contents[-1].parts[-1]
        call = Part(function_call=FunctionCall(name="high_water", args={"port": "Brest"}))
        part = Part(text=f"It is {last.function_response.response['result']}.") if last.function_response else call
        yield LlmResponse(content=Content(role="model", parts=[part]))


FAKES: dict[str, tuple[str, str, Any]] = {
    "pydantic-ai": ("pydantic_ai_agent", '"anthropic:claude-opus-5-5"', FunctionModel(stream_function=answer)),
    "openai-agents": ("openai_agent", 'name="reef"', ScriptedModel([ModelStep.respond(answer_items)] * 2)),
    "google-adk": ("adk_agent", '"gemini-flash-latest"', Gemini(model="fake")),
}
"""By page: the adapter, what is replaced in its agent, and a model."""


@pytest.mark.parametrize("name", FAKES)
def test_the_agent_that_is_shown_answers(name: str) -> None:
    _, replaced, model = FAKES[name]
    [code] = blocks(page(name), "python")
    assert replaced in code
    names: dict[str, Any] = {"fake": model}
    exec(code.replace(replaced, 'name="reef", model=fake' if replaced.startswith("name") else "fake"), names)
    with agent(loop=names["agent"]) as it:
        assert it.send("tides in Brest").text == "It is 5.9 m."


@pytest.mark.parametrize("name", FAKES)
def test_two_lines_are_added(name: str) -> None:
    [code] = blocks(page(name), "python")
    assert code.count("  # added") == 2
    assert "Add two lines" in page(name)


@pytest.mark.parametrize("name", FAKES)
def test_the_arguments_are_those_of_the_function(name: str) -> None:
    function = getattr(frameworks, FAKES[name][0])
    assert [row[0].strip("`") for row in rows(page(name), "Options")] == [*inspect.signature(function).parameters]


def test_every_framework_has_its_page_and_its_extra() -> None:
    own_loop = page("own-loop")
    for extra in EXTRAS.values():
        assert f"    .venv/bin/pip install 'a2a-canvas[{extra}]'    # in a clone" in page(extra)
        assert f"({extra}.md)" in own_loop
        assert f"(docs/{extra}.md)" in README
        assert re.search(r"\(\.\./examples/\w+/agent\.py\)", page(extra))
