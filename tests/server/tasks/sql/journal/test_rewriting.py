"""Tasks of before, with whole artifacts: they name their versions in the end, and read as they always did."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import State, UserMessage
from a2a_canvas.server.tasks.codec import artifacts_to_json
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.journal import rewriting
from a2a_canvas.server.tasks.sql.journal.journal_tables import replicas, rewrites, tasks
from a2a_canvas.server.tasks.sql.journal.rewriting import NAMED_VERSIONS, RETRY_SECONDS, name_versions
from a2a_canvas.server.tasks.sql.journal.task_counts import add_counts, moved
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import ReplaceParts
from a2a_canvas.store.models import DataPart, Ref, text_part
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.sql.tables import versions
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.fakes import answer, text
from tests.server.tasks.sql import replica_harness
from tests.server.tasks.sql.replica_harness import Replica, Replicas
from tests.store.sql.sql_fixtures import FakeReplica

DOC = Ref("c", "doc", "another-task")
WORDS = "One two three four five seven."
LETTERS = "Otrfi"
ME = FakeReplica("me", {"me"})
change_of = rewriting._change


class Stopped(Exception):
    """The process was killed here."""


class Pauses:
    """The pauses between steps; the process is killed in the one with this number."""

    def __init__(self, killed_in: int = 0) -> None:
        self.seconds: list[float] = []
        self._killed_in = killed_in

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == self._killed_in:
            raise Stopped


@pytest.fixture(params=[sqlite_url, lambda _: postgresql_url()], ids=["sqlite", "postgresql"])
async def several(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Replicas]:
    async with replica_harness.replicas(request.param(tmp_path)) as started:
        yield started


@pytest.fixture
async def replica(several: Replicas) -> Replica:
    """With five tasks that are edits of one artifact of the context `c`."""
    replica = await several.start(*(answer(text(f"<{letter}>")) for letter in LETTERS))
    await replica.backend.store.apply(DOC, ReplaceParts((text_part(WORDS), DataPart({"a": 1})), last_chunk=True))
    for letter in LETTERS:
        at = (await replica.text()).index(letter)
        given = {"op": "edit", "artifactId": "doc", "selection": {"start": at, "end": at + 1, "text": letter}}
        message = UserMessage(f"m-{letter}", (text_part("Mark it"),), {CANVAS: given})
        assert (
            await (await replica.runtime.send(Incoming(message, "", "c", ""), ANONYMOUS)).settled()
        ).state is State.COMPLETED
    return replica


@pytest.fixture
def database(replica: Replica) -> Database:
    return replica.backend._database


@pytest.fixture
async def before(replica: Replica, database: Database) -> tuple[TaskRecord, ...]:
    """The tasks; their rows are as an older version has written them."""
    records = await replica.backend.journal.context("c")
    async with database.write() as connection:
        for record in records:
            whole = {"artifacts": artifacts_to_json(record.artifacts), "named": None}
            await connection.execute(update(tasks).where(tasks.c.task_id == record.task_id).values(whole))
        await connection.execute(insert(rewrites).values(name=NAMED_VERSIONS, context_id="", task_id=""))
    return records


async def whole(database: Database) -> int:
    """How many tasks have whole artifacts."""
    async with database.read() as connection:
        return sum("seven" in each for each in await connection.scalars(select(tasks.c.artifacts)))


async def is_done(database: Database) -> bool:
    async with database.read() as connection:
        return await connection.scalar(select(rewrites.c.name)) is None


async def test_tasks_of_before_read_the_same_before_and_after(replica: Replica, database: Database, before) -> None:
    assert (await whole(database), await replica.backend.journal.context("c")) == (5, before)
    await name_versions(database, ME, Pauses())
    assert (await whole(database), await replica.backend.journal.context("c")) == (0, before)
    assert [await replica.record(record.task_id) for record in before] == list(before)
    assert await is_done(database)


@pytest.mark.parametrize("killed_in", range(1, 6))
async def test_a_process_that_is_killed_is_continued_where_it_was(
    database: Database, before, killed_in: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "STEP_TASKS", 1)
    with pytest.raises(Stopped):
        await name_versions(database, ME, Pauses(killed_in))
    assert (await whole(database), await is_done(database)) == (5 - killed_in, False)
    rest = Pauses()
    await name_versions(database, FakeReplica("next", {"next"}), rest)
    assert (await whole(database), await is_done(database)) == (0, True)
    assert len(rest.seconds) == 5 - killed_in


async def test_a_large_task_is_a_step_of_its_own(database: Database, before, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "STEP_CHARACTERS", 10)
    pauses = Pauses()
    await name_versions(database, ME, pauses)
    assert len(pauses.seconds) == 5
    assert await whole(database) == 0


async def test_a_new_database_has_nothing_to_do(database: Database) -> None:
    pauses = Pauses()
    await name_versions(database, ME, pauses)
    assert pauses.seconds == []


async def test_nobody_waits_for_it_to_write(database: Database, before, monkeypatch: pytest.MonkeyPatch) -> None:
    async def written_beside(connection, row):
        async with database.write() as writing:  # on SQLite there is one writer
            await writing.execute(update(replicas).values(commits=0))
        return await change_of(connection, row)

    monkeypatch.setattr(rewriting, "_change", written_beside)
    await name_versions(database, ME, Pauses())
    assert await whole(database) == 0


async def test_another_replica_waits_as_long_as_the_first_one_lives(
    database: Database, before, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "STEP_TASKS", 1)
    living = {"me", "other"}
    with pytest.raises(Stopped):
        await name_versions(database, FakeReplica("me", living), Pauses(1))
    waiting = Pauses(2)
    with pytest.raises(Stopped):
        await name_versions(database, FakeReplica("other", living), waiting)
    assert (waiting.seconds, await whole(database)) == ([RETRY_SECONDS] * 2, 4)
    living.remove("me")
    await name_versions(database, FakeReplica("other", living), Pauses())
    assert await whole(database) == 0


async def test_of_two_that_begin_at_once_one_gives_way(
    database: Database, before, monkeypatch: pytest.MonkeyPatch
) -> None:
    living = {"me", "other"}

    async def other_is_faster(connection, row):
        monkeypatch.undo()
        await name_versions(database, FakeReplica("other", living), Pauses())
        return await change_of(connection, row)

    monkeypatch.setattr(rewriting, "_change", other_is_faster)
    pauses = Pauses()
    await name_versions(database, FakeReplica("me", living), pauses)
    assert pauses.seconds == [RETRY_SECONDS]
    assert (await whole(database), await is_done(database)) == (0, True)


async def test_what_is_no_version_any_more_or_another_one_stays_whole(
    replica: Replica, database: Database, before
) -> None:
    pruned, other = before[0], before[1]
    async with database.write() as connection:
        gone = update(versions).where(versions.c.number == pruned.artifacts["doc"].version)
        await connection.execute(gone.values(content=None, replacement=None))
        artifacts = {"doc": other.artifacts["doc"]}
        odd = artifacts_to_json(artifacts).replace('"a":1', '"a":true')
        await connection.execute(update(tasks).where(tasks.c.task_id == other.task_id).values(artifacts=odd))
    read = [await replica.record(record.task_id) for record in before]
    await name_versions(database, ME, Pauses())
    assert await whole(database) >= 2
    assert [await replica.record(record.task_id) for record in before] == read


async def test_a_task_that_works_is_left_to_who_runs_it(
    several: Replicas, replica: Replica, database: Database, before
) -> None:
    async with database.write() as connection:
        await connection.execute(update(tasks).where(tasks.c.task_id == before[0].task_id).values(state="working"))
        await connection.run_sync(add_counts, moved(before[0].owner, before[0].state.value, "working"))
    await name_versions(database, ME, Pauses())
    assert await whole(database) == 1


async def test_a_task_that_was_saved_meanwhile_is_left_alone(
    database: Database, before, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def saved_beside(connection, row):
        async with database.write() as writing:
            later = {"snapshot": tasks.c.snapshot + 1, "artifacts": '{"seven":4}'}
            await writing.execute(update(tasks).where(tasks.c.task_id == before[0].task_id).values(later))
        return await change_of(connection, row)

    monkeypatch.setattr(rewriting, "_change", saved_beside)
    await name_versions(database, ME, Pauses())
    assert await whole(database) == 1


async def test_a_task_that_cannot_be_read_fails_alone(
    database: Database, before, caplog: pytest.LogCaptureFixture
) -> None:
    async with database.write() as connection:
        await connection.execute(update(tasks).where(tasks.c.task_id == before[2].task_id).values(artifacts="seven"))
    await name_versions(database, ME, Pauses())
    assert await whole(database) == 1
    [said] = [each for each in caplog.records if "cannot be read; they stay as they are" in each.getMessage()]
    assert vars(said)["fields"]["task"] == before[2].task_id


async def test_the_log_says_how_far_it_is(
    database: Database, before, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(rewriting, "STEP_TASKS", 2)
    monkeypatch.setattr(rewriting, "TASKS_PER_REPORT", 4)
    await name_versions(database, ME, Pauses())
    said = [each for each in caplog.messages if "earlier tasks" in each]
    assert said[:2] == [
        "The artifacts of 5 earlier tasks are compared with their versions",
        "4 of 5 earlier tasks are compared, 4 name their versions",
    ]
    assert said[2].startswith("5 earlier tasks name their versions now, which frees about ")
