"""What one call asks the user, over several tries of the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import mcp_types as types
import pytest

from a2a_canvas.server.tool_sources.mcp_servers import source as source_module
from a2a_canvas.server.tool_sources.mcp_servers.config import Command, McpServer
from a2a_canvas.server.tool_sources.mcp_servers.questions import Questions
from a2a_canvas.server.tool_sources.mcp_servers.source import McpSource
from a2a_canvas.tools.functions.canvas import Canvas
from a2a_canvas.tools.functions.function_tool import FunctionTool
from a2a_canvas.tools.functions.recorded_call import CallPaused
from tests.server.tool_sources.mcp_servers.call_canvas import CallCanvas, outcome

TOOL = {"name": "book", "inputSchema": {"type": "object"}}


def form(field: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return {"mode": "form", "message": f"Which {field}?", "requestedSchema": schema}


async def test_what_was_asked_is_remembered_in_its_order() -> None:
    questions = Questions("shop", cast(Canvas, CallCanvas(["Rom", "two"])))
    city, seats = form("city"), form("seats")
    await questions.ask(city)
    await questions.ask(seats)
    assert questions.asked == [city, seats]


def wants(field: str, state: str) -> Any:
    asked = {"method": "elicitation/create", "params": form(field)}
    return types.InputRequiredResult.model_validate({"inputRequests": {field: asked}, "requestState": state})


class Forgetful(McpSource):
    """A server that asks for a city, loses its state then, and asks for seats."""

    def __init__(self) -> None:
        super().__init__(McpServer("shop", "shop", Command("none")))
        self.first = "city"

    async def _exchange(self, name: str, request: types.ClientRequest, questions: Questions) -> Any:
        params = cast(Any, request.params)
        match params.request_state:
            case None:
                return wants(self.first, self.first)
            case "city":
                self.first = "seats"
                raise source_module._StateLost
            case _:
                booked = params.input_responses["seats"].content["seats"]
                return types.CallToolResult(content=[types.TextContent(type="text", text=f"booked {booked}")])


@pytest.fixture
def book() -> FunctionTool:
    source = Forgetful()
    listing: Mapping[str, Any] = TOOL
    source._take(source_module.Listing(tools=[dict(listing)]))
    [tool] = source.tools()
    return tool


async def test_an_answer_to_a_try_whose_state_was_lost_answers_no_later_question_after_a_restart(
    book: FunctionTool,
) -> None:
    kept: dict[str, str] = {}
    waits = CallCanvas(["Rom"], kept)
    assert await outcome(book, {}, waits) is CallPaused
    assert [text.split("\n")[0] for text in waits.questions] == ["shop asks: Which city?", "shop asks: Which seats?"]
    assert await outcome(book, {}, CallCanvas(["Rom", "two"], kept)) == ["booked two"]
