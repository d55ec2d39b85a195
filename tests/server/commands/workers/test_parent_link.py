"""A worker's answers to its parent."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from a2a_canvas.server.commands.workers import parent_link
from a2a_canvas.server.metrics import Metrics


async def test_a_worker_answers_and_reads_sums_while_its_database_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent_link, "_end_without_parent", lambda *_: None)  # it would end the tests
    monkeypatch.setattr(parent_link, "REFRESH_SECONDS", 0.5)
    ours, theirs = socket.socketpair()
    metrics, hanging = Metrics(), asyncio.Event()

    async def hang() -> None:
        hanging.set()
        await asyncio.Event().wait()

    metrics.refreshers.append(hang)
    link = parent_link.ParentLink(theirs.detach(), metrics, 0)
    await link.start()
    reader, writer = await asyncio.open_unix_connection(sock=ours, limit=parent_link.MAX_LINE)
    async with asyncio.timeout(5):
        assert json.loads(await reader.readline())["kind"] == "ready"
        writer.write(b'{"kind": "ask"}\n')
        await hanging.wait()
        assert metrics.of_all_workers
        asked = asyncio.create_task(metrics.of_all_workers())
        assert json.loads(await reader.readline())["kind"] == "ask"
        writer.write(b'{"kind": "sum", "families": []}\n')
        assert await asked == []
        own = json.loads(await reader.readline())
    assert (own["kind"], bool(own["families"])) == ("own", True)
    for each in (writer, link._writer):
        each.close()
        await each.wait_closed()
