"""The tools of a server in an agent's own loop: MCP servers and other agents, with their questions, over a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas import Turn
from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from tests.server.app_server import serving
from tests.server.test_mcp import hostile, ours, question, said, state


async def call_what_is_named(turn: Turn) -> None:
    """Calls the tool that is named first, with the rest as its input."""
    name, _, given = turn.text.partition(" ")
    await turn.say(await turn.tools.find(name).call(json.loads(given)))


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    database = f"sqlite:///{tmp_path}/tasks.db"
    return {"mcp_config": tmp_path / "mcp.json", "grpc": False, "database": database, "loop": call_what_is_named}


@pytest.mark.parametrize(
    ("make", "text", "told"),
    [(hostile, 's__ask {"who": "Ann"}', '{"city": "Rom"}'), (ours, 's__weather {"text": "x"}', "Rom is mild")],
)
async def test_a_question_of_an_mcp_server_waits_over_a_restart(
    tmp_path: Path, settings: dict[str, Any], make: Any, text: str, told: str
) -> None:
    make(tmp_path)
    async with serving(**settings) as served:
        task = await said(served.http, text)
        assert state(task) == "INPUT_REQUIRED"
        assert question(task).startswith("s asks: Which city")
    async with serving(**settings) as served:
        task = await said(served.http, "Rom", task)
        assert state(task) == "COMPLETED"
        assert told in question(task)


async def test_a_call_of_an_mcp_server_is_approved_by_the_user(tmp_path: Path, settings: dict[str, Any]) -> None:
    hostile(tmp_path, approval=["echo"])
    async with serving(**settings) as served:
        task = await said(served.http, 's__echo {"text": "hello"}')
        assert question(task) == 'May I run s__echo(text="hello")? Answer yes or no.'
        assert question(await said(served.http, "yes", task)) == "hello"


async def test_a_login_is_kept_nowhere(tmp_path: Path, settings: dict[str, Any]) -> None:
    ours(tmp_path)
    async with serving(**settings) as served:
        task = await said(served.http, 's__secret {"text": "please"}')
        for _ in range(2):  # the server asks twice
            assert state(task) == "AUTH_REQUIRED"
            task = await said(served.http, "my password is 4711", task)
        assert (state(task), question(task)) == ("COMPLETED", "a secret")
        assert "4711" not in str(task)


async def test_another_agent_is_a_tool_whose_question_is_asked_and_answered() -> None:
    async def ask_the_agent(turn: Turn) -> None:
        [other] = turn.tools
        await turn.say(await other.call({"message": turn.text}))

    async def harbour(turn: Turn) -> None:
        await turn.say(f"It lies at {await turn.ask('Where?')}.")

    async with (
        serving(model=Rehearsal(delay=0), grpc=False, loop=harbour) as other,
        serving(grpc=False, agents=(str(other.http.base_url),), loop=ask_the_agent) as served,
    ):
        task = await said(served.http, "moor")
        assert state(task) == "INPUT_REQUIRED"
        assert "Where?" in question(task)
        task = await said(served.http, "pier 54", task)
        assert state(task) == "COMPLETED"
        assert "It lies at pier 54." in question(task)
