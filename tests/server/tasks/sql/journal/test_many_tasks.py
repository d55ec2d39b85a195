"""What a request reads where its caller has 100,000 tasks: what it is about, and no more.

Each statement that a request makes is explained by the database itself. Callers without credentials are one owner.
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

from tests.database_fixtures import postgresql_url, sqlite_url
from tests.server.app_server import Served, serving
from tests.server.tasks.sql.many_contexts import multiply_context, upgraded

pytestmark = pytest.mark.slow

COPIES = 20_000
TASKS = 5
"""Of each context."""
MAX_COST = 3000.0
"""In PostgreSQL's units: what a page of 50 contexts costs, three times; all tasks of the owner cost much more."""
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
            return [
                f"{row[3]}: {each.statement}"
                for each in asked
                for row in connection.execute(f"EXPLAIN QUERY PLAN {each.statement}", each.parameters)
                if reads_too_much(row[3])
            ]

    async def _faults_on_postgresql(self, asked: Asked) -> list[str]:
        connection = await asyncpg.connect(self._url)
        try:
            found = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {asked.statement}", *asked.parameters)
        finally:
            await connection.close()
        cost = json.loads(found)[0]["Plan"]["Total Cost"]
        return [f"{cost}: {asked.statement}"] if cost > MAX_COST else []


def reads_too_much(step: str) -> bool:
    """Whether a step of SQLite's plan reads a whole table that grows, or all tasks of an owner."""
    return any(step.startswith(f"SCAN {table}") for table in GROWING) or "tasks_by_owner (owner=?)" in step


GROWING = (
    *("tasks", "pages", "contexts", "owned_contexts", "task_contexts", "message_keys", "latest_changes"),
    *("artifacts", "versions", "drafts", "kept_bytes"),
)


async def send(served: Served) -> None:
    message = {"messageId": str(uuid4()), "contextId": "c", "role": "ROLE_USER", "parts": [{"text": "write note"}]}
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
    "tasks that work": rpc("ListTasks", status="TASK_STATE_WORKING"),
    "a context": get("/artifacts/c-79"),
    "an archive": get("/artifacts/c-80?format=zip"),
    "a version": get("/artifacts/c-81/note/versions/1"),
    "contexts": get("/artifacts"),
    "a search": get("/artifacts?query=note"),
}


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_a_request_reads_what_it_is_about(database: str, tmp_path: Path) -> None:
    url = await upgraded(postgresql_url() if database == "postgresql" else sqlite_url(tmp_path))
    async with serving(database=url, grpc=False) as served:
        for _ in range(TASKS):
            await send(served)
        await multiply_context(url, "c", COPIES)
        explained = Explained(url)
        for name, request in REQUESTS.items():
            with statements() as asked:
                await request(served)
            faults = await explained.faults(asked)
            assert (name, faults) == (name, [])
