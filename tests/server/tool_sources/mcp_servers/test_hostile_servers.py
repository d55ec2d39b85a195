"""Servers that behave badly over stdio. Each has a clear outcome, and the next call of the server works."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.tool_sources.mcp_servers import mcp_connection, source
from a2a_canvas.server.tool_sources.mcp_servers.config import Command, McpServer
from a2a_canvas.server.tool_sources.mcp_servers.source import McpSource
from a2a_canvas.tools.functions.function_tool import FunctionTool
from a2a_canvas.tools.functions.recorded_call import CallPaused
from tests.server.tool_sources.mcp_servers.call_canvas import CallCanvas, outcome

PROGRAM = Path(__file__).with_name("hostile_server.py")
SOURCE = PROGRAM.read_text()


def received(folder: Path) -> list[dict[str, Any]]:
    """What the server has got."""
    log = folder / "log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def server_in(folder: Path, behaviour: str = "", timeout: float = 60) -> McpServer:
    command = Command(sys.executable, (str(PROGRAM), str(folder / "log"), behaviour), {}, str(folder))
    return McpServer("h", "h", command, timeout)


@asynccontextmanager
async def running(folder: Path, behaviour: str = "", timeout: float = 60) -> AsyncIterator[McpSource]:  # noqa: ASYNC109
    hostile = McpSource(server_in(folder, behaviour, timeout), delays=(0.05,))
    await hostile.start()
    try:
        yield hostile
    finally:
        await hostile.stop()


def tool(hostile: McpSource, name: str) -> FunctionTool:
    return next(each for each in hostile.tools() if each.name == f"h__{name}")


async def call(hostile: McpSource, name: str, text: str = "", canvas: CallCanvas | None = None) -> Any:
    return await outcome(tool(hostile, name), {"text": text}, canvas)


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110  what it waits for is in another process
            await asyncio.sleep(0.01)


async def is_well(hostile: McpSource) -> bool:
    return bool(await call(hostile, "echo", "still here") == ["still here"])


@pytest.mark.parametrize("name", ["die", "leave_child"])
async def test_a_server_that_dies_in_mid_call_fails_the_call_and_is_started_again(tmp_path: Path, name: str) -> None:
    async with running(tmp_path) as hostile:
        assert await call(hostile, name) == (
            f"ToolError: The MCP server h ended while h__{name} ran, so its outcome is unknown. The server is started "
            "again. Repeat the call only if it does no harm to do it twice."
        )
        assert await is_well(hostile)


async def test_all_calls_of_a_server_that_dies_fail_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as hostile:
        outcomes = await asyncio.gather(*(call(hostile, name) for name in ("hang", "hang", "die")))
        assert all("so its outcome is unknown" in each for each in outcomes)
        assert await is_well(hostile)


async def test_a_server_that_does_not_start_again_is_told_and_keeps_its_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "CALL_WAIT", 0.3)
    async with running(tmp_path, "once") as hostile:
        await call(hostile, "die")
        assert await call(hostile, "echo") == (
            "ToolError: The MCP server h is not there: it ended. Do without it, or tell the user."
        )
        assert [each.name for each in hostile.tools()][:2] == ["h__echo", "h__die"]


@pytest.mark.parametrize("behaviour", ["exit", "mute"])
async def test_the_agent_starts_without_a_server_that_does_not_start_or_hangs(
    tmp_path: Path, behaviour: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if behaviour == "mute":  # one that ends may take longer to do so
        monkeypatch.setattr(mcp_connection, "START_TIMEOUT", 0.5)
    async with running(tmp_path, behaviour) as hostile:
        assert hostile.tools() == ()
    told = (
        "MCP server h has not answered within 0.5 seconds"
        if behaviour == "mute"
        else "MCP server h is not there: it ended."
    )
    assert any(message.startswith(told) for message in caplog.messages)


@pytest.mark.parametrize(("name", "told"), [("h__echo", "the MCP server h is not there (it ended)"), ("echo", "")])
async def test_a_call_of_before_a_restart_waits_for_a_server_that_has_such_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    monkeypatch.setattr(source, "CALL_WAIT", 0.3)
    async with running(tmp_path, "exit") as hostile:
        assert await hostile.wait_for(name) == told


async def test_a_server_that_comes_later_is_there_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "CALL_WAIT", 60)
    missing = McpServer("h", "h", Command(str(tmp_path / "later.py"), (str(tmp_path / "log"),), {}, str(tmp_path)))
    hostile = McpSource(missing, delays=(600,))  # nothing starts it while its file is written
    await hostile.start()
    try:
        assert hostile.tools() == ()
        program = tmp_path / "later.new"
        program.write_text(f"#!{sys.executable}\n{SOURCE}")
        program.chmod(0o755)
        program.rename(tmp_path / "later.py")
        assert await hostile.wait_for("h__echo") == ""  # a call makes it try at once
        assert await is_well(hostile)
    finally:
        await hostile.stop()


async def test_a_server_that_is_there_is_logged_with_its_version_and_its_tools(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with running(tmp_path) as hostile:
        tools = len(hostile.tools())
    assert f"MCP server h (hostile 1, MCP 2025-11-25): {tools} tools" in caplog.messages


async def test_a_server_that_ends_at_a_request_before_initialize_is_initialized_at_once(tmp_path: Path) -> None:
    async with running(tmp_path, "strict") as hostile:
        assert await is_well(hostile)


@pytest.mark.parametrize("name", ["huge", "huge_id_last"])
async def test_an_answer_that_is_too_large_fails_the_call_alone(tmp_path: Path, name: str) -> None:
    async with running(tmp_path) as hostile:
        failed, well = await asyncio.gather(call(hostile, name), is_well(hostile))
        assert failed == f"ToolError: h__{name} failed: The answer has 48 MB, and 16 MB are the most. Ask for less."
        assert well
        assert await is_well(hostile)


async def test_a_flood_of_progress_and_of_changes_is_survived(tmp_path: Path) -> None:
    async with running(tmp_path) as hostile:
        canvas = CallCanvas()
        assert await call(hostile, "flood", canvas=canvas) == ["flooded"]
        assert canvas.labels
        assert await is_well(hostile)
    assert sum(message.get("method") == "tools/list" for message in received(tmp_path)) < 20


async def test_rubbish_on_stdout_is_skipped_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running(tmp_path) as hostile:
        assert await call(hostile, "rubbish") == ["after rubbish"]
    assert "MCP server h writes to stdout what is not MCP: Hello!" in caplog.messages


async def test_an_answer_that_is_not_mcp_fails_the_call(tmp_path: Path) -> None:
    async with running(tmp_path) as hostile:
        assert await call(hostile, "no_answer") == "ToolError: h__no_answer answered with something that is not MCP."
        assert await is_well(hostile)


async def test_a_call_without_a_sign_of_life_is_cancelled_and_the_server_is_told(tmp_path: Path) -> None:
    async with running(tmp_path, timeout=0.3) as hostile:
        assert await call(hostile, "hang") == (
            "ToolError: h__hang gave no sign of life for 0.3 seconds and was cancelled; whether it did something "
            "is unknown."
        )
        await eventually(lambda: received(tmp_path)[-1].get("method") == "notifications/cancelled")
        assert await is_well(hostile)


async def test_a_call_that_is_cancelled_here_is_cancelled_there(tmp_path: Path) -> None:
    async with running(tmp_path) as hostile:
        calling = asyncio.create_task(call(hostile, "hang"))
        await eventually(lambda: received(tmp_path)[-1].get("method") == "tools/call")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await eventually(lambda: received(tmp_path)[-1].get("method") == "notifications/cancelled")
        request = next(message for message in received(tmp_path) if message.get("method") == "tools/call")
        assert received(tmp_path)[-1]["params"]["requestId"] == request["id"]
        assert await is_well(hostile)


async def test_a_list_that_changes_in_mid_turn_is_read_again_and_the_old_tools_still_work(tmp_path: Path) -> None:
    async with running(tmp_path) as hostile:
        old = tool(hostile, "echo")
        assert await call(hostile, "change") == ["changed"]
        await eventually(lambda: any(each.name == "h__new" for each in hostile.tools()))
        assert await outcome(old, {"text": "old"}) == ["old"]
        assert await call(hostile, "new") == "ToolError: h__new failed: Unknown tool: new"


async def test_of_tools_with_one_name_the_first_is_taken_and_the_others_are_told_apart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, "twice") as hostile:
        names = [each.name for each in hostile.tools()]
        assert len(names) == len(set(names))
        assert tool(hostile, "echo").description == "echo"
        assert "MCP server h has two tools 'echo'; the first one is taken" in caplog.messages
        odd = [each for each in hostile.tools() if each.name.startswith("h__ec_ho")]
        assert [await outcome(each, {}) for each in odd] == [
            "ToolError: h__ec_ho failed: Unknown tool: ec ho",
            f"ToolError: {odd[1].name} failed: Unknown tool: ec.ho",
        ]


async def test_a_tool_that_runs_only_as_a_task_is_not_offered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running(tmp_path, "task_only") as hostile:
        assert [each.name for each in hostile.tools()][:2] == ["h__echo", "h__leave_child"]
    assert "MCP server h has a tool 'die' that runs only as an MCP task: it is not offered" in caplog.messages


async def test_a_schema_that_is_none_is_any_object(tmp_path: Path) -> None:
    async with running(tmp_path, "bad_schema") as hostile:
        assert tool(hostile, "echo").input_schema == {"type": "object", "properties": {}}
        assert await is_well(hostile)


async def test_a_list_that_is_not_mcp_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running(tmp_path, "wrong_list"):
        pass
    assert any("its answer is not MCP: tools.0.inputSchema" in message for message in caplog.messages)


async def test_a_question_pauses_the_call_and_is_answered_when_it_runs_again(tmp_path: Path) -> None:
    async with running(tmp_path) as hostile:
        canvas = CallCanvas()
        assert await call(hostile, "ask", "Ann", canvas) is CallPaused
        assert canvas.questions[0].startswith("h asks: Which city, Ann?\n\ncity [text]")
        await eventually(
            lambda: received(tmp_path)[-1].get("error", {}).get("message") == "The call has been cancelled."
        )
        assert received(tmp_path)[-2]["method"] == "notifications/cancelled"
        assert await call(hostile, "ask", "Ann", CallCanvas(["Rom"])) == ['accept {"city": "Rom"}']
        assert await call(hostile, "ask", "Ann", CallCanvas(["decline"])) == ["decline null"]


async def test_a_question_whose_call_is_unknown_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with running(tmp_path, timeout=0.5) as hostile:
        others = [CallCanvas(["Rom"]), CallCanvas(["Oslo"])]
        outcomes = await asyncio.gather(*(call(hostile, "ask", "you", canvas) for canvas in others))
        assert all("no sign of life" in each for each in outcomes)
        assert [canvas.questions for canvas in others] == [[], []]
        assert "MCP server h asks the user, and of which call is unknown: it is refused" in caplog.messages
        assert await is_well(hostile)


async def test_a_question_of_a_call_that_was_given_up_is_not_asked_in_another_users_call(tmp_path: Path) -> None:
    async with running(tmp_path, timeout=0.5) as hostile:
        anns = asyncio.create_task(call(hostile, "late", "Ann"))
        await eventually(lambda: received(tmp_path)[-1].get("method") == "tools/call")
        bob = CallCanvas(["Rom"])
        bobs = asyncio.create_task(call(hostile, "hang", "0", bob))
        await eventually(lambda: received(tmp_path)[-1]["params"]["name"] == "hang")
        anns.cancel()
        await eventually(lambda: "cannot be asked" in received(tmp_path)[-1].get("error", {}).get("message", ""))
        assert "no sign of life" in await bobs
        assert bob.questions == []


async def test_a_server_gets_a_few_variables_alone_and_those_of_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    caplog.set_level(logging.INFO)
    code = "import os, sys; print(sorted(os.environ), file=sys.stderr)"
    command = Command(sys.executable, ("-c", code), {"OWN": "1"}, str(tmp_path))
    server = McpSource(McpServer("e", "e", command), delays=(10,))
    await server.start()
    await server.stop()
    line = next(message for message in caplog.messages if "'PATH'" in message)
    assert "'OWN'" in line
    assert "SECRET" not in line
