"""`--only mcp-hosts`: two MCP hosts write in one document at once, while readers watch it as the page does.

Every edit names the first version, so the later ones are merged with all before. Measured is how old an edit is when a
reader has it: from the call of the host, over HTTP, to the event. In the end all have the same bytes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bench.client import HOST, ClientError
from bench.databases import databases, upgrade
from bench.report import Check, Report, quantile
from bench.servers import running, shipped

ERAS: Mapping[str, str] = {"Claude": "2026-07-28", "Cursor": "legacy"}
"""The hosts, and which specification they speak."""
READERS = 2
MAX_MS = 250
LINE, ROW = "Line {number:03}.", "Row {number:03}."


@dataclass(frozen=True, slots=True)
class Plan:
    """How many edits each host makes, and the seconds between two."""

    edits: int
    pause: float


FULL = Plan(100, 0.1)
QUICK = Plan(15, 0.05)


@dataclass(slots=True)
class Watched:
    """What the readers saw of each line that was edited, in milliseconds after the call."""

    called: dict[int, float] = field(default_factory=dict)
    ages: list[float] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


async def run(plan: Plan) -> Report:
    """The scenario on SQLite."""
    with databases("sqlite") as new:
        async with running(shipped("rehearsal", await upgrade(new()))) as server:
            return report(plan, await _write(f"http://{HOST}:{server.port}", plan))


async def _write(url: str, plan: Plan) -> Watched:
    watched = Watched()
    count = plan.edits * len(ERAS)
    async with _host(url, "Claude") as claude, _host(url, "Cursor") as cursor:
        text = "\n\n".join(LINE.format(number=number) for number in range(count))
        made = await claude.call_tool("write_artifact", {"name": "tide.md", "text": text})
        where = str((made.structured_content or {})["id"])
        reading = [asyncio.create_task(_read(url, where, count, watched)) for _ in range(READERS)]
        hosts = (claude, cursor)
        await asyncio.gather(
            *(_edit(host, where, range(n, count, len(hosts)), plan, watched) for n, host in enumerate(hosts))
        )
        await asyncio.gather(*reading)
        async with httpx.AsyncClient() as http:
            stored = (await http.get(f"{url}/artifacts/{where}", params={"raw": "1"})).text
            listed = (await http.get(f"{url}/artifacts/{where}/versions")).json()["versions"]
    if {*watched.texts} != {stored} or stored != text.replace("Line", "Row"):
        raise ClientError("the readers do not have what the hosts wrote")
    if {each.get("via") for each in listed} != {*ERAS}:
        raise ClientError("the versions do not say who wrote them")
    return watched


@asynccontextmanager
async def _host(url: str, name: str) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(timeout=60) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        known = types.Implementation(name=name, version="1")
        async with Client(transport, mode=ERAS[name], client_info=known) as client:
            yield client


async def _edit(host: Client, where: str, numbers: Sequence[int], plan: Plan, watched: Watched) -> None:
    for number in numbers:
        watched.called[number] = time.perf_counter()
        old, new = (form.format(number=number) for form in (LINE, ROW))
        done = await host.call_tool("edit_artifact", {"id": where, "old": old, "new": new, "base_version": 1})
        if done.is_error:
            raise ClientError(str(done.content))
        await asyncio.sleep(plan.pause)


async def _read(url: str, where: str, count: int, watched: Watched) -> None:
    """Follow the document until it has every edit."""
    context, artifact = where.split("/")
    seen, text = set[int](), ""
    async with (
        httpx.AsyncClient(timeout=None) as http,
        http.stream("GET", f"{url}/artifacts/{context}/events") as events,
    ):
        async for line in events.aiter_lines():
            update = json.loads(line.removeprefix("data:")).get("artifactUpdate") if line.startswith("data:") else None
            if not update or update["artifact"]["artifactId"] != artifact:
                continue
            new = "".join(part.get("text", "") for part in update["artifact"].get("parts", ()))
            text, now = (text + new if update.get("append") else new), time.perf_counter()
            for number in [each for each in watched.called if each not in seen and ROW.format(number=each) in text]:
                seen.add(number)
                watched.ages.append((now - watched.called[number]) * 1000)
            if len(seen) == count:
                watched.texts.append(text)
                return


def report(plan: Plan, watched: Watched) -> Report:
    """The table and the target."""
    title = f"{len(ERAS)} MCP hosts, {plan.edits} edits of one document each, {READERS} readers"
    table = Report("mcp-hosts", title, ("edits seen", "p50 ms", "p99 ms", "max ms"))
    p50, p99 = (quantile(watched.ages, share) for share in (0.5, 0.99))
    table.rows.append((len(watched.ages), p50, p99, max(watched.ages)))
    table.checks.append(Check("p99", p99, "at most", MAX_MS, "ms"))
    return table
