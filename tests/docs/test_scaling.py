"""docs/scaling.md has the tables and the numbers of the code."""

from __future__ import annotations

import inspect

from a2a_canvas.server.accounts.sql.recent_reads import MAX_AGE
from a2a_canvas.server.backend.sql_backend import HAND_OVER_INTERVAL, LEASE_TIMING
from a2a_canvas.server.tasks.sql.journal.page_messages import MAX_BYTES, SILENCE_SECONDS
from a2a_canvas.server.tasks.sql.replica.notifications import POLL_INTERVAL
from a2a_canvas.store.sql.commit import COMMIT_SPACING, FOLLOWED_INTERVAL, GroupCommit
from a2a_canvas.store.sql.database import FEWEST_CONNECTIONS, READERS, WRITERS
from a2a_canvas.store.sql.sql_artifact_store import SHOWN_INTERVAL
from tests.docs.pages import page, rows
from tests.docs.scaling_table import generated

PAGE = page("scaling")


def test_the_tables_are_those_of_the_code() -> None:
    assert generated(PAGE) == PAGE, "run `make docs`"


def test_the_numbers_are_those_of_the_code() -> None:
    told = {row[0]: row[1] for row in rows(PAGE, "Fixed limits and intervals")}
    interval = inspect.signature(GroupCommit).parameters["interval"].default
    assert told == {
        "connections of a server": str(READERS + WRITERS + 1),
        "transactions of a server for tasks and artifacts, at most": f"{1 / COMMIT_SPACING:.0f} a second",
        "a piece of a draft is written within": f"{interval * 1000:.0f} ms",
        "of a task that is followed on another server, or whose context is followed": (
            f"{FOLLOWED_INTERVAL * 1000:.0f} ms after the previous transaction began"
        ),
        "of an artifact that other servers show under `/artifacts`": f"{SHOWN_INTERVAL:.0f} s",
        "of a worker, if PostgreSQL allows no more, at least": str(FEWEST_CONNECTIONS),
        "a full server looks for one with room, while tasks wait": f"every {HAND_OVER_INTERVAL * 1000:.0f} ms",
        "heartbeat of a server": f"every {LEASE_TIMING.heartbeat:.0f} s",
        "a lease expires after": f"{LEASE_TIMING.expiry:.0f} s",
        "poll of the tables, in addition to notifications": f"every {POLL_INTERVAL:.0f} s",
        "with [a broker](operations.md#a-broker), a task is polled after a silence of": f"{SILENCE_SECONDS:.0f} s",
        "and its pages are read from the database if they exceed": f"{MAX_BYTES / 1024:.0f} KB",
        "one query for the credentials and shares of all streams of a server": f"every {MAX_AGE:.0f} s",
    }
