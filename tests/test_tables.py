"""A table lives in one file, with all that writes, prunes and removes its rows."""

from __future__ import annotations

import pytest

import a2a_canvas.server.backend.durable_backend  # noqa: F401  (it enters all tables)
from a2a_canvas.server.tasks.sql.journal.removal import of_context
from a2a_canvas.store.sql.tables import metadata
from tests.table_files import ROOT, changing, defining, naming

JOURNAL, PROJECTIONS, REPLICA = (f"server/tasks/sql/{room}" for room in ("journal", "projections", "replica"))
STORE = {"store/sql/reading.py", "store/sql/writing.py"}
PUSH = {"server/push/sql/sql_push.py"}
ELSEWHERE = {
    "push_configs": PUSH,
    "push_outbox": PUSH,
    "drafts": STORE,
    "versions": STORE | {f"{JOURNAL}/prune.py"},
    "artifacts": STORE
    | {f"{JOURNAL}/{name}.py" for name in ("prune", "removal", "sql_contexts")}
    | {f"{PROJECTIONS}/replicas.py"},
    "kept_bytes": {f"{JOURNAL}/prune.py", f"{JOURNAL}/removal.py", f"{JOURNAL}/sql_kept.py"},
    "contexts": {f"{JOURNAL}/{name}.py" for name in ("context_tails", "journal_reading", "prune", "removal")}
    | {f"{PROJECTIONS}/watchers.py"},
    "owned_contexts": {f"{JOURNAL}/sql_contexts.py", f"{JOURNAL}/sql_kept.py", f"{PROJECTIONS}/watchers.py"},
    "message_keys": {f"{JOURNAL}/removal.py"},
    "task_contexts": {f"{JOURNAL}/journal_reading.py"},
    "replicas": {f"{PROJECTIONS}/{name}.py" for name in ("context_holders", "task_counts", "watchers")}
    | {f"{REPLICA}/{name}.py" for name in ("hand_over", "lease", "takeover")},
    "tasks": PUSH
    | {
        f"{JOURNAL}/{name}.py"
        for name in ("journal_reading", "prune", "removal", "sql_contexts", "sql_journal", "tails")
    }
    | {f"{PROJECTIONS}/{name}.py" for name in ("context_holders", "loop_values", "task_counts", "watchers")}
    | {f"{REPLICA}/{name}.py" for name in ("hand_over", "inbox", "lease", "takeover")},
}
"""The other files that name a table. A new one needs a reason: a function beside the table is easier to find."""
CHANGED_ELSEWHERE = {
    "push_configs": PUSH,
    "push_outbox": PUSH,
    "drafts": {"store/sql/writing.py"},
    "versions": {"store/sql/writing.py", f"{JOURNAL}/prune.py"},
    "artifacts": {"store/sql/writing.py", f"{JOURNAL}/prune.py"},
    "replicas": {f"{REPLICA}/lease.py"},
    "tasks": PUSH | {f"{REPLICA}/{name}.py" for name in ("hand_over", "inbox", "lease", "takeover")},
}
"""Those of them that change rows."""
FOR_EVER = {"api_keys", "server_secrets", "removed_contexts"}
"""Tables that lose no row."""
TABLES = sorted(metadata.tables)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_defined_in_one_file_and_others_name_it_only_where_that_is_declared(table: str) -> None:
    assert len(defining()[table]) == 1
    assert naming().get(table, set()) == ELSEWHERE.get(table, set())


@pytest.mark.parametrize("table", TABLES)
def test_its_rows_are_changed_in_its_file_and_where_that_is_declared(table: str) -> None:
    changes = changing("insert", "insert_on", "update", "delete").get(table, set())
    assert changes - defining()[table] == CHANGED_ELSEWHERE.get(table, set())


@pytest.mark.parametrize("table", TABLES)
def test_its_rows_are_removed_with_their_context_or_by_its_file(table: str) -> None:
    with_context = metadata.tables[table] in of_context()
    owners = defining()[table] | CHANGED_ELSEWHERE.get(table, set())
    by_its_file = bool(changing("delete").get(table, set()) & owners)
    assert (with_context or by_its_file) is (table not in FOR_EVER)


@pytest.mark.parametrize("table", TABLES)
def test_each_index_says_which_query_it_serves(table: str) -> None:
    [file] = defining()[table]
    indexes = [line for line in (ROOT / file).read_text().splitlines() if line.strip().startswith("Index(")]
    assert all("  # " in line for line in indexes)
