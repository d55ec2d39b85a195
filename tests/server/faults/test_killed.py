"""SQLite: a server that is killed, stopped or just started once more has lost nothing that anybody was told."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.database_fixtures import sqlite_url
from tests.server.faults.fake_messages_api import (
    CALL,
    MODEL,
    START,
    behind,
    ends_answer,
    ends_call,
    messages_api,
    speaks,
    writes,
)
from tests.server.faults.fault_scripts import (
    ANSWERED,
    ASK,
    BEGUN,
    COMPLETED,
    NOTES,
    PAUSED,
    QUESTION,
    REPORT,
    TEXTS,
    WORKING,
    WRITE,
)
from tests.server.faults.observed_task import ObservedTask
from tests.server.faults.outcome_checks import assert_written
from tests.server.faults.server_processes import PATIENCE, ServerGroup, ServerProcess, message, server_group
from tests.server.faults.sse_client import INTERNAL_ERROR, Refused, envelope

GRACE = 3
KILL, TERM = signal.SIGKILL, signal.SIGTERM


def row(folder: Path, columns: str) -> tuple[Any, ...]:
    """Of the only task, as the database has it."""
    connection = sqlite3.connect(folder / "canvas.db")
    try:
        found: tuple[Any, ...] = connection.execute(f"SELECT {columns} FROM tasks").fetchone()
        return found
    finally:
        connection.close()


# ------------------------------------------------------------------------- in the middle


async def test_a_turn_that_is_killed_goes_on_from_its_last_completed_call(tmp_path: Path) -> None:
    told = ObservedTask()
    async with server_group(sqlite_url(tmp_path), tmp_path) as servers:
        first = await servers.start()
        async with first.sends(WRITE, told) as stream:
            await stream.until(lambda told: len(told.texts.get("report", "")) > len(BEGUN) + 50)
            await first.kill()
            with pytest.raises(httpx.TransportError):
                await stream.rest()
        assert (told.state, told.versions, len(told.results)) == (WORKING, {("notes", 1): NOTES}, 2)
        second = await servers.start()
        async with second.joins(told) as stream:
            await stream.until(lambda told: told.epoch == 2)
            assert row(tmp_path, "epoch, resumptions") == (2, 1)
            await stream.rest()
        await assert_written(told, second)


async def test_a_task_that_cannot_be_read_any_more_stops_nothing_but_itself(tmp_path: Path) -> None:
    told, other = ObservedTask(), ObservedTask()
    async with server_group(sqlite_url(tmp_path), tmp_path) as servers:
        first = await servers.start()
        async with first.sends(WRITE, told) as stream:
            await stream.until(lambda told: len(told.texts.get("report", "")) > 50)
            await first.kill()
            with pytest.raises(httpx.TransportError):
                await stream.rest()
        damage(tmp_path)
        second = await servers.start()
        with pytest.raises(Refused, match="cannot be read") as refused:
            await second.task(told.task_id)
        assert (refused.value.code, refused.value.retryable) == (INTERNAL_ERROR, False)
        (listed,) = (await second.call("ListTasks", {}))["tasks"]
        assert (listed["id"], listed["status"]["state"]) == (told.task_id, "TASK_STATE_FAILED")
        async with second.sends(WRITE, other) as stream:
            await stream.rest()
        await assert_written(other, second)
        assert row(tmp_path, "state, epoch") == ("failed", 2)
        assert sum("ERROR   The task cannot be resumed" in line for line in second.log) == 1


def damage(folder: Path) -> None:
    """The only task can no longer be decoded."""
    with sqlite3.connect(folder / "canvas.db") as connection:
        connection.execute("UPDATE tasks SET head = substr(head, 2)")
    connection.close()


async def test_the_model_is_asked_on_with_the_call_that_was_made_and_it_is_not_made_again(tmp_path: Path) -> None:
    told = ObservedTask()
    async with (
        messages_api() as api,
        server_group(sqlite_url(tmp_path), tmp_path, MODEL, **behind(api)) as servers,
        asyncio.timeout(2 * PATIENCE),
    ):
        first = await servers.start()
        async with first.sends("Write.", told) as stream:
            call = await api.calls.get()
            await call.say([START, *writes("Once."), *ends_call(), *speaks("Half a rep", 1)])
            await stream.until(lambda told: "text_delta" in told.kinds)
            assert told.results == {CALL}
            await first.kill()
            with pytest.raises(httpx.TransportError):
                await stream.rest()
        second = await servers.start()
        async with second.joins(told) as stream:
            call = await api.calls.get()
            assert [message["role"] for message in call.said] == ["user", "assistant", "user"]
            (made,), (result, *_) = call.said[1]["content"], call.said[2]["content"]
            assert (made["type"], made["id"]) == ("tool_use", CALL)
            assert (result["type"], result["tool_use_id"]) == ("tool_result", CALL)
            await call.say([START, *speaks("Written."), *ends_answer()])
            await stream.rest()
        assert (told.state, told.reply, told.texts) == (COMPLETED, "Written.", {"doc": "Once."})
        told.begin(await second.task(told.task_id))
        assert told.texts == {"doc": "Once."}
        assert api.calls.empty()


async def test_a_server_that_is_told_to_stop_leaves_its_turn_to_the_next_one(tmp_path: Path) -> None:
    """The turn was handed over: that its server has gone is no fault of the turn's, and does not count as a crash."""
    told = ObservedTask()
    async with server_group(sqlite_url(tmp_path), tmp_path) as servers:
        first = await servers.start("--shutdown-grace", str(GRACE))
        async with first.sends(WRITE, told) as stream:
            await stream.until(lambda told: len(told.texts.get("report", "")) > len(BEGUN) + 50)
            late = await HalfSent.to(first)
            async with asyncio.timeout(GRACE + 1):
                first.signal(TERM)
                await stream.rest()
            assert await late.rest() == 503
        assert await first.ended() == 0
        assert told.state == WORKING
        assert row(tmp_path, "replica, epoch, resumptions") == (None, 1, 0)
        second = await servers.start()
        async with second.joins(told) as stream:
            await stream.until(lambda told: told.epoch == 2)
            assert row(tmp_path, "epoch, resumptions") == (2, 0)
            await stream.rest()
        await assert_written(told, second)
        assert len((await second.call("ListTasks", {}))["tasks"]) == 1


