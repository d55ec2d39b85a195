"""What a search in texts reads from a database; what it finds is in `journal/test_text_search.py`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection

from a2a_canvas.server.tasks.sql.journal import sql_contexts
from a2a_canvas.store.changes import EditText
from a2a_canvas.store.ids import context_key
from a2a_canvas.store.models import Content
from a2a_canvas.store.sql.reading import VersionKey, stored_contents
from a2a_canvas.store.text.spans import Span
from tests.database_fixtures import sqlite_url
from tests.server.tasks.context_harness import BACKENDS, open_contexts
from tests.server.tasks.sql.journal.test_many_tasks import statements

FROM_THERE = "owned_contexts_by_owner (owner=? AND (changed_at,context_id)<(?,?))"


async def test_a_later_page_of_a_search_begins_in_the_index_where_the_one_before_ended(tmp_path: Path) -> None:
    async with open_contexts("sqlite", tmp_path) as world:
        await world.begin("t1")
        for artifact in ("a", "b"):
            await world.write("t1", artifact, "tide")
        after = (await world.search("tide", limit=1)).next
        for shared in ((), (context_key("ann", "other"),)):
            with statements() as asked:
                await world.search("tide", after=after, shared=shared)
            pages = [each for each in asked if "owned_contexts" in each.statement]
            with closing(sqlite3.connect(sqlite_url(tmp_path).removeprefix("sqlite:///"))) as connection:
                plans = [
                    connection.execute(f"EXPLAIN QUERY PLAN {e.statement}", e.parameters).fetchall() for e in pages
                ]
            assert [sum(step[3].endswith(FROM_THERE) for step in plan) for plan in plans] == [1]


@pytest.mark.parametrize("backend", BACKENDS[1:])
async def test_large_texts_are_read_alone_and_small_ones_together(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(connection: Connection, keys: Iterable[VersionKey]) -> dict[VersionKey, Callable[[], Content | None]]:
        chosen = [*keys]
        read.append("".join(key.artifact_id for key in chosen))
        return stored_contents(connection, chosen)

    monkeypatch.setattr(sql_contexts, "stored_contents", counted)
    monkeypatch.setattr(sql_contexts, "CHARACTERS_PER_STEP", 5_000)
    async with open_contexts(backend, tmp_path) as world:
        await world.begin("t1")
        large = " ".join(str(number**3) for number in range(2_000))
        for artifact, text in {"a": "tide", "b": "tide", "c": large, "d": large, "e": "tide", "f": "tide"}.items():
            await world.write("t1", artifact, text)
        await world.change("t1", "d", EditText(Span(0, 1), "tide ", base=1))
        assert [found[1] for found in await world.found("tide")] == ["a", "b", "d", "e", "f"]
    assert read == ["ab", "c", "d", "ef"]
