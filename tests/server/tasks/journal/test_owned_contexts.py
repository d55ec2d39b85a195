"""The contexts of an owner: which are listed, in which order, and what is told of each; on every backend."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event

from a2a_canvas.server.accounts.errors import ContextNotFound
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tasks.errors import ContextInUse, StreamLost, TaskNotFound
from a2a_canvas.server.tasks.journal.owned_contexts import ContextSummary, matches, words_of
from a2a_canvas.store.ids import context_key
from tests.server.tasks.context_harness import BACKENDS, ContextHarness, open_contexts

START = datetime(2026, 1, 1, tzinfo=UTC)


def second(number: int) -> datetime:
    return START + timedelta(seconds=number)


@pytest.fixture(params=BACKENDS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContextHarness]:
    async with open_contexts(request.param, tmp_path) as opened:
        yield opened


async def test_a_context_has_its_request_its_times_its_tasks_and_the_names_of_its_artifacts(world) -> None:
    await world.begin("t1", request="Write of the tides\nin two lines")
    await world.write("t1", "tides", name="tides.md")
    await world.write("t1", "notes")
    await world.reach("t1")
    await world.begin("t2", request="Make it shorter")
    await world.write("t2", "tides", "Short", name="short.md")
    assert await world.list() == (
        ContextSummary(
            "c",
            name=None,
            request="Write of the tides\nin two lines",
            created_at=second(1),
            changed_at=second(7),
            tasks=2,
            working=1,
            waiting=0,
            artifacts={"notes": "", "tides": "short.md"},
        ),
    )


async def test_the_one_whose_task_changed_last_comes_first(world) -> None:
    await world.run("t1", "a")
    await world.run("t2", "b")
    assert await world.ids() == ["b", "a"]
    await world.begin("t3", "a")
    assert await world.ids() == ["a", "b"]
    await world.run("t4", "b")
    await world.reach("t3")
    assert await world.ids() == ["a", "b"]


async def test_a_change_of_an_artifact_alone_changes_no_order(world) -> None:
    await world.begin("t1", "a")
    await world.run("t2", "b")
    await world.write("t1", "doc")
    assert await world.ids() == ["b", "a"]


async def test_nobody_sees_what_others_have_or_have_asked_for(world) -> None:
    await world.run("t1", "shared", "ann", "The secret of Ann")
    await world.run("t2", "shared", "bob", "The wish of Bob")
    await world.run("t3", "own", "bob")
    [ann] = await world.list("ann")
    _, bob = await world.list("bob")
    assert (ann.request, ann.tasks, ann.changed_at) == ("The secret of Ann", 1, second(3))
    assert (bob.request, bob.tasks, bob.changed_at) == ("The wish of Bob", 1, second(6))
    assert await world.list("") == ()


async def test_a_long_request_is_cut(world) -> None:
    await world.run("t1", request="x" * 300)
    assert (await world.list())[0].request == "x" * 200


@pytest.mark.parametrize("state", [State.INPUT_REQUIRED, State.AUTH_REQUIRED, State.FAILED, State.CANCELED])
async def test_a_task_that_waits_or_has_ended_does_not_work(world, state: State) -> None:
    await world.begin("t1")
    await world.reach("t1", state)
    assert (await world.list())[0].working == 0
    assert (await world.list())[0].waiting == state.paused


async def test_a_search_finds_the_names_of_documents(world) -> None:
    await world.begin("t1", request="Write something")
    await world.write("t1", "x", name="Tides.md")
    assert await world.ids(query="tides something") == ["c"]
    assert await world.ids(query="tides nothing") == []


async def test_a_search_finds_contexts_with_all_its_words_in_any_case(world) -> None:
    await world.run("t1", "a", request="Écris une histoire")
    await world.run("t2", "b", request="Write a story of 100% _tides_")
    await world.run("t3", "c", request="Write a poem")
    assert await world.ids(query="WRITE") == ["c", "b"]
    assert await world.ids(query="story write") == ["b"]
    assert await world.ids(query="éCRIS") == ["a"]
    assert await world.ids(query="% _tid") == ["b"]
    assert await world.ids(query="prose") == []
    assert await world.ids(query=" ") == ["c", "b", "a"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("query", ["", "odd"])
async def test_the_pages_together_are_all_contexts_each_once(world, size: int, query: str, monkeypatch) -> None:
    monkeypatch.setattr("a2a_canvas.server.tasks.sql.journal.sql_contexts.ROWS_PER_STEP", 2)
    for number in range(7):
        await world.run(f"t{number}", f"c{number}", request="odd" if number % 2 else "even")
    pages = [await world.page(query=query, limit=size)]
    while after := pages[-1].next:
        assert len(pages[-1].contexts) == size
        pages.append(await world.page(query=query, limit=size, after=after))
    seen = [each for page in pages for each in page.contexts]
    assert [each.context_id for each in seen] == [f"c{n}" for n in reversed(range(7)) if n % 2 or not query]


@pytest.mark.parametrize("query", ["odd", "c0", "nothing"])
async def test_a_page_of_a_search_looks_at_some_contexts_and_the_next_one_continues_there(
    world, query: str, monkeypatch
) -> None:
    for module in ("journal.owned_contexts", "sql.journal.sql_contexts"):
        monkeypatch.setattr(f"a2a_canvas.server.tasks.{module}.MAX_SEARCHED", 3)
    monkeypatch.setattr("a2a_canvas.server.tasks.sql.journal.sql_contexts.ROWS_PER_STEP", 2)
    for number in range(7):
        await world.run(f"t{number}", f"c{number}", request=f"c{number} {'odd' if number % 2 else 'even'}")
    pages = [await world.page(query=query)]
    while after := pages[-1].next:
        pages.append(await world.page(query=query, after=after))
    found = {"odd": [["c5"], ["c3", "c1"], []], "c0": [[], [], ["c0"]], "nothing": [[], [], []]}
    assert [[each.context_id for each in page.contexts] for page in pages] == found[query]
    assert (await world.page(limit=7)).next is None  # a list without a query has no such bound


async def test_a_context_that_changes_meanwhile_stays_where_a_later_page_looks_or_has_been_seen(world) -> None:
    for number in range(4):
        await world.run(f"t{number}", f"c{number}")
    first = await world.page(limit=2)
    await world.run("t4", "c1")
    rest = await world.page(limit=9, after=first.next)
    assert [each.context_id for each in rest.contexts] == ["c0"]


# ---------------------------------------------------------------------------- renaming


async def test_a_name_is_the_owners_own_and_is_found_and_taken_back(world) -> None:
    await world.run("t1", "a", "ann", "Write")
    await world.run("t2", "a", "bob", "Read")
    await world.run("t3", "b", "ann")
    key = context_key("ann", "a")
    renamed = await world.contexts.rename(key, "ann", "Tide pools")
    assert renamed == (await world.list("ann"))[1]
    assert renamed.name == "Tide pools"
    assert [each.name for each in await world.list("bob")] == [None]
    assert await world.ids("ann", "TIDE write") == ["a"]
    await world.run("t4", "a", "ann")
    assert (await world.list("ann"))[0].name == "Tide pools"
    assert (await world.contexts.rename(key, "ann", None)).name is None
    assert await world.ids("ann", "tide") == []


async def test_nobody_renames_what_others_have_or_what_is_not_there(world) -> None:
    await world.run("t1", "a", "ann")
    for key in (context_key("ann", "a"), context_key("bob", "nowhere"), "a"):
        with pytest.raises(ContextNotFound):
            await world.contexts.rename(key, "bob", "Mine")
    assert await world.list("bob") == ()


# --------------------------------------------------------------------- agents suggest


async def test_whether_agents_suggest_is_kept_with_the_context_and_removed_with_it(world) -> None:
    await world.run("t1", "a", "ann")
    await world.run("t2", "b", "ann")
    key = context_key("ann", "a")
    assert not await world.contexts.agents_suggest(key, "ann")
    changed = await world.contexts.let_agents_suggest(key, "ann", True)
    assert changed.agents_suggest
    assert changed in await world.list("ann")
    assert [each.agents_suggest for each in await world.list("ann")].count(True) == 1
    await world.run("t3", "a", "ann")
    assert await world.contexts.agents_suggest(key, "ann")
    assert not (await world.contexts.let_agents_suggest(key, "ann", False)).agents_suggest
    await world.contexts.let_agents_suggest(key, "ann", True)
    await world.contexts.remove(key, "ann")
    assert not await world.contexts.agents_suggest(key, "ann")
    with pytest.raises(ContextNotFound):
        await world.contexts.let_agents_suggest(key, "ann", True)


# ---------------------------------------------------------------------------- removing


async def test_a_removed_context_has_left_nothing_and_others_have_lost_nothing(world) -> None:
    for context in ("a", "b"):
        await world.begin(f"t-{context}", context)
        await world.write(f"t-{context}", "doc")
        await world.reach(f"t-{context}")
        await world.contexts.rename(context, "", "Name")
    await world.contexts.remove("a", "")
    journal, store = world.backend.journal, world.backend.store
    assert await world.ids() == ["b"]
    assert not await journal.has_context("a", "")
    assert await journal.context("a") == ()
    assert await store.list("a") == ()
    with pytest.raises(TaskNotFound):
        await journal.get("t-a")
    assert await journal.find_duplicate("key-t-a") == ""
    assert [each.name for each in await world.list()] == ["Name"]
    assert await journal.find_duplicate("key-t-b") == "t-b"
    assert [each.artifact_id for each in await store.list("b")] == ["doc"]


async def test_the_ids_can_be_used_again_and_begin_anew(world) -> None:
    await world.begin("t1")
    await world.write("t1", "doc", "one")
    await world.reach("t1")
    first = (await world.backend.journal.follow_context("c")).snapshot
    await world.contexts.rename("c", "", "Name")
    await world.contexts.remove("c", "")
    assert (await world.backend.journal.follow_context("c")).snapshot.artifacts == {}
    await world.begin("t1", request="Again")
    await world.write("t1", "doc", "two")
    again = (await world.backend.journal.follow_context("c")).snapshot
    assert (again.position, again.artifacts["doc"].artifact.version) == (1, 1)
    assert again.incarnation != first.incarnation
    [context] = await world.list()
    assert (context.name, context.request, context.tasks) == (None, "Again", 1)


@pytest.mark.parametrize("state", [State.INPUT_REQUIRED, State.AUTH_REQUIRED])
async def test_a_task_that_waits_for_an_answer_goes_with_its_context_and_its_streams_end(world, state: State) -> None:
    await world.begin("t1")
    await world.write("t1", "doc")
    await world.reach("t1", state)
    task = await world.backend.journal.follow("t1")
    context = await world.backend.journal.follow_context("c")
    await world.contexts.remove("c", "")
    with pytest.raises(StreamLost):
        await anext(aiter(task))
    with pytest.raises(StreamLost):
        await anext(aiter(context))


@pytest.mark.parametrize("state", [State.SUBMITTED, State.WORKING])
async def test_while_a_task_works_the_context_stays(world, state: State) -> None:
    await world.run("t1")
    await world.begin("t2")
    await world.reach("t2", state)
    with pytest.raises(ContextInUse, match="'t2'"):
        await world.contexts.remove("c", "")
    await world.reach("t2", State.CANCELED)
    await world.contexts.remove("c", "")
    assert await world.ids() == []


async def test_nobody_removes_what_is_anothers_or_not_there(world) -> None:
    await world.run("t1", "a", "ann")
    await world.run("t2", "a", "bob")
    for key in (context_key("ann", "a"), context_key("bob", "nowhere"), "a"):
        with pytest.raises(ContextNotFound):
            await world.contexts.remove(key, "bob")
    assert await world.ids("ann") == await world.ids("bob") == ["a"]


def test_words_are_compared_without_case_and_in_name_request_or_names_of_artifacts() -> None:
    assert words_of("  Straße DER ") == ("strasse", "der")
    assert matches(("strasse", "tide"), "Tides", "Die STRASSE", ())
    assert matches(("strasse", "tide"), None, "Die STRASSE", ("Tides.md",))
    assert not matches(("tide",), None, "", ())


# ------------------------------------------------------------------------ in a database


@pytest.fixture(params=BACKENDS[1:])
async def durable(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContextHarness]:
    async with open_contexts(request.param, tmp_path) as opened:
        yield opened


async def test_a_list_reads_neither_tasks_nor_documents(durable) -> None:
    await durable.begin("t1")
    await durable.write("t1", "doc", "x" * 100_000, name="Long")
    await durable.reach("t1")
    database = durable.backend._database
    statements: list[str] = []
    engine = database._reader.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    await durable.list()
    assert statements
    assert not [each for each in statements for column in ("head", "transcript", "content") if column in each]