class HalfSent:
    """A message whose last bytes are still to come: who has begun to send is not cut off by a server that stops."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: bytes) -> None:
        self._reader = reader
        self._writer = writer
        self._left = left

    @classmethod
    async def to(cls, server: ServerProcess) -> HalfSent:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        body = json.dumps(envelope("SendMessage", {"message": message(WRITE)})).encode()
        head = (
            "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n"
            f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
        )
        writer.write(head.encode())
        await reader.readuntil(b"100 Continue\r\n\r\n")
        return cls(reader, writer, body)

    async def rest(self) -> int:
        """Send the rest; the status of the answer."""
        self._writer.write(self._left)
        status = (await self._reader.readline()).split()[1]
        self._writer.close()
        return int(status)


# ------------------------------------------------------------------------ between two turns


@pytest.mark.parametrize("stop", [TERM, KILL], ids=["stopped", "killed"])
async def test_everything_survives_a_restart(tmp_path: Path, stop: signal.Signals) -> None:
    told = ObservedTask()
    sent = message(WRITE, message_id="the first", context="c")
    async with server_group(sqlite_url(tmp_path), tmp_path) as servers:
        first = await servers.start()
        async with first.stream("SendStreamingMessage", {"message": sent}, told) as stream:
            await stream.rest()
        await _operate(first, {"op": "put", "artifactId": "report", "baseVersion": 1, "text": "Mine.\n"})
        await _operate(first, {"op": "undo", "artifactId": "report", "baseVersion": 2})
        asked = (await first.call("SendMessage", {"message": message(ASK, context="c")}))["task"]
        assert asked["status"]["state"] == PAUSED
        before, tags = await _everything(first)
        if stop is KILL:
            await _assert_refused(servers, first, tmp_path)
        first.signal(stop)
        await first.ended()

        second = await servers.start()
        assert await _everything(second) == (before, tags)
        for path, tag in tags.items():
            assert (await second.http.get(path, headers={"If-None-Match": tag})).status_code == 304
        again = await second.call("SendMessage", {"message": sent})
        assert again["task"]["id"] == told.task_id
        with pytest.raises(Refused):
            await second.call("SendMessage", {"message": message(WRITE, task=told.task_id)})
        await _operate(second, {"op": "redo", "artifactId": "report", "baseVersion": 1})
        assert (await second.get("/artifacts/c/report"))["parts"] == [{"text": "Mine.\n"}]

        answer = message("Blue.", task=asked["id"])
        answered = (await second.call("SendMessage", {"message": answer}))["task"]
        assert (answered["status"]["state"], _texts(answered)) == (COMPLETED, [ASK, QUESTION, "Blue.", ANSWERED])
        assert (await second.call("ListTasks", {}))["totalSize"] == len(before["tasks"]) + 1
        await assert_left(second, told)


async def _operate(server: ServerProcess, operation: dict[str, Any]) -> None:
    sent = message("Do it.", context="c", operation=operation)
    task = (await server.call("SendMessage", {"message": sent}))["task"]
    assert task["status"]["state"] == COMPLETED, task


async def _everything(server: ServerProcess) -> tuple[dict[str, Any], dict[str, str]]:
    """All that can be read: tasks with their history, artifacts, versions; and the ETag of each resource."""
    tasks = (await server.call("ListTasks", {"includeArtifacts": True, "historyLength": 100}))["tasks"]
    paths = ["/artifacts/c"]
    for artifact in TEXTS:
        base = f"/artifacts/c/{artifact}"
        numbers = [version["number"] for version in (await server.get(f"{base}/versions"))["versions"]]
        paths += [base, f"{base}/versions", *(f"{base}/versions/{number}" for number in numbers)]
    answers = {path: (await server.http.get(path)).raise_for_status() for path in paths}
    found = {path: answer.json() for path, answer in answers.items()}
    return {"tasks": tasks, "found": found}, {path: answer.headers["etag"] for path, answer in answers.items()}


async def _assert_refused(servers: ServerGroup, first: ServerProcess, folder: Path) -> None:
    """One file has one server; another one is told so in one line."""
    second = await servers.begin()
    assert await second.ended() == 2
    assert second.log[:-1] == [
        f"a2a-canvas: The database {folder}/canvas.db is open in another server (process {first.process.pid}). "
        "Stop it, choose another (--database second.db), or use postgresql:// for several servers."
    ]


async def assert_left(server: ServerProcess, told: ObservedTask) -> None:
    """The first task is as it was when it ended, whatever came of its artifacts."""
    told.begin(await server.task(told.task_id))
    assert told.texts == {"notes": NOTES, "report": REPORT}


def _texts(task: dict[str, Any]) -> list[str]:
    return ["".join(part["text"] for part in said["parts"]) for said in task["history"]]
