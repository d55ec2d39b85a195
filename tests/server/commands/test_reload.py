"""`serve --reload`: a changed agent is served anew and goes on with its turns; a broken one is told."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from watchfiles import Change

from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.commands.reload import AgentFiles
from tests.server.commands.test_serve import ROOT, Serving, serving

pytestmark = pytest.mark.process

SCRIPT = """
rules:
  - match: {text: "slow"}
    rounds:
      - write: [{name: poem.md, text: "0123456789 0123456789 0123456789\\n"}]
        chunk: 4
        delay: DELAY
      - tools: [{name: count_words, input: {artifact_id: poem}}]
      - text: "Done."
"""
SLOW, FAST = (SCRIPT.replace("DELAY", seconds) for seconds in ("600", "0"))
"""A task that goes on with the first does not end before it goes on with the other."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "reef"]) == 0
    (tmp_path / "reef/tests/slow.yaml").write_text(SLOW)
    (tmp_path / "reef/agent.toml").write_text('model = "script:tests/slow.yaml"')
    return tmp_path / "reef"


@asynccontextmanager
async def reloading(folder: Path) -> AsyncIterator[Serving]:
    # A variable, because otherwise the model would be another one.
    async with serving("reef", "--reload", cwd=folder.parent, A2A_CANVAS_DATABASE="") as server:
        try:
            yield server
        finally:
            # Killed, it could not end the process that serves.
            assert (await server.ended())[0] == 0


async def rpc(server: Serving, method: str, params: dict[str, Any]) -> dict[str, Any]:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False, timeout=60) as http:
        answer = await http.post("/", json=request, headers={"A2A-Version": "1.0"})
    result: dict[str, Any] = answer.json()["result"]
    return result


async def card(server: Serving) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        answer = await http.get(f"http://127.0.0.1:{server.port}/.well-known/agent-card.json")
    fields: dict[str, Any] = answer.json()
    return fields


async def test_a_change_is_served_and_running_turns_go_on(folder: Path) -> None:
    async with reloading(folder) as server:
        await server.line()
        message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "slow"}]}
        sent = await rpc(server, "SendMessage", {"message": message, "configuration": {"returnImmediately": True}})
        (folder / "agent_card.json").write_text('{"name": "Other"}')
        (folder / "tests/slow.yaml").write_text(FAST)
        await server.logged("agent_card.json, tests/slow.yaml changed. Loading the agent …")
        await server.logged("is resumed")
        while not (await server.line()).startswith("Next"):
            pass
        assert (await card(server))["name"] == "Other"
        task: dict[str, Any] = {}
        while task.get("status", {}).get("state") != "TASK_STATE_COMPLETED":
            await asyncio.sleep(0)
            task = await rpc(server, "GetTask", {"id": sent["task"]["id"]})
        assert task["artifacts"][0]["parts"] == [
            {"text": "0123456789 0123456789 0123456789\n", "mediaType": "text/markdown"}
        ]


