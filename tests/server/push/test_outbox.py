"""The outbox of push notifications: in memory, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.agent.events import AgentMessage, ArtifactChanged, State, StatusChanged
from a2a_canvas.server.backend.backend import MemoryBackend
from a2a_canvas.server.backend.sql_backend import SqlBackend
from a2a_canvas.server.push.fair_choice import FreePlaces, TakenPlaces
from a2a_canvas.server.push.outbox import CLAIM_SECONDS, MAX_CONFIGS, Backlog, Delivery, PushStore
from a2a_canvas.server.push.sql.outbox_rows import push_configs
from a2a_canvas.server.push.sql.sql_push import SqlPush
from a2a_canvas.server.tasks.errors import TaskNotFound, TooManyPushConfigs
from a2a_canvas.server.tasks.push_configs import ConfigKey, PushConfig
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.changes import AppendParts, ReplaceParts
from a2a_canvas.store.ids import context_key
from a2a_canvas.store.models import text_part
from a2a_canvas.store.sql.database import Database
from tests.fakes import said
from tests.server.tasks.context_harness import BACKENDS, SECOND, ContextHarness, open_contexts

FREE = FreePlaces(total=10, failing=10, large=10, per_target=10, per_user=10)
KEY = ConfigKey("c", "t", "p")
SOON = 20.0
"""Seconds after which a test fails because what it waits for has not happened."""


@pytest_asyncio.fixture(params=BACKENDS)
async def tasks(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContextHarness]:
    async with open_contexts(request.param, tmp_path) as harness:
        yield harness


def config(
    config_id: str = "p", task: str = "t", context: str = "c", target: str = "a.example:443", user: str = "ann"
) -> PushConfig:
    key = ConfigKey(context, task, config_id)
    return PushConfig(key, Caller(user), "1.0", f"https://{target}/x", target, "t0ken", "Bearer", "s3cret")


def other_process(tasks: ContextHarness) -> PushStore:
    """The outbox as another process has it."""
    backend = tasks.backend
    return SqlPush(backend._database, tasks.clock) if isinstance(backend, SqlBackend) else backend.push


def told(delivery: Delivery | None) -> str:
    """What a notification tells of: a state, or the text of a version."""
    match delivery and delivery.entry.event:
        case StatusChanged(state=state):
            return state.value
        case ArtifactChanged(append=False, last_chunk=True, parts=parts):
            return "".join(part.text for part in parts)  # type: ignore[union-attr]
        case event:
            return f"nothing: {event}"


async def everything(push: PushStore) -> list[str]:
    """What the configs are told, one after the other."""
    found = []
    for delivery in await push.claim(FREE):
        following: Delivery | None = delivery
        while following:
            found.append(told(await push.whole(following)))
            following = await push.mark_delivered(following)
    return found


# ------------------------------------------------------------------------------- configs


async def test_a_config_is_stored_as_it_was_given(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    assert await tasks.backend.push.get(KEY) == config()
    assert await tasks.backend.push.get(KEY._replace(config_id="q")) is None


async def test_a_list_has_the_configs_of_a_task_by_id_in_pages(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.begin("u")
    for each in ("b", "a", "c"):
        await tasks.backend.push.add(config(each))
    await tasks.backend.push.add(config("d", "u"))
    found = [await tasks.backend.push.list("c", "t", after, 2) for after in ("", "b")]
    assert [[each.key.config_id for each in page] for page in found] == [["a", "b"], ["c"]]


async def test_a_config_replaces_the_one_with_its_id_and_gets_what_waits(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config(target="a.example:443"))
    await tasks.reach("t")
    await tasks.backend.push.add(config(target="b.example:443"))
    [delivery] = await tasks.backend.push.claim(FREE)
    assert (delivery.config.target, told(delivery)) == ("b.example:443", "completed")


async def test_a_task_has_only_so_many_configs_of_its_owner_and_of_others(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    for number in range(MAX_CONFIGS):
        await tasks.backend.push.add(config(str(number)))
    with pytest.raises(TooManyPushConfigs):
        await tasks.backend.push.add(config("more"))
    await tasks.backend.push.add(config("0"))  # replaces one
    for number in range(MAX_CONFIGS):
        await tasks.backend.push.add(config(context_key("bob", str(number))))
    with pytest.raises(TooManyPushConfigs):
        await tasks.backend.push.add(config(context_key("bob", "more")))


async def test_a_config_goes_with_what_waits_for_it(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.reach("t")
    await tasks.backend.push.remove(KEY)
    await tasks.backend.push.remove(KEY)
    assert not await tasks.backend.push.claim(FREE)
    assert await tasks.backend.push.backlog() == Backlog()


async def test_a_context_goes_with_the_configs_of_its_tasks(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.reach("t")
    await tasks.contexts.remove("c", "")
    assert await tasks.backend.push.get(KEY) is None
    assert await tasks.backend.push.backlog() == Backlog()
    assert not await tasks.backend.push.claim(FREE)


async def test_a_task_that_is_not_there_has_no_config(tasks: ContextHarness) -> None:
    if isinstance(tasks.backend, SqlBackend):  # in memory the runtime has looked for it in the same step
        with pytest.raises(TaskNotFound):
            await tasks.backend.push.add(config())


# ------------------------------------------------------------------------------ what is told


async def test_it_tells_of_status_changes_and_closed_versions_in_order(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.write("t", "a", "One")
    await tasks._emit("t", StatusChanged(State.WORKING, AgentMessage("m", "Writing…", label=True)))
    await tasks._emit("t", StatusChanged(State.WORKING))
    await tasks.write("t", "a", "Two")
    await tasks.reach("t")
    assert await everything(tasks.backend.push) == ["One", "Two", "completed"]
    assert await tasks.backend.push.backlog() == Backlog()


async def test_a_version_is_whole_and_its_pieces_are_not_told(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.change("t", "a", ReplaceParts((text_part("One, "),)))
    await tasks.change("t", "a", AppendParts((text_part("two, "),)))
    await tasks.change("t", "a", AppendParts((text_part("three."),), last_chunk=True))
    assert await everything(tasks.backend.push) == ["One, two, three."]


async def test_each_config_of_a_task_is_told_and_no_other(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.begin("u")
    await tasks.backend.push.add(config("p"))
    await tasks.backend.push.add(config("q"))
    await tasks.reach("u")
    assert not await tasks.backend.push.claim(FREE)
    await tasks.reach("t")
    assert await everything(tasks.backend.push) == ["completed", "completed"]


async def test_the_config_of_a_new_task_is_told_of_everything(tasks: ContextHarness) -> None:
    record = TaskRecord("t", "c", "", tasks.clock(), history=(said("m", "Go"),))
    await tasks.backend.journal.create(record, "key", config())
    await tasks.backend.journal.append("t", StatusChanged(State.WORKING), StatusChanged(State.COMPLETED))
    await tasks.backend.journal.flushed("t")
    assert await tasks.backend.push.get(KEY) == config()
    assert await everything(tasks.backend.push) == ["working", "completed"]


# ------------------------------------------------------------------------------ delivering


async def test_what_one_process_has_claimed_no_other_delivers(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.reach("t")
    assert len(await tasks.backend.push.claim(FREE)) == 1
    assert not await other_process(tasks).claim(FREE)


@pytest.mark.parametrize("tasks", ["postgresql"], indirect=True)  # SQLite has one writer
async def test_a_claim_leaves_out_what_another_process_is_about_to_claim_and_does_not_wait_for_it(
    tasks: ContextHarness,
) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.reach("t")
    assert isinstance(tasks.backend, SqlBackend)
    async with tasks.backend._database.write() as other:
        await other.execute(select(push_configs.c.config_id).with_for_update())
        async with asyncio.timeout(SOON):
            assert not await tasks.backend.push.claim(FREE)
    assert len(await tasks.backend.push.claim(FREE)) == 1


async def test_what_a_dead_process_has_claimed_another_delivers_later(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.reach("t")
    [late] = await tasks.backend.push.claim(FREE)
    tasks.clock.move(timedelta(seconds=CLAIM_SECONDS))
    [delivery] = await other_process(tasks).claim(FREE)
    assert delivery.event_id == late.event_id
    assert await tasks.backend.push.mark_delivered(late) is None  # it has lost it
    await tasks.backend.push.mark_failed(late, tasks.clock())
    await tasks.backend.push.give_up(late, "it was late")
    assert (await tasks.backend.push.backlog()).depth == 1
    assert await other_process(tasks).mark_delivered(delivery) is None
    assert await tasks.backend.push.backlog() == Backlog()


async def test_a_server_that_starts_on_a_file_delivers_at_once_what_the_one_before_had_claimed(
    tasks: ContextHarness,
) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.reach("t")
    assert len(await tasks.backend.push.claim(FREE)) == 1
    after = other_process(tasks)
    if isinstance(after, SqlPush):
        await after.recover()
        only_process = tasks.backend._database.dialect == "sqlite"  # type: ignore[union-attr]
        assert len(await after.claim(FREE)) == only_process  # on PostgreSQL the other one may live


async def test_what_failed_is_due_again_and_goes_first(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.reach("t", State.INPUT_REQUIRED)
    [first] = await tasks.backend.push.claim(FREE)
    await tasks.backend.push.mark_failed(first, tasks.clock() + 10 * SECOND)
    tasks.clock.move(9 * SECOND)
    assert not await tasks.backend.push.claim(FREE)
    tasks.clock.move(SECOND)
    [again] = await tasks.backend.push.claim(FREE)
    assert (again.attempts, again.event_id, told(again)) == (1, first.event_id, "input-required")


async def test_what_comes_while_something_is_sent_follows_it(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.write("t", "a", "One")
    [delivery] = await tasks.backend.push.claim(FREE)
    await tasks.reach("t")
    assert not await tasks.backend.push.claim(FREE)
    assert told(await tasks.backend.push.mark_delivered(delivery)) == "completed"


async def test_a_config_with_nothing_to_deliver_is_not_claimed(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    if isinstance(tasks.backend, SqlBackend):
        async with tasks.backend._database.read() as connection:
            assert await connection.scalar(select(push_configs.c.due_at)) is None
    assert not await tasks.backend.push.claim(FREE)


async def test_what_is_written_while_a_claim_finds_nothing_is_delivered_by_the_next(tasks: ContextHarness) -> None:
    """A claim that kept the config without delivering would delay it until the claim expires."""
    if isinstance(tasks.backend, MemoryBackend):
        return  # a claim is one step there
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    async with tasks.backend._database.write() as connection:  # due with nothing to deliver, as 0.1.0 left them
        await connection.execute(update(push_configs).values(due_at=0))
    looked = _AfterReads(tasks.backend._database, 2, lambda: tasks.reach("t"))
    claiming = SqlPush(looked, tasks.clock)  # type: ignore[arg-type]
    assert await claiming.claim(FREE) == []
    assert claiming.wake.is_set()
    [delivery] = await claiming.claim(FREE)
    assert told(delivery) == "completed"
    assert await tasks.backend.push.mark_delivered(delivery) is None
    assert await tasks.backend.push.backlog() == Backlog()


class _AfterReads:
    """A database in which something happens after a number of reads."""

    def __init__(self, database: Database, reads: int, then: Callable[[], Awaitable[None]]) -> None:
        self._database = database
        self._left = reads
        self._then = then
        self.write, self.writers = database.write, database.writers

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        async with self._database.read() as connection:
            yield connection
        self._left -= 1
        if self._left == 0:
            await self._then()


async def test_what_was_released_is_due_at_once(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.reach("t")
    [delivery] = await tasks.backend.push.claim(FREE)
    await tasks.backend.push.release(delivery)
    [again] = await tasks.backend.push.claim(FREE)
    assert again == replace(delivery, claim=again.claim)


async def test_what_is_given_up_ends_the_config_and_says_why(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.write("t", "a")
    [delivery] = await tasks.backend.push.claim(FREE)
    await tasks.backend.push.give_up(delivery, "it is gone")
    await tasks.reach("t")
    found = await tasks.backend.push.get(KEY)
    assert found
    assert found.failure == "it is gone"
    assert not await tasks.backend.push.list("c", "t", "", 10)
    assert await tasks.backend.push.backlog() == Backlog()
    assert not await tasks.backend.push.claim(FREE)
    await tasks.backend.push.add(config())
    assert await tasks.backend.push.get(KEY) == config()


async def test_the_backlog_says_how_much_waits_and_since_when(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.write("t", "a")
    first = tasks.clock()
    await tasks.reach("t")
    assert await tasks.backend.push.backlog() == Backlog(2, first)


async def test_only_as_much_is_claimed_as_there_are_free_places(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    for number in range(5):
        await tasks.backend.push.add(config(f"a{number}", target="a.example:443"))
    await tasks.backend.push.add(config("b", target="b.example:443"))
    await tasks.reach("t")
    free = replace(FREE, total=4, per_target=2, taken=TakenPlaces({"a.example:443": 1}))
    assert sorted(each.config.key.config_id for each in await tasks.backend.push.claim(free)) == ["a0", "b"]
    full = replace(FREE, total=4, failing=0, per_target=2, taken=TakenPlaces({"a.example:443": 2}))
    assert not await tasks.backend.push.claim(full)


async def test_a_user_with_much_to_deliver_hides_nobody_else(tasks: ContextHarness) -> None:
    await tasks.begin("t")
    await tasks.begin("u")
    for number in range(20):
        await tasks.backend.push.add(config(f"a{number}"))
    await tasks.reach("t")
    await tasks.backend.push.add(config("b", "u", user="bob"))
    await tasks.reach("u")
    free = replace(FREE, total=2)
    users = [each.config.registrant.name for each in await tasks.backend.push.claim(free)]
    assert sorted(users) == ["ann", "bob"]
    full = replace(FREE, per_user=2, taken=TakenPlaces(users={"ann": 2}))
    assert not await tasks.backend.push.claim(full)


async def test_a_version_is_read_when_it_is_to_be_sent_and_not_if_it_was_removed_meanwhile(
    tasks: ContextHarness,
) -> None:
    in_memory = isinstance(tasks.backend, MemoryBackend)  # which has it at hand
    await tasks.begin("t")
    await tasks.backend.push.add(config())
    await tasks.write("t", "a", "The text")
    [delivery] = await tasks.backend.push.claim(FREE)
    assert (told(delivery) == "The text") == in_memory
    assert told(await tasks.backend.push.whole(delivery)) == "The text"
    await tasks.backend.push.remove(KEY)
    whole = await tasks.backend.push.whole(delivery)
    assert (whole is None) == (not in_memory)
    assert await tasks.backend.push.mark_delivered(delivery) is None
