"""`a2a-canvas usage`."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from a2a_canvas.server.accounts.quotas import Meter
from a2a_canvas.server.accounts.sql.sql_usage import SharedUsage
from a2a_canvas.server.backend.migrations import upgrade
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.tasks.sql.projections.owned_rows import owned_contexts
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.kept import add_kept
from tests.database_fixtures import sqlite_url


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with what two users have used today."""
    url = sqlite_url(tmp_path)

    async def fill() -> None:
        database, meter = Database(url), Meter()
        await upgrade(database)
        for user in ("ann", "ann", ""):
            meter.count_request(user)
        meter.spend("ann", 1200, 34)
        await SharedUsage(database, meter, lambda: datetime.now(UTC), lambda: None).exchange()
        await database.close()

    asyncio.run(fill())
    return url


def test_it_shows_users_by_day(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["usage", "--database", url]) == 0
    head, anonymous, ann = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head == ["DAY", "USER", "REQUESTS", "TURNS", "TOKENS", "IN", "TOKENS", "OUT"]
    assert anonymous[1:] == ["(anonymous)", "1", "0", "0", "0"]
    assert ann[1:] == ["ann", "2", "0", "1200", "34"]


def test_it_shows_one_user_as_json(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["usage", "--database", url, "--user", "ann", "--json"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["user"], told["requests"], told["tokens_in"], len(told["day"])) == ("ann", 2, 1200, 10)


def test_it_shows_what_is_kept_of_users_now(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    async def keep() -> None:
        database = Database(url)
        async with database.write() as connection:
            for owner, context, size in (("ann", "a", 40), ("ann", "b", 2), ("", "c", 1000)):
                times = {"created_at": 1, "changed_at": 1}
                row = {"context_id": context, "owner": owner, "request": "", "agents_suggest": False, **times}
                await connection.execute(owned_contexts.insert().values(row))
                await connection.run_sync(add_kept, {context: size})
        await database.close()

    asyncio.run(keep())
    assert main(["usage", "--database", url]) == 0
    told = capsys.readouterr().out
    kept = told.partition("\n\n")[2].splitlines()
    assert [line.split() for line in kept] == [
        ["USER", "KEPT", "BYTES", "CONTEXTS"],
        ["(anonymous)", "1000", "1"],
        ["ann", "42", "2"],
    ]
    assert main(["usage", "--database", url, "--user", "ann", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"user": "ann", "kept_bytes": 42, "contexts": 2}


def test_of_others_it_says_that_there_is_nothing(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["usage", "--database", url, "--user", "joe"]) == 0
    assert capsys.readouterr().out == "No usage in this period.\n"
    assert main(["usage", "--database", "memory"]) == 2
