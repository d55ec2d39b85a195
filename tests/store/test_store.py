"""What every `ArtifactStore` does. A new one joins by a factory in `FACTORIES`; no test knows which one it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime

import pytest

from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.changes import AppendParts, Change, EditText, Redo, ReplaceParts, Restore, Step, Undo
from a2a_canvas.store.errors import (
    ArtifactBusy,
    ArtifactNotFound,
    ArtifactTooLarge,
    EmptyUpdate,
    MediaTypeConflict,
    NothingToRedo,
    NothingToUndo,
    OutsideText,
    StoreError,
    TooManyParts,
    VersionConflict,
    VersionNotFound,
)
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Artifact, DataPart, FilePart, Limits, Ref, Version
from a2a_canvas.store.text.spans import Span
from tests.store.artifact_builders import StockClient, appending, by, delta, replacing, text
from tests.store.sql.sql_fixtures import FakeReplica, open_store, postgresql_database, sqlite_database


@asynccontextmanager
async def memory(limits: Limits) -> AsyncIterator[ArtifactStore]:
    yield InMemoryArtifactStore(limits)


@asynccontextmanager
async def evented(limits: Limits) -> AsyncIterator[ArtifactStore]:
    yield EventedArtifactStore(InMemoryArtifactStore(limits), StockClient().listen, seen=["a", "b"])


@asynccontextmanager
async def sqlite(limits: Limits) -> AsyncIterator[ArtifactStore]:
    async with sqlite_database() as database, open_store(database, FakeReplica(), limits) as kept:
        yield kept.store


@asynccontextmanager
async def postgresql(limits: Limits) -> AsyncIterator[ArtifactStore]:
    async with postgresql_database() as database, open_store(database, FakeReplica(living={"r1"}), limits) as kept:
        yield kept.store


FACTORIES: list[Callable[[Limits], AbstractAsyncContextManager[ArtifactStore]]] = [memory, evented, sqlite, postgresql]
LIMITS = Limits(artifact_bytes=100, parts=5)
FILE, DATA = (
    FilePart(b"\x00\xff", name="f.bin", media_type="x/y", metadata={"k": 1}),
    DataPart({"a": [1, None]}, size=14),
)


@pytest.fixture(params=FACTORIES, ids=lambda factory: factory.__name__)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[ArtifactStore]:
    async with request.param(LIMITS) as opened:
        yield opened


async def standing(store: ArtifactStore, ref: Ref) -> tuple[Artifact, tuple[Version, ...]] | None:
    try:
        return await store.get(ref), await store.versions(ref)
    except ArtifactNotFound:
        return None


async def test_what_is_not_there_is_not_found_by_name(store: ArtifactStore) -> None:
    for look in (store.get, store.versions):
        with pytest.raises(ArtifactNotFound, match=r"'nothing'.*List the artifacts") as caught:
            await look(by("t1", "nothing"))
        assert caught.value.artifact_id == "nothing"
    assert await store.list("c") == ()
    assert await store.discard(by("t1", "nothing")) is None
    assert await store.list("c") == ()


async def test_a_change_makes_the_artifact_and_says_how_it_stands(store: ArtifactStore) -> None:
    applied = await store.apply(by("t1"), appending("A", name="n", description="d"))
    assert applied.artifact == await store.get(by("t1"))
    assert (applied.artifact.name, applied.artifact.description, applied.artifact.text) == ("n", "d", "A")
    assert (applied.artifact.version, applied.artifact.open) == (0, True)


async def test_parts_of_every_kind_come_back_as_they_were_given(store: ArtifactStore) -> None:
    link = FilePart(url="https://example.org/", metadata={"k": [1.5, {"x": None}]})
    words = text("né😀", media_type="text/markdown", metadata={"partType": "s"})
    parts = (words, FILE, link, DATA)
    await store.apply(by("t1"), ReplaceParts(parts, last_chunk=True))
    assert (await store.get(by("t1"))).parts == parts
    assert (await store.versions(by("t1")))[0].content.parts == parts


async def test_the_current_versions_of_a_context_and_who_changed_them_last(store: ArtifactStore) -> None:
    assert await store.current_versions("c") == {}
    await store.apply(by("t1"), replacing("A", last_chunk=True))
    await store.apply(by("t1"), replacing("B", last_chunk=True))
    await store.apply(by("t1", "b"), replacing("draft"))
    await store.apply(by("t1", context="another"), replacing("x"))
    assert await store.current_versions("c") == {"a": (2, "t1"), "b": (0, "t1")}
    await store.apply(by("t2"), Undo())
    assert (await store.current_versions("c"))["a"] == (1, "t2")


async def test_parts_are_combined_by_kind(store: ArtifactStore) -> None:
    await store.apply(by("t1"), ReplaceParts((text("Hello "), FILE, text("World"))))
    await store.apply(by("t1"), AppendParts((DATA, text("!"), FILE)))
    assert (await store.get(by("t1"))).parts == (text("Hello World!"), FILE, FILE, DATA)
    await store.apply(by("t1"), ReplaceParts((text("Goodbye"), DATA)))
    assert (await store.get(by("t1"))).parts == (text("Goodbye"), FILE, FILE, DATA)


async def test_preparing_a_change_changes_nothing_and_is_no_promise(store: ArtifactStore) -> None:
    await store.prepare(by("t1"))
    assert await standing(store, by("t1")) is None
    assert await store.list("c") == ()
    await store.apply(by("t1"), replacing("A"))
    before = await standing(store, by("t1"))
    await store.prepare(by("t2"))
    assert await standing(store, by("t1")) == before
    with pytest.raises(ArtifactBusy):
        await store.apply(by("t2"), appending("B"))


async def test_contexts_do_not_see_each_other(store: ArtifactStore) -> None:
    await store.apply(by("t1", context="c1"), replacing("one"))
    await store.apply(by("t2", context="c2"), replacing("two"))
    assert [artifact.text for artifact in await store.list("c1")] == ["one"]
    assert (await store.get(by("t1", context="c2"))).text == "two"


async def ids(store: ArtifactStore) -> list[str]:
    return [artifact.artifact_id for artifact in await store.list("c")]


async def test_artifacts_are_listed_in_the_order_they_were_last_changed(store: ArtifactStore) -> None:
    for artifact in ("a", "b", "a", "d"):
        await store.apply(by("t1", artifact), appending("x"))
    assert await ids(store) == ["b", "a", "d"]
    await store.close(by("t1", "b"))
    assert await ids(store) == ["a", "d", "b"]


async def test_what_changes_nothing_leaves_the_order_of_the_list(store: ArtifactStore) -> None:
    await store.apply(by("t1", "a"), replacing("x", last_chunk=True))
    await store.apply(by("t1", "b"), replacing("x"))
    assert await store.close(by("t1", "a")) is None
    assert await store.discard(by("t1", "a")) is None
    await store.complete_call(by("t1", "a"))
    with pytest.raises(EmptyUpdate):
        await store.apply(by("t1", "a"), AppendParts(()))
    assert await ids(store) == ["a", "b"]


async def test_versions_are_numbered_and_have_an_author_a_task_and_a_parent(store: ArtifactStore) -> None:
    await store.apply(by("t1"), replacing("A", last_chunk=True))
    await store.apply(Ref("c", "a", "t2", author="user"), appending("B"))
    assert len(await store.versions(by("t1"))) == 1
    closed = await store.close(by("t2"))
    assert closed
    assert (closed.version, closed.last_chunk, closed.author) == (2, True, "user")
    assert await store.versions(by("t1")) == (
        Version(1, (await store.versions(by("t1")))[0].content, "agent", "t1", 0),
        Version(2, (await store.get(by("t1"))).content, "user", "t2", 1),
    )


async def test_every_version_has_the_time_at_which_it_was_made(store: ArtifactStore) -> None:
    with pytest.raises(ArtifactNotFound):
        await store.version_times(by("t1"))
    begun = datetime.now(UTC).replace(microsecond=0)
    await store.apply(by("t1"), replacing("A", last_chunk=True))
    await store.apply(by("t1"), appending("B"))
    times = await store.version_times(by("t1"))
    assert [*times] == [1]
    assert begun <= times[1] <= datetime.now(UTC)


async def test_versions_stay_as_they_were_whatever_follows(store: ArtifactStore) -> None:
    await store.apply(by("t1"), replacing("A", last_chunk=True))
    before = await store.versions(by("t1"))
    for change in (appending("B"), replacing("C"), delta(appending("D"))):
        await store.apply(by("t1"), change)
    await store.discard(by("t1"))
    after = await store.versions(by("t1"))
    assert [version.content.parts for version in after] == [(text("A"),), (text("AB"),)]
    assert after[:1] == before


async def test_last_chunk_closes_the_draft(store: ArtifactStore) -> None:
    applied = await store.apply(by("t1"), replacing("A", last_chunk=True))
    assert (applied.last_chunk, applied.version) == (True, 1)
    assert (applied.artifact.version, applied.artifact.open) == (1, False)
    assert await store.close(by("t1")) is None


async def test_a_draft_has_one_writer_and_others_change_nothing(store: ArtifactStore) -> None:
    await store.apply(by("t1"), replacing("A"))
    before = await standing(store, by("t1"))
    for change in (replacing("B"), appending("B", last_chunk=True)):
        with pytest.raises(ArtifactBusy) as caught:
            await store.apply(by("t2"), change)
        assert (caught.value.artifact_id, caught.value.task_id) == ("a", "t1")
    with pytest.raises(ArtifactBusy):
        await store.complete_call(by("t2"))
    assert await store.close(by("t2")) is None
    assert await store.discard(by("t2")) is None
    assert await standing(store, by("t1")) == before


async def test_of_tasks_that_write_at_once_one_gets_the_draft(store: ArtifactStore) -> None:
    writers = [store.apply(by(task), appending(task)) for task in ("t1", "t2", "t3")]
    results = await asyncio.gather(*writers, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["AppliedChange", "ArtifactBusy", "ArtifactBusy"]


PLAIN, HTML = text("A", media_type="text/plain"), text("B", media_type="text/html")


@pytest.mark.parametrize(
    "before",
    [(), (ReplaceParts((PLAIN,)),), (replacing("A", last_chunk=True),), (replacing("A"), delta(appending("B")))],
    ids=["nothing", "draft", "version", "call"],
)
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (ReplaceParts(()), EmptyUpdate),
        (AppendParts((), last_chunk=True), EmptyUpdate),
        (AppendParts((PLAIN, HTML)), MediaTypeConflict),
        (appending("x" * 101), ArtifactTooLarge),
        (delta(ReplaceParts((FilePart(b"x" * 101),))), ArtifactTooLarge),
        (AppendParts((FILE,) * 6), TooManyParts),
    ],
)
async def test_an_error_changes_nothing(
    store: ArtifactStore, before: tuple[Change, ...], change: Change, error: type[StoreError]
) -> None:
    for step in before:
        await store.apply(by("t1"), step)
    state = await standing(store, by("t1"))
    with pytest.raises(error):
        await store.apply(by("t1"), change)
    assert await standing(store, by("t1")) == state


async def test_a_media_type_that_does_not_fit_the_existing_text_changes_nothing(store: ArtifactStore) -> None:
    await store.apply(by("t1"), ReplaceParts((PLAIN,)))
    before = await standing(store, by("t1"))
    with pytest.raises(MediaTypeConflict, match=r"'text/plain'.*'text/html'"):
        await store.apply(by("t1"), AppendParts((FILE, HTML)))
    assert await standing(store, by("t1")) == before


async def test_an_artifact_may_reach_its_bounds(store: ArtifactStore) -> None:
    await store.apply(by("t1"), replacing("x" * 100))
    await store.apply(by("t1"), AppendParts((DataPart(1),) * 4))
    assert len((await store.get(by("t1"))).parts) == 5


async def test_a_cut_off_call_is_taken_back_and_a_kept_one_is_not(store: ArtifactStore) -> None:
    await store.apply(by("t1"), delta(replacing("A")))
    await store.complete_call(by("t1"))
    assert await store.discard(by("t1")) is None
    await store.apply(by("t1"), delta(appending("B")))
    back = await store.discard(by("t1"))
    assert back
    assert (back.append, back.parts) == (False, (text("A"),))
    assert (await store.get(by("t1"))).text == "A"
    assert await store.versions(by("t1")) == ()


async def test_where_nothing_was_complete_the_partial_text_stays_and_ends_as_an_incomplete_version(
    store: ArtifactStore,
) -> None:
    await store.apply(by("t1"), delta(replacing("A")))
    assert await store.discard(by("t1")) is None
    assert (await store.get(by("t1"))).text == "A"
    await store.close(by("t1"))
    assert [(v.number, v.incomplete) for v in await store.versions(by("t1"))] == [(1, True)]


async def test_a_name_and_a_description_stay_until_new_ones_are_given(store: ArtifactStore) -> None:
    await store.apply(by("t1"), replacing("A", name="n", description="d"))
    await store.apply(by("t1"), appending("B"))
    await store.apply(by("t1"), appending("C", description=""))
    artifact = await store.get(by("t1"))
    assert (artifact.name, artifact.description) == ("n", "")


# ------------------------------------------------------------------------------------------------- steps


async def versions_of(store: ArtifactStore, *contents: str) -> None:
    for content in contents:
        await store.apply(by("t1"), replacing(content, last_chunk=True))


async def test_each_version_can_be_read_by_its_number(store: ArtifactStore) -> None:
    await versions_of(store, "A", "B")
    await store.apply(by("t2"), appending("+"))
    assert [await store.version(by("t1"), number) for number in (1, 2)] == [*await store.versions(by("t1"))]


@pytest.mark.parametrize("number", [-1, 0, 3])
async def test_a_version_that_is_not_there_is_not_found_by_its_number(store: ArtifactStore, number: int) -> None:
    await versions_of(store, "A", "B")
    with pytest.raises(VersionNotFound, match=f"no version {number}; it has the versions 1 to 2") as caught:
        await store.version(by("t1"), number)
    assert (caught.value.artifact_id, caught.value.number, caught.value.count) == ("a", number, 2)


async def test_a_version_of_what_is_not_there_or_is_only_a_draft_is_not_found(store: ArtifactStore) -> None:
    with pytest.raises(ArtifactNotFound):
        await store.version(by("t1", "nothing"), 1)
    await store.apply(by("t1"), replacing("A"))
    with pytest.raises(VersionNotFound, match="no versions yet"):
        await store.version(by("t1"), 1)


async def test_an_edit_is_at_once_a_version_with_its_author_task_and_parent(store: ArtifactStore) -> None:
    await versions_of(store, "Hello World")
    applied = await store.apply(Ref("c", "a", "t2", "user"), EditText(Span(6, 11), "there", base=1))
    assert (applied.artifact.text, applied.version) == ("Hello there", 2)
    assert (applied.append, applied.last_chunk) == (False, True)
    made = await store.version(by("t1"), 2)
    assert (made.author, made.task_id, made.parent) == ("user", "t2", 1)
    assert (await store.version(by("t1"), 1)).content.text == "Hello World"


async def test_undo_redo_and_restore_go_through_the_versions(store: ArtifactStore) -> None:
    await versions_of(store, "A", "B", "C")
    steps = (Undo(), Undo(base=2), Redo(base=1), Restore(1, base=2), Undo(), Redo())
    told = [await store.apply(by("t2"), step) for step in steps]
    numbers = [applied.version for applied in told]
    assert (numbers, [applied.artifact.text for applied in told]) == ([2, 1, 2, 4, 2, 4], [*"BABABA"])
    assert all(applied.artifact.version == applied.version and not applied.append for applied in told)
    assert [version.parent for version in await store.versions(by("t1"))] == [0, 1, 2, 2]


async def test_what_one_task_made_is_undone_and_redone_as_a_group(store: ArtifactStore) -> None:
    await versions_of(store, "A")
    for content in "BCD":
        await store.apply(by("t2"), replacing(content, last_chunk=True))
    steps = (Undo(group=True), Redo(group=True), Undo(base=4), Undo(base=3, group=True), Redo(group=True))
    told = [await store.apply(by("t3"), step) for step in steps]
    assert [(applied.version, applied.artifact.text) for applied in told] == [
        (1, "A"),
        (4, "D"),
        (3, "C"),
        (1, "A"),
        (4, "D"),
    ]
    with pytest.raises(VersionConflict):
        await store.apply(by("t3"), Undo(base=3, group=True))
    assert len(await store.versions(by("t1"))) == 4


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (EditText(Span(0, 1), "x", base=1), VersionConflict),
        (EditText(Span(0, 1), "x", base=3), VersionConflict),
        (Restore(1, base=1), VersionConflict),
        (Undo(base=3), VersionConflict),
        (Redo(base=1), VersionConflict),
        (EditText(Span(0, 2), "x", base=2), OutsideText),
        (EditText(Span(1, 0), "x", base=2), OutsideText),
        (EditText(Span(0, 1), "x" * 101, base=2), ArtifactTooLarge),
        (Restore(0), VersionNotFound),
        (Restore(3), VersionNotFound),
        (Redo(), NothingToRedo),
    ],
)
async def test_a_step_that_is_refused_changes_nothing(
    store: ArtifactStore, step: Step, error: type[StoreError]
) -> None:
    await versions_of(store, "A", "B")
    before = await standing(store, by("t1"))
    with pytest.raises(error):
        await store.apply(by("t1"), step)
    assert await standing(store, by("t1")) == before


@pytest.mark.parametrize("step", [EditText(Span(0, 0), "x", 1), Restore(1), Undo(), Redo()])
async def test_a_step_needs_an_artifact_and_nobody_else_writing_it(store: ArtifactStore, step: Step) -> None:
    with pytest.raises(ArtifactNotFound):
        await store.apply(by("t1"), step)
    assert await standing(store, by("t1")) is None
    await store.apply(by("t1"), replacing("A", last_chunk=True))
    await store.apply(by("t2"), appending("B"))
    before = await standing(store, by("t1"))
    with pytest.raises(ArtifactBusy) as caught:
        await store.apply(by("t1"), step)
    assert caught.value.task_id == "t2"
    assert await standing(store, by("t1")) == before


@pytest.mark.parametrize("step", [EditText(Span(0, 0), "x", 1), Restore(1), Undo(), Redo()])
async def test_no_step_is_made_in_the_middle_of_a_call(store: ArtifactStore, step: Step) -> None:
    await versions_of(store, "A")
    await store.apply(by("t1"), delta(appending("B")))
    with pytest.raises(ArtifactBusy):
        await store.apply(by("t1"), step)
    assert (await store.get(by("t1"))).text == "AB"


async def test_at_the_first_version_there_is_nothing_to_undo(store: ArtifactStore) -> None:
    await versions_of(store, "A")
    with pytest.raises(NothingToUndo, match="nothing to undo"):
        await store.apply(by("t1"), Undo())
    assert (await store.get(by("t1"))).version == 1
