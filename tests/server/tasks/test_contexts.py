"""What a caller may open, and what it may do with what it has opened."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from a2a_canvas.server.accounts.access import Caller, Level, Share
from a2a_canvas.server.accounts.errors import ContextNotFound, ReadOnly
from a2a_canvas.server.accounts.sharing import InMemoryShares
from a2a_canvas.server.agent.events import State, StatusChanged
from a2a_canvas.server.tasks.contexts import Contexts
from a2a_canvas.server.tasks.errors import StreamLost, TaskNotFound
from a2a_canvas.server.tasks.journal import cursors
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal
from a2a_canvas.server.tasks.journal.listing import TaskQuery
from a2a_canvas.server.tasks.journal.owned_contexts import ContextQuery
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.changes import ReplaceParts
from a2a_canvas.store.ids import context_key
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Ref, text_part
from tests.fakes import Clock, contexts_of, said

ANN, BOB, EVE, GUEST = Caller("ann"), Caller("bob"), Caller("eve"), Caller(link="link")
KEY, TASK = context_key("ann", "notes"), "task"


class World:
    """ann's context `notes`, with a task and an artifact; bob may read it, a guest may edit it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.journal, self.store, self.shares = (
            InMemoryJournal(self.clock),
            InMemoryArtifactStore(),
            InMemoryShares(self.clock),
        )
        self.contexts: Contexts = contexts_of(self.journal, self.store, self.shares)

    async def fill(self) -> World:
        record = TaskRecord(TASK, KEY, "ann", self.clock(), history=(said("m", "Write"),))
        await self.journal.create(record)
        await self.store.apply(Ref(KEY, "doc", TASK), ReplaceParts((text_part("Text"),), last_chunk=True))
        made_at = datetime(2026, 1, 1, tzinfo=UTC)
        await self.shares.add(Share("of bob", KEY, "ann", Level.READ, made_at, "bob"))
        await self.shares.add(Share("link", KEY, "ann", Level.EDIT, made_at, token_hash="hash"))
        return self


@pytest.fixture
async def world() -> World:
    return await World().fill()


@pytest.mark.parametrize(("caller", "level"), [(ANN, Level.OWN), (BOB, Level.READ), (GUEST, Level.EDIT)])
async def test_a_context_is_opened_with_what_its_caller_may_do(world: World, caller: Caller, level: Level) -> None:
    opened = [await world.contexts.open(caller, "notes"), await world.contexts.open_task(caller, TASK)]
    for context in opened:
        assert (context.id, context.owner, context.level) == ("notes", "ann", level)
        assert [task.task_id for task in await context.tasks()] == [TASK]
        assert [each.artifact_id for each in await context.artifacts.list()] == ["doc"]
        assert (await context.artifacts.version("doc", 1)).content.text == "Text"


@pytest.mark.parametrize("caller", [BOB, GUEST])
async def test_nothing_is_opened_for_more_than_its_caller_may_do(world: World, caller: Caller) -> None:
    with pytest.raises(ReadOnly, match="only its owner may"):
        await world.contexts.open(caller, "notes", Level.OWN)
    with pytest.raises(ReadOnly, match="it needs the level 'approve'"):
        await world.contexts.open_task(caller, TASK, Level.APPROVE)


@pytest.mark.parametrize("task_id", [TASK, "none"])
async def test_a_task_of_somebody_else_is_like_one_that_does_not_exist(world: World, task_id: str) -> None:
    with pytest.raises(TaskNotFound) as raised:
        await world.contexts.open_task(EVE, task_id)
    assert str(raised.value) == str(TaskNotFound(task_id))


async def test_the_id_of_somebody_elses_context_is_a_new_one_of_the_caller(world: World) -> None:
    context = await world.contexts.open(EVE, "notes")
    assert (context.owner, context.level) == ("eve", Level.OWN)
    assert (await context.tasks(), await context.artifacts.list()) == ((), ())
    for step in (context.check_begun(), context.follow(), context.summary(), context.rename("x"), context.remove()):
        with pytest.raises(ContextNotFound):
            await step


async def test_a_link_opens_its_own_context_alone(world: World) -> None:
    with pytest.raises(ContextNotFound):
        await world.contexts.open(GUEST, "another")


async def test_a_link_is_checked_before_anything_is_named(world: World) -> None:
    await world.contexts.check_link(GUEST)
    await world.contexts.check_link(BOB)
    reader = Caller(link="link to read")
    await world.shares.add(Share(reader.link, KEY, "ann", Level.READ, world.clock(), token_hash="another hash"))
    with pytest.raises(ReadOnly, match="comments and suggestions need the level 'comment', messages 'edit'"):
        await world.contexts.check_link(reader)


@pytest.mark.parametrize(
    ("caller", "own", "named"), [(ANN, [TASK], [TASK]), (BOB, [], [TASK]), (EVE, [], []), (GUEST, [], [TASK])]
)
async def test_lists_have_the_tasks_of_the_caller_and_of_a_context_those_it_may_read(
    world: World, caller: Caller, own: list[str], named: list[str]
) -> None:
    for context_id, expected in (("", own), ("notes", named), ("another", [])):
        visible = await world.contexts.tasks(caller, context_id)
        page = await visible.list(TaskQuery(("ann",), KEY))  # whatever a query asks for
        assert [task.task_id for task in page.records] == expected


@pytest.mark.parametrize(("caller", "listed", "shared"), [(ANN, [KEY], []), (BOB, [KEY], [KEY]), (EVE, [], [])])
async def test_contexts_are_listed_for_those_who_may_read_them(
    world: World, caller: Caller, listed: list[str], shared: list[str]
) -> None:
    page, shares = await world.contexts.list(caller, ContextQuery(("ann",)))
    assert [each.context_id for each in page.contexts] == listed
    assert [*shares] == shared


async def test_streams_of_a_share_that_has_ended_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "CHECK_SECONDS", 0)
    context = await world.contexts.open(BOB, "notes")
    of_context, of_task = await context.follow(), context.guard(await world.journal.follow(TASK))
    await world.shares.revoke(KEY, "of bob")
    with pytest.raises(StreamLost):
        await anext(aiter(of_context))
    with pytest.raises(TaskNotFound):
        await anext(aiter(of_task))


async def test_streams_of_the_owner_are_not_asked_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "CHECK_SECONDS", 0)
    context = await world.contexts.open(ANN, "notes")
    following = context.guard(await world.journal.follow(TASK))
    await world.journal.append(TASK, StatusChanged(State.WORKING))
    assert (await anext(aiter(following))).event == StatusChanged(State.WORKING)