async def test_a_client_that_watches_sees_the_task_to_its_end(folder: Path) -> None:
    async with reloading(folder) as server:
        await server.line()
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "a2a_canvas", "send", "--url", f"http://127.0.0.1:{server.port}", "slow"),
            env={**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert client.stderr
        while "Working" not in (await client.stderr.readline()).decode():
            pass
        (folder / "tests/slow.yaml").write_text(FAST)
        said, progress = await client.communicate()
        assert client.returncode == 0, progress
        assert "0123456789 0123456789 0123456789" in said.decode()
        assert said.decode().rstrip().count("Done.") == 1
        assert "Connection lost" in progress.decode()


async def test_a_broken_change_is_told_and_the_agent_is_served_as_it_was(folder: Path) -> None:
    async with reloading(folder) as server:
        await server.line()
        (folder / "tools.py").write_text("def broken(:\n")
        await server.logged("tools.py changed. Loading the agent …")
        assert await server.logged() == "a2a-canvas: reef/tools.py, line 1: invalid syntax. Correct it."
        assert await server.logged() == "The previous agent is still served."
        assert (await card(server))["name"] == "reef"


async def test_a_changed_loop_is_served_and_a_broken_one_is_reported(folder: Path) -> None:
    answer = "async def agent(turn):\n    await turn.say('NUMBER')\n"
    (folder / "agent.py").write_text(answer.replace("NUMBER", "one"))
    async with reloading(folder) as server:
        while not (await server.line()).startswith("Next"):
            pass
        assert "Its loop: reef/agent.py" in server.said
        (folder / "agent.py").write_text("def agent(turn): ...\n")
        assert "reef/agent.py: agent is not async. Write: async def " in await server.logged("agent.py: ")
        assert await server.logged() == "The previous agent is still served."
        assert (await server.send("hello"))["status"]["message"]["parts"][0]["text"] == "one"
        (folder / "agent.py").write_text(answer.replace("NUMBER", "two"))
        while not (await server.line()).startswith("Next"):
            pass
        assert (await server.send("hello"))["status"]["message"]["parts"][0]["text"] == "two"


async def test_a_change_that_names_a_missing_program_is_told_as_check_tells_it(folder: Path) -> None:
    async with reloading(folder) as server:
        await server.line()
        (folder / "mcp.json").write_text('{"mcpServers": {"depth": {"command": "no-such-program"}}}')
        await server.logged("mcp.json changed. Loading the agent …")
        assert "mcp.json: mcpServers.depth.command: " in await server.logged()
        assert await server.logged() == "The previous agent is still served."


async def test_an_agent_that_is_broken_from_the_start_is_served_once_it_is_not(folder: Path) -> None:
    toml = (folder / "agent.toml").read_text()
    (folder / "agent.toml").write_text("modle = 1")
    async with reloading(folder) as server:
        assert await server.logged("modle is not a setting")
        (folder / "agent.toml").write_text(toml)
        assert " listens on " in await server.line()


async def test_a_server_that_has_ended_by_itself_is_told_and_keeps_no_client_waiting(folder: Path) -> None:
    (folder / "agent.toml").write_text('model = "script:tests/slow.yaml"\ndatabase = "postgresql://127.0.0.1:1/none"')
    async with reloading(folder) as server:
        await server.logged("Waiting for a change.")
        with pytest.raises(httpx.ConnectError):
            await card(server)
        (folder / "agent.toml").write_text('model = "script:tests/slow.yaml"')
        assert " listens on " in await server.line()


async def test_a_port_that_is_not_free_ends_it_at_once(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with serving(
            "reef", "--reload", "--port", str(port), cwd=folder.parent, A2A_CANVAS_DATABASE=""
        ) as server:
            _, log = await server.process.communicate()
    assert server.process.returncode == 1
    assert log.decode() == (
        f"a2a-canvas: Cannot listen on 127.0.0.1:{port}: Address already in use. "
        f"Choose another host or port, such as --port {port + 1}.\n"
    )


async def test_connections_wait_while_the_next_server_starts(folder: Path) -> None:
    async with reloading(folder) as server:
        await server.line()
        (folder / "agent_card.json").write_text('{"name": "Other"}')
        await server.logged("The server is stopping")
        assert (await card(server))["name"] == "Other"


async def test_after_good_and_bad_changes_in_a_row_the_newest_good_one_is_served(folder: Path) -> None:
    async with reloading(folder) as server:
        await server.line()
        for text in ('{"name": "First"}', "{", '{"name": "Last"}'):
            (folder / "agent_card.json").write_text(text)
            await server.logged("agent_card.json changed. Loading the agent …")
        name = ""
        while name != "Last":
            while " listens on " not in await server.line():
                pass
            name = (await card(server))["name"]


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("tools.py", True),
        ("tests/script.yaml", True),
        ("a2a-canvas.db", False),
        (".venv/lib/a.py", False),
        (".pytest_cache/README.md", False),
        ("pytest-cache-files-x1/README.md", False),
    ],
)
def test_what_pytest_and_other_programs_write_is_no_change(path: str, counts: bool) -> None:
    assert AgentFiles()(Change.modified, f"/reef/{path}") is counts


def test_reload_needs_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--reload"]) == 2
    assert "--reload needs the folder of an agent" in capsys.readouterr().err
