"""MCP servers through the whole server: what a caller of A2A sees of them."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from a2a_canvas.server.agent.model import ToolResult
from tests.server.app_server import serving

FOLDER = Path(__file__).parent / "tool_sources" / "mcp_servers"
SCRIPT = """
rules:
  - match: {text: "^(?P<tool>[a-z_]+) (?P<text>.*)$"}
    rounds:
      - tools: [{name: "s__{tool}", input: {text: "{text}", who: "{text}"}}]
      - text: "Done."
"""


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """Those of an agent with the MCP server of the test."""
    return {"script": tmp_path / "script.yaml", "mcp_config": tmp_path / "mcp.json", "grpc": False}


def configured(tmp_path: Path, server: dict[str, Any]) -> None:
    (tmp_path / "script.yaml").write_text(SCRIPT)
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"s": server}}))


def hostile(tmp_path: Path, **more: Any) -> None:
    program = str(FOLDER / "hostile_server.py")
    configured(tmp_path, {"command": sys.executable, "args": [program, str(tmp_path / "log")], **more})


def ours(tmp_path: Path) -> None:
    module = ["-m", "tests.server.tool_sources.mcp_servers.our_server"]
    configured(tmp_path, {"command": sys.executable, "args": module, "cwd": str(Path(__file__).parents[2])})


async def said(http: httpx.AsyncClient, text: str, task: dict[str, Any] | None = None) -> dict[str, Any]:
    """The task after a message: a new one, or an answer to `task`."""
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
    if task:
        message |= {"taskId": task["id"], "contextId": task["contextId"]}
    request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    reply = (await http.post("/", json=request, headers={"A2A-Version": "1.0"})).json()
    found: dict[str, Any] = reply["result"]["task"]
    return found


def state(task: dict[str, Any]) -> str:
    return str(task["status"]["state"]).removeprefix("TASK_STATE_")


def question(task: dict[str, Any]) -> str:
    return str(task["status"]["message"]["parts"][0]["text"])


def result(model: Any) -> str:
    """The result that the model read last."""
    return str([each for each in model.requests[-1].messages[-1].content if isinstance(each, ToolResult)][-1].content)


async def test_a_result_is_read_by_the_model_and_an_image_is_an_artifact(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    ours(tmp_path)
    async with serving(**settings) as served:
        task = await said(served.http, "picture please")
        assert state(task) == "COMPLETED"
        (artifact,) = task["artifacts"]
        assert artifact["name"].startswith("s__picture-")
        assert base64.b64decode(artifact["parts"][0]["raw"]) == b"\x89PNG..."
        assert "is in artifact" in result(served.model)


async def test_a_server_that_dies_in_mid_call_does_not_end_the_task(tmp_path: Path, settings: dict[str, Any]) -> None:
    hostile(tmp_path)
    async with serving(**settings) as served:
        assert state(await said(served.http, "die now")) == "COMPLETED"
        assert "ended while s__die ran" in result(served.model)
        assert state(await said(served.http, "echo again")) == "COMPLETED"
        assert result(served.model) == "again"


async def test_a_call_is_approved_by_the_user(tmp_path: Path, settings: dict[str, Any]) -> None:
    hostile(tmp_path, approval=["echo"])
    async with serving(**settings) as served:
        task = await said(served.http, "echo hello")
        assert state(task) == "INPUT_REQUIRED"
        assert "s__echo" in question(task)
        assert state(await said(served.http, "yes", task)) == "COMPLETED"
        assert result(served.model) == "hello"


@pytest.mark.parametrize(
    ("make", "text", "told"), [(hostile, "ask Ann", '{"city": "Rom"}'), (ours, "weather x", "Rom is mild")]
)
async def test_a_question_of_a_server_waits_over_a_restart(
    tmp_path: Path, settings: dict[str, Any], make: Any, text: str, told: str
) -> None:
    make(tmp_path)
    settings["database"] = f"sqlite:///{tmp_path}/tasks.db"
    async with serving(**settings) as served:
        task = await said(served.http, text)
        assert state(task) == "INPUT_REQUIRED"
        assert question(task).startswith("s asks: Which city")
    async with serving(**settings) as served:
        assert state(await said(served.http, "Rom", task)) == "COMPLETED"
        assert told in result(served.model)


async def test_a_login_makes_the_task_wait_and_what_is_answered_is_kept_nowhere(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    ours(tmp_path)
    async with serving(**settings) as served:
        task = await said(served.http, "secret please")
        for _ in range(2):  # the server asks twice
            assert state(task) == "AUTH_REQUIRED"
            assert question(task).startswith("s asks: Log in.\n\nOpen https://example.com/login")
            task = await said(served.http, "my password is 4711", task)
        assert state(task) == "COMPLETED"
        assert result(served.model) == "a secret"
        assert "4711" not in f"{task}{served.model.requests}"


async def test_tools_are_offered_with_their_schemas(tmp_path: Path, settings: dict[str, Any]) -> None:
    ours(tmp_path)
    async with serving(**settings) as served:
        await said(served.http, "add 1")
        offered = {tool.name: tool for tool in served.model.requests[0].tools}
        assert offered["s__add"].description == "Add two numbers."
        assert offered["s__add"].input_schema["required"] == ["a", "b"]


async def skills(http: httpx.AsyncClient) -> list[str]:
    card = (await http.get("/.well-known/agent-card.json")).json()
    return [skill["id"] for skill in card["skills"] if skill["id"].startswith("s__")]


async def test_its_tools_are_skills_of_the_card_also_those_that_come_later(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    ours(tmp_path)
    async with serving(**settings) as served:
        before = await skills(served.http)
        assert "s__add" in before
        assert "s__grown" not in before
        assert state(await said(served.http, "grow 1")) == "COMPLETED"
        async with asyncio.timeout(10):
            while "s__grown" not in await skills(served.http):
                pass


async def test_a_card_with_skills_has_none_of_its_tools(tmp_path: Path, settings: dict[str, Any]) -> None:
    ours(tmp_path)
    settings["agent_card"] = tmp_path / "agent_card.json"
    settings["agent_card"].write_text(json.dumps({"skills": [{"name": "Count", "description": "Counts."}]}))
    async with serving(**settings) as served:
        assert await skills(served.http) == []
