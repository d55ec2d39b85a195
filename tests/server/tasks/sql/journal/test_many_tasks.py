"""What a request reads where its caller has 50,000 tasks: what it is about, and no more.

Each statement that a request makes is explained by the database itself. Callers without credentials are one owner. Of
two users ann has all the tasks, and bob reads what she shares.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import Engine, event

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.tasks.journal.listing import MAX_COUNTED
from a2a_canvas.store.ids import context_key
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.new_database import with_tables
from tests.server.app_server import Served, serving
from tests.server.tasks.sql.many_contexts import gather_tasks, multiply_context

pytestmark = pytest.mark.slow

COPIES = 10_000
TASKS = 5
"""Of each context."""
MAX_COST = 3000.0
"""In PostgreSQL's units: what a page of 50 contexts costs, three times; all tasks of the owner cost much more."""
SHARED = "5f1c0f8e-2f0b-4f55-9d4e-0f6a1c3b2d70"
"""Only a context with a unique id can be shared with users."""
LONG_AGO = "2000-01-01T00:00:00Z"
Request = Callable[[Served], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Asked:
    statement: str
    parameters: Any


@contextmanager
def statements() -> Iterator[list[Asked]]:
    """All that is asked of databases meanwhile, but for what creates and changes tables."""
    asked: list[Asked] = []

    def listen(_: Any, __: Any, statement: str, parameters: Any, ___: Any, executemany: bool) -> None:
        if statement.lstrip()[:6] in ("SELECT", "UPDATE", "DELETE"):
            asked.append(Asked(statement, parameters[0] if executemany else parameters))

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", listen)


class Explained:
    """What is wrong with how a database runs statements."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def faults(self, asked: list[Asked]) -> list[str]:
        assert asked
        if self._url.startswith("sqlite"):
            return self._faults_on_sqlite(asked)
        return [fault for each in asked for fault in await self._faults_on_postgresql(each)]

    def _faults_on_sqlite(self, asked: list[Asked]) -> list[str]:
        with closing(sqlite3.connect(self._url.removeprefix("sqlite:///"))) as connection:
            return [f"{step}: {each.statement}" for each in asked for step in _too_long_steps(connection, each)]

    async def _faults_on_postgresql(self, asked: Asked) -> list[str]:
        connection = await asyncpg.connect(self._url)
        try:
            found = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {asked.statement}", *asked.parameters)
        finally:
            await connection.close()
        cost = json.loads(found)[0]["Plan"]["Total Cost"]
        return [f"{cost}: {asked.statement}"] if cost > MAX_COST else []


def _too_long_steps(connection: sqlite3.Connection, asked: Asked) -> list[str]:
    """The steps of SQLite's plan that read a whole table that grows, all tasks of an owner, or sort them for a page."""
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {asked.statement}", asked.parameters)]
    sorted_by_index = not any(step.startswith("USE TEMP B-TREE") for step in plan)
    counting = "count(" in asked.statement
    bounded = "LIMIT" in asked.statement
    page = bounded and not counting and "state = ?" not in asked.statement and sorted_by_index
    return [
        step
        for step in plan
        if any(step.startswith(f"SCAN {table}") for table in GROWING)
        or (counting and "tasks_by_owner" in step and not bounded)
        or ("tasks_by_owner (owner=?)" in step and not page)
        or ("ORDER BY tasks.changed_at" in asked.statement and not sorted_by_index)
    ]


GROWING = (
    *("tasks", "pages", "contexts", "owned_contexts", "task_contexts", "message_keys", "latest_changes"),
    *("artifacts", "versions", "drafts", "kept_bytes"),
)


async def list_two_pages(served: Served) -> None:
    page = (await served.rpc("ListTasks", {}))["result"]
    assert page["totalSize"] > COPIES
    after = (await served.rpc("ListTasks", {"pageToken": page["nextPageToken"]}))["result"]
    assert after["totalSize"] == page["totalSize"]


async def list_two_pages_since(served: Served) -> None:
    page = (await served.rpc("ListTasks", {"statusTimestampAfter": LONG_AGO}))["result"]
    assert page["totalSize"] == MAX_COUNTED
    token = page["nextPageToken"]
    after = (await served.rpc("ListTasks", {"statusTimestampAfter": LONG_AGO, "pageToken": token}))["result"]
    assert after["totalSize"] == MAX_COUNTED


async def send(served: Served, context: str = "c") -> None:
    message = {"messageId": str(uuid4()), "contextId": context, "role": "ROLE_USER", "parts": [{"text": "write note"}]}
    answer = await served.rpc("SendMessage", {"message": message})
    assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def rpc(method: str, **params: Any) -> Request:
    async def ask(served: Served) -> None:
        assert "result" in await served.rpc(method, params)

    return ask


def get(path: str) -> Request:
    async def ask(served: Served) -> None:
        assert (await served.http.get(path)).status_code == 200

    return ask


REQUESTS: dict[str, Request] = {
    "a message": send,
    "tasks of a context": rpc("ListTasks", contextId="c-78"),
    "tasks": list_two_pages,
    "tasks that are completed": rpc("ListTasks", status="TASK_STATE_COMPLETED"),
    "tasks that work": rpc("ListTasks", status="TASK_STATE_WORKING"),
    "tasks since a time": list_two_pages_since,
    "completed tasks since a time": rpc("ListTasks", status="TASK_STATE_COMPLETED", statusTimestampAfter=LONG_AGO),
    "a context": get("/artifacts/c-79"),
    "an archive": get("/artifacts/c-80?format=zip"),
    "a version": get("/artifacts/c-81/note/versions/1"),
    "contexts": get("/artifacts"),
    "a search": get("/artifacts?query=note"),
    "a search in texts": get("/artifacts?text=nowhere"),
}


OF_A_LARGE_CONTEXT: dict[str, Request] = {
    "its tasks": rpc("ListTasks", contextId="c"),
    "its tasks that are completed": rpc("ListTasks", contextId="c", status="TASK_STATE_COMPLETED"),
    "its tasks since a time": rpc("ListTasks", contextId="c", statusTimestampAfter=LONG_AGO),
}


OF_A_GUEST: dict[str, Request] = {
    "no tasks": rpc("ListTasks"),
    "tasks of a shared context": rpc("ListTasks", contextId=SHARED),
    "a shared context": get(f"/artifacts/{SHARED}"),
    "contexts": get("/artifacts"),
    "a search": get("/artifacts?query=note"),
    "a search in texts": get("/artifacts?text=nowhere"),
}


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_a_request_reads_what_it_is_about(database: str, tmp_path: Path) -> None:
    url = await with_tables(postgresql_url() if database == "postgresql" else sqlite_url(tmp_path))
    async with serving(database=url, grpc=False) as served:
        await fill(served, url, "")
        await check(served, url, REQUESTS)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_so_it_is_with_users_who_share(database: str, tmp_path: Path) -> None:
    url = await with_tables(postgresql_url() if database == "postgresql" else sqlite_url(tmp_path))
    keys = {name: new_key(name) for name in ("ann", "bob")}
    async with serving(database=url, grpc=False, api_keys=",".join(f"{n}={key}" for n, key in keys.items())) as served:
        served.http.headers["Authorization"] = f"Bearer {keys['ann']}"
        await fill(served, url, "ann")
        await send(served, SHARED)
        share = {"user": "bob", "level": "read"}
        assert (await served.http.post(f"/artifacts/{SHARED}/shares", json=share)).status_code == 201
        await check(served, url, REQUESTS)
        served.http.headers["Authorization"] = f"Bearer {keys['bob']}"
        await check(served, url, OF_A_GUEST)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_a_page_of_one_context_reads_no_more_than_a_page(database: str, tmp_path: Path) -> None:
    url = await with_tables(postgresql_url() if database == "postgresql" else sqlite_url(tmp_path))
    async with serving(database=url, grpc=False) as served:
        await fill(served, url, "")
        await gather_tasks(url, context_key("", "c"))
        await check(served, url, OF_A_LARGE_CONTEXT)


async def fill(served: Served, url: str, owner: str) -> None:
    for _ in range(TASKS):
        await send(served)
    await multiply_context(url, context_key(owner, "c"), COPIES)


async def check(served: Served, url: str, requests: dict[str, Request]) -> None:
    explained = Explained(url)
    for name, request in requests.items():
        with statements() as asked:
            await request(served)
        faults = await explained.faults(asked)
        assert (name, faults) == (name, [])
