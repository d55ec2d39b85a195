"""Where agents suggest, a server is killed in the middle of a rewrite: nothing of it is left, and the turn resumes."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.database_fixtures import postgresql_url, sqlite_url
from tests.new_database import with_tables
from tests.server.agui_client import PATH, Run
from tests.server.faults.fake_messages_api import (
    MODEL,
    START,
    behind,
    ends_answer,
    ends_call,
    messages_api,
    speaks,
    stops,
    writes,
)
from tests.server.faults.fault_scripts import COMPLETED, Json
from tests.server.faults.observed_task import CANVAS, ObservedTask, said
from tests.server.faults.server_processes import PATIENCE, ServerProcess, eventually, message, server_group
from tests.server.faults.sse_client import Stream
from tests.sse_events import sse_events

OLD, NEW = "Low tide.\nHigh tide.\n", "Low tide.\nSpring tide.\nNeap tide.\n"
RUN: Json = {"threadId": "c", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "Rewrite it."}]}
DOC = "/artifacts/c/doc"


class ObservedEdits(ObservedTask):
    """`phases`: of each edit, as far as it was seen."""

    def __init__(self) -> None:
        super().__init__()
        self.phases: dict[str, list[str]] = {}
        self.suggested = 0

    def take(self, result: Json) -> None:
        super().take(result)
        match result:
            case {"task": {"metadata": {"urn:a2a-canvas:canvas:v1": {"openEdits": edits}}}}:
                self.phases |= {edit["id"]: ["start"] for edit in edits}
            case {"statusUpdate": {"metadata": {"urn:a2a-canvas:canvas:v1": {"edit": edit}}}}:
                self.phases.setdefault(edit["id"], []).append(edit["phase"])
            case {"statusUpdate": {"metadata": {"urn:a2a-canvas:canvas:v1": {"annotations": changed}}}}:
                self.suggested += len(changed["annotations"])
            case {"artifactUpdate": _}:
                raise AssertionError("a task that suggests changes no artifact")


class Watchers:
    """One of the task over A2A, one of its AG-UI run, and one of the context. `last`: the id of its last event."""

    def __init__(self, server: ServerProcess, last: str = "") -> None:
        self._server, self.last = server, last
        self._opened = AsyncExitStack()
        self.edits = ObservedEdits()

    async def __aenter__(self) -> Watchers:
        opened, server = self._opened, self._server
        headers = {"Last-Event-ID": self.last} if self.last else {}
        events = await opened.enter_async_context(server.http.stream("GET", "/artifacts/c/events", headers=headers))
        self.context = _changes(events)
        self.run = Run(await opened.enter_async_context(server.http.stream("POST", PATH, json=RUN)))
        await self.run.until("STATE_SNAPSHOT")
        self.edits.task_id = self.run.task_id
        self.task: Stream = await opened.enter_async_context(server.joins(self.edits))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    async def change(self) -> tuple[str, Json]:
        """The next change of the context: its name, and its data."""
        self.last, name, data = await anext(self.context)
        return name, data

    async def see_the_rewrite(self) -> str:
        """Wait until all who can see an edit see one; its id."""
        value = (await self.run.until("artifact_partial_update_chunk"))["value"]
        await self.task.until(lambda told: any("chunk" in phases for phases in self.edits.phases.values()))
        return str(value["id"])

    async def see_the_end(self, broken: str, *, present: bool) -> None:
        """The task ends with a new edit, which becomes a suggestion. Of the broken one those present saw `abort`."""
        await self.task.rest()
        await self.run.rest()
        name, data = await self.change()
        assert (name, len(data["annotations"])) == ("annotations", 1)
        assert (self.edits.state, self.edits.reply, self.edits.suggested) == (COMPLETED, "Done.", 1)
        assert (self.run.outcome, self.run.text("doc")) == ("success", OLD)
        of_task = {edit: phases[-1] for edit, phases in self.edits.phases.items()}
        names = {end: f"artifact_partial_update_{end}" for end in ("abort", "suggested")}
        of_run = {each["id"]: end for end, name in names.items() for each in self.run.of(name)}
        for seen in (of_task, of_run):
            ends = seen if present else {broken: "abort"} | seen
            assert sorted(ends.values()) == ["abort", "suggested"]
            assert ends[broken] == "abort"


async def _changes(response: httpx.Response) -> AsyncIterator[tuple[str, str, Json]]:
    """The events that have an id: that, their name, their data."""
    async for fields in sse_events(response):
        if "id" in fields:
            yield fields["id"], fields.get("event", "message"), json.loads(fields["data"])


async def assert_untouched(server: ServerProcess, task_id: str) -> None:
    """No edit is open, nothing was suggested, and the artifact is as it was."""
    task = await server.task(task_id)
    assert task["metadata"][CANVAS]["openEdits"] == []
    assert (await server.get(f"{DOC}/annotations"))["total"] == 0
    artifact = await server.get(DOC)
    assert (said(artifact), artifact["version"], artifact["open"]) == (OLD, 1, False)
    assert len((await server.get(f"{DOC}/versions"))["versions"]) == 1


async def is_committed(folder: Path, generation: int) -> bool:
    """Whether the newest task is in the file up to here: the owner shows what is written before that."""
    with sqlite3.connect(folder / "canvas.db") as connection:
        last = connection.execute("SELECT last FROM pages ORDER BY rowid DESC LIMIT 1").fetchone()[0]
    connection.close()
    return bool(last >= generation)


async def where_agents_suggest(server: ServerProcess) -> None:
    put = {"op": "put", "artifactId": "doc", "name": "doc.md", "text": OLD}
    await server.call("SendMessage", {"message": message("Save it.", context="c", operation=put)})
    (await server.http.patch("/artifacts/c", json={"agentsSuggest": True})).raise_for_status()


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_a_rewrite_that_a_kill_cuts_off_is_taken_back_and_the_turn_suggests_it_again(
    database: str, tmp_path: Path
) -> None:
    url = sqlite_url(tmp_path) if database == "sqlite" else await with_tables(postgresql_url())
    async with (
        messages_api() as api,
        server_group(url, tmp_path, MODEL, **behind(api)) as servers,
        asyncio.timeout(3 * PATIENCE),
    ):
        owner = await servers.start()
        others = [await servers.start()] if database == "postgresql" else []
        await where_agents_suggest(owner)
        async with AsyncExitStack() as opened:
            lost = await opened.enter_async_context(Watchers(owner))
            staying = [await opened.enter_async_context(Watchers(each)) for each in others]
            call = await api.calls.get()
            await call.say([START, *writes(NEW[:25], append=False)])
            for watchers in (lost, *staying):
                assert (await watchers.change())[0] == "message"
                broken = await watchers.see_the_rewrite()
            if database == "sqlite":
                await eventually(partial(is_committed, tmp_path, lost.edits.order[1]))
            await owner.kill()
            for reading in (lost.task.rest(), lost.run.rest(), lost.change()):
                with pytest.raises(httpx.TransportError):
                    await reading
            server = others[0] if others else await servers.start()
            back = await opened.enter_async_context(Watchers(server, lost.last))
            said_before, call = call.said, await api.calls.get()
            assert call.said == said_before
            await assert_untouched(server, lost.run.task_id)
            await call.say([START, *writes(NEW, append=False), *ends_call(), *stops("tool_use")])
            call = await api.calls.get()
            await call.say([START, *speaks("Done."), *ends_answer()])
            await back.see_the_end(broken, present=False)
            for watchers in staying:
                await watchers.see_the_end(broken, present=True)
        accept = {"op": "accept-all", "artifactId": "doc"}
        await server.call("SendMessage", {"message": message("Accept.", context="c", operation=accept)})
        assert said(await server.get(DOC)) == NEW
