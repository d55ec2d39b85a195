"""What a search in texts reads from a database; what it finds is in `journal/test_text_search.py`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from a2a_canvas.store.ids import context_key
from tests.database_fixtures import sqlite_url
from tests.server.tasks.context_harness import open_contexts
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
