"""What an evented store tells.

The law (docs/a2a.md, "How parts are combined"): fold it as a stock client does, group it by kind, and you have the
store's artifact. And the end of every version is told, before anything of a later one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from a2a_canvas.store.changes import AppendParts, Change, EditText, Redo, ReplaceParts, Restore, Step, Undo
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, Selection
from a2a_canvas.store.errors import ArtifactBusy, ArtifactNotFound, EmptyUpdate, StoreError, VersionConflict
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import AppliedChange, FilePart, Limits, Ref
from a2a_canvas.store.text.spans import Span
from tests.property_examples import examples
from tests.store.artifact_builders import KINDS, PARTS, StockClient, appending, by, delta, replacing, result, text

TASKS = ("t1", "t2")
TASK, ARTIFACT = st.sampled_from(TASKS), st.sampled_from(["a", "b"])
SMALL = Limits(artifact_bytes=40, parts=8)
COMPLETED = EditCompleted("e", "a", Selection(0, 1), "new", Selection(0, 3), "replace", 1)


class Watched(RuleBasedStateMachine):
    """Tasks that write the artifacts of one context, each watched by a client that sees its events alone."""

    @initialize()
    def begin(self) -> None:
        self.store = InMemoryArtifactStore(SMALL)
        self.clients = {task: StockClient() for task in TASKS}
        self.seen: dict[str, set[str]] = {task: set() for task in TASKS}
        self.telling = {task: self.open(task) for task in TASKS}

    def open(self, task: str) -> EventedArtifactStore:
        return EventedArtifactStore(self.store, self.clients[task].listen, self.seen[task])

    @rule(
        task=TASK,
        artifact=ARTIFACT,
        kind=KINDS,
        parts=st.lists(PARTS, min_size=1, max_size=3).map(tuple),
        name=st.sampled_from([None, None, "n", "m"]),
        last_chunk=st.sampled_from([False, False, True]),
        done=st.booleans(),
    )
    def apply(self, task: str, artifact: str, kind: type[Change], last_chunk: bool, done: bool, **rest: object) -> None:
        change = kind(rest["parts"], name=rest["name"], last_chunk=last_chunk, done=done)  # type: ignore[arg-type]
        told = len(self.clients[task].told)
        try:
            applied = result(self.telling[task].apply(by(task, artifact), change))
        except StoreError:
            assert len(self.clients[task].told) == told
        else:
            self.check(task, applied, told)

    @rule(
        task=TASK,
        artifact=ARTIFACT,
        step=st.builds(Restore, st.integers(1, 3)) | st.sampled_from([Undo(), Undo(), Redo()]),
    )
    def step(self, task: str, artifact: str, step: Step) -> None:
        self.change(task, artifact, step)

    @rule(task=TASK, artifact=ARTIFACT, start=st.integers(0, 3), more=st.integers(0, 2), told=st.booleans())
    def edit(self, task: str, artifact: str, start: int, more: int, told: bool) -> None:
        version = 0
        with suppress(ArtifactNotFound):
            at = result(self.store.get(by(task, artifact)))
            version = len(result(self.store.versions(by(task, artifact)))) + 1 if at.open else at.version
        self.change(task, artifact, EditText(Span(start, start + more), "new", version), told)

    @rule(task=TASK, artifact=ARTIFACT)
    def show(self, task: str, artifact: str) -> None:
        ref, client = by(task, artifact), self.clients[task]
        try:
            result(self.telling[task].resend(ref))
        except ArtifactNotFound:
            return
        artifact_now, versions = result(self.store.get(ref)), result(self.store.versions(ref))
        foreign = self.writer_of(artifact) not in (None, task)
        shown = versions[artifact_now.version - 1].content if foreign and versions else artifact_now.content
        assert client.reads(artifact) == shown

    def writer_of(self, artifact: str) -> str | None:
        """Whose draft is open: an error says so to anybody else."""
        try:
            result(self.store.complete_call(by("nobody", artifact)))
        except ArtifactBusy as error:
            return error.task_id
        return None

    def change(self, task: str, artifact: str, change: Step, announced: bool = False) -> None:
        ref, client, store = by(task, artifact), self.clients[task], self.telling[task]
        told, heard = len(client.told), len(client.heard)
        try:
            if announced and isinstance(change, EditText):
                applied = result(store.complete_edit(ref, change, COMPLETED))
                assert client.heard[heard:] == [*closed_by(applied), COMPLETED, applied]
            else:
                applied = result(store.apply(ref, change))
        except StoreError:
            assert len(client.heard) == heard
        else:
            assert (applied.append, applied.last_chunk) == (False, True)
            self.check(task, applied, told)

    @rule(task=TASK, artifact=ARTIFACT)
    def keep(self, task: str, artifact: str) -> None:
        told = len(self.clients[task].told)
        with suppress(StoreError):
            result(self.telling[task].complete_call(by(task, artifact)))
        assert len(self.clients[task].told) == told

    @rule(task=TASK, artifact=ARTIFACT)
    def close(self, task: str, artifact: str) -> None:
        if self.clients[task].knows(artifact):
            told = len(self.clients[task].told)
            self.check(task, result(self.telling[task].close(by(task, artifact))), told)

    @rule(task=TASK, artifact=ARTIFACT)
    def cut_off(self, task: str, artifact: str) -> None:
        told = len(self.clients[task].told)
        self.check(task, result(self.telling[task].discard(by(task, artifact))), told)

    @rule(task=TASK)
    def pause_and_go_on(self, task: str) -> None:
        """The turn ends; a new one goes on with the same task."""
        result(self.telling[task].close_all())
        self.seen[task] = {applied.artifact.artifact_id for applied in self.clients[task].told}
        self.telling[task] = self.open(task)
        for artifact in self.seen[task]:
            assert result(self.store.close(by(task, artifact))) is None, "its draft was still open"

    def check(self, task: str, applied: AppliedChange | None, told: int) -> None:
        client = self.clients[task]
        assert client.told[told:] == ([*closed_by(applied), applied] if applied else [])
        if applied:
            artifact = applied.artifact
            assert artifact == result(self.store.get(by(task, artifact.artifact_id)))
            assert client.reads(artifact.artifact_id) == artifact.content

    def teardown(self) -> None:
        """The last word of a task about an artifact is what the store has, unless another task wrote after it."""
        if not hasattr(self, "store"):
            return
        for task in TASKS:
            before = {artifact.artifact_id for artifact in result(self.store.list("c")) if artifact.open}
            result(self.telling[task].close_all())
            for artifact in result(self.store.list("c")):
                if artifact.artifact_id in before and not artifact.open:
                    assert self.clients[task].reads(artifact.artifact_id) == artifact.content
                self.check_ends(task, artifact.artifact_id)

    def check_ends(self, task: str, artifact_id: str) -> None:
        """The task's client is told the end of each version that the task made, before anything of a later one."""
        told = [each for each in self.clients[task].told if each.artifact.artifact_id == artifact_id]
        for version in result(self.store.versions(by(task, artifact_id))):
            if version.task_id == task:
                newer = [n for n, each in enumerate(told) if each.version > version.number]
                ends = [n for n, each in enumerate(told) if each.version == version.number and each.last_chunk]
                assert ends
                assert ends[0] < min(newer, default=len(told))
                assert told[ends[0]].artifact.content == version.content


def closed_by(applied: AppliedChange) -> list[AppliedChange]:
    """The end of a draft that a change has closed is told first."""
    return [applied.closed] if applied.closed else []


TestWatched = Watched.TestCase
TestWatched.settings = settings(max_examples=examples(300), stateful_step_count=20)

# ---------------------------------------------------------------------------------------- fixed examples

FILE = FilePart(b"1")


@pytest.fixture
def store() -> InMemoryArtifactStore:
    return InMemoryArtifactStore()


@pytest.fixture
def client() -> StockClient:
    return StockClient()


async def test_the_first_change_of_an_artifact_in_a_task_replaces_whatever_it_was(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    await store.apply(by("t0"), replacing("A", last_chunk=True))
    telling = EventedArtifactStore(store, client.listen)
    first = await telling.apply(by("t1"), appending("B"))
    assert (first.append, first.parts) == (False, (text("AB"),))
    new = await telling.apply(by("t1", "b"), appending("X"))
    assert (new.append, new.parts) == (False, (text("X"),))
    assert client.told == [first, new]


async def test_the_first_change_replaces_even_where_the_same_task_wrote_the_artifact_unseen(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    await store.apply(by("t1"), replacing("A"))
    applied = await EventedArtifactStore(store, client.listen).apply(by("t1"), appending("B"))
    assert (applied.append, applied.parts) == (False, (text("AB"),))


async def test_an_append_tells_only_the_new_parts_and_a_replacement_all_as_they_stand(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1"), ReplaceParts((text("A"), FILE)))
    await telling.apply(by("t1"), AppendParts((FILE, text("B"))))
    await telling.apply(by("t1"), replacing("C"))
    assert [(told.append, told.parts, told.last_chunk) for told in client.told] == [
        (False, (text("A"), FILE), False),
        (True, (FILE, text("B")), False),
        (True, (text(""),), True),
        (False, (text("C"), FILE, FILE), False),
    ]


@pytest.mark.parametrize("draft", [replacing("A"), ReplaceParts((FILE,))], ids=["a text", "a file"])
@pytest.mark.parametrize(
    "change", [replacing("B"), replacing("B", last_chunk=True), Restore(1), EditText(Span(0, 0), "B", 2)], ids=str
)
async def test_a_change_that_closes_a_draft_tells_its_end_first(
    store: InMemoryArtifactStore, client: StockClient, draft: Change, change: Change
) -> None:
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1"), replacing("First", last_chunk=True))
    before = await telling.apply(by("t1"), draft)
    applied = await telling.apply(by("t1"), change)
    end, after = client.told[-2:]
    assert (end.version, end.last_chunk, end.parent) == (2, True, 1)
    assert end.parts in ((text(""),), before.artifact.parts)
    assert (after, after.version, after.parent) == (applied, 3, 2)
    assert telling.known_version("a") in (2, 3)


async def test_a_change_that_is_refused_closes_nothing(store: InMemoryArtifactStore, client: StockClient) -> None:
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1"), replacing("A"))
    for refused in (ReplaceParts(()), Restore(7), EditText(Span(5, 9), "", 1)):
        with pytest.raises(StoreError):
            await telling.apply(by("t1"), refused)
    assert len(client.told) == 1
    assert (await store.get(by("t1"))).open


async def test_a_turn_that_goes_on_after_a_pause_appends_to_what_its_task_has_told(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    before = EventedArtifactStore(store, client.listen)
    await before.apply(by("t1"), replacing("A"))
    await before.close_all()
    after = EventedArtifactStore(store, client.listen, seen=["a"])
    assert (await after.apply(by("t1"), appending("B"))).append
    assert client.reads("a").parts == (text("AB"),)


@pytest.mark.parametrize("paused", [False, True])
async def test_what_another_task_wrote_in_between_is_told_with_the_next_append(
    store: InMemoryArtifactStore, client: StockClient, paused: bool
) -> None:
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1"), replacing("A", last_chunk=True))
    await store.apply(by("t2"), appending("B", last_chunk=True))
    if paused:
        telling = EventedArtifactStore(store, client.listen, seen=["a"])
    applied = await telling.apply(by("t1"), appending("C"))
    assert (applied.append, applied.parts) == (False, (text("ABC"),))


async def test_a_call_that_is_taken_back_is_told_as_a_replacement(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1"), replacing("A"))
    await telling.apply(by("t1"), delta(appending("B")))
    await telling.discard(by("t1"))
    assert [(told.append, told.parts) for told in client.told] == [
        (False, (text("A"),)),
        (True, (text("B"),)),
        (False, (text("A"),)),
    ]


async def test_the_number_of_a_discarded_draft_is_not_known_to_the_model(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    await store.apply(by("t1"), replacing("A", last_chunk=True))
    evented = EventedArtifactStore(store, client.listen)
    evented.model_read("a", 1)
    await evented.apply(by("t1"), delta(appending("B")))
    await evented.discard(by("t1"))
    await store.apply(by("t2"), appending("C", last_chunk=True))
    assert (await evented.apply(by("t1"), appending("D"))).parent == 2
    assert evented.known_version("a") == 1  # so the model learns that somebody else made version 2


async def test_errors_keeps_and_closes_of_nothing_tell_nothing(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1"), delta(replacing("A")))
    await telling.complete_call(by("t1"))
    with pytest.raises(EmptyUpdate):
        await telling.apply(by("t1"), AppendParts(()))
    with pytest.raises(ArtifactBusy):
        await EventedArtifactStore(store, client.listen).apply(by("t2"), appending("B"))
    assert await telling.discard(by("t1")) is None
    assert len(client.told) == 1
    assert await telling.close(by("t1"))
    assert await telling.close(by("t1")) is None
    assert len(client.told) == 2


async def test_reads_pass_through(store: InMemoryArtifactStore, client: StockClient) -> None:
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1"), replacing("A", last_chunk=True))
    assert await telling.get(by("t1")) == await store.get(by("t1"))
    assert await telling.list("c") == await store.list("c")
    assert await telling.versions(by("t1")) == await store.versions(by("t1"))


async def test_close_all_closes_the_drafts_of_this_turn_and_takes_unfinished_calls_back_first(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    await store.apply(by("t2", "other"), replacing("O"))
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1", "closed"), replacing("C", last_chunk=True))
    await telling.apply(by("t1", "draft"), replacing("D"))
    await telling.apply(by("t1", "draft"), delta(appending("!")))
    await telling.apply(by("t1", "partial"), delta(replacing("P")))
    told = len(client.told)
    await telling.close_all()
    await telling.close_all()
    assert [(t.artifact.artifact_id, t.artifact.text, t.last_chunk) for t in client.told[told:]] == [
        ("draft", "D", False),
        ("draft", "D", True),
        ("partial", "P", True),
    ]
    assert [version.incomplete for version in await store.versions(by("t1", "partial"))] == [True]
    assert (await store.get(by("t2", "other"))).open


async def test_a_draft_that_a_crash_has_left_open_is_gone_on_with_and_closed_as_this_turns_own(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    for name in ("a", "b"):
        await store.apply(by("t1", name), replacing("A"))
    telling = EventedArtifactStore(store, client.listen, seen=["a", "b"])
    telling.adopt_draft(by("t1"))
    await telling.resend(by("t1"))
    await telling.prepare_all()
    await telling.close_all()
    assert [(told.artifact.text, told.last_chunk) for told in client.told] == [("A", False), ("A", True)]
    assert (await store.get(by("t1", "b"))).open


async def test_before_drafts_are_closed_all_of_them_can_be_got_hold_of(client: StockClient) -> None:
    class Noting(InMemoryArtifactStore):
        prepared: tuple[str, ...] = ()

        async def prepare(self, ref: Ref) -> None:
            self.prepared += (ref.artifact_id,)

    store = Noting()
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1", "closed"), replacing("C", last_chunk=True))
    await telling.apply(by("t1", "draft"), replacing("D"))
    telling.adopt_draft(by("t1", "left"))
    await telling.prepare_all()
    assert store.prepared == ("draft", "left")


# ---------------------------------------------------------------------------------------- edits and steps


async def test_what_is_told_of_an_edit_is_passed_on_in_order_and_changes_nothing(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    telling = EventedArtifactStore(store, client.listen)
    told = (
        EditStarted("e", "a", Selection(0, 1), "replace", 1),
        EditChunk("e", "a", Selection(0, 1), "x"),
        EditAborted("e", "a", Selection(0, 1)),
    )
    for event in told:
        await telling.report_edit(event)
    assert client.heard == [*told]
    assert await store.list("c") == ()


async def test_an_edit_is_told_to_be_complete_just_before_its_change(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    telling = EventedArtifactStore(store, client.listen)
    await store.apply(by("t0"), replacing("A", last_chunk=True))
    applied = await telling.complete_edit(by("t1"), EditText(Span(0, 1), "new", 1), COMPLETED)
    assert client.heard == [COMPLETED, applied]
    assert (applied.append, applied.version, applied.last_chunk) == (False, 2, True)
    assert client.reads("a").text == "new"


@pytest.mark.parametrize("base", [1, 3])
async def test_where_the_store_refuses_an_edit_nothing_is_told(
    store: InMemoryArtifactStore, client: StockClient, base: int
) -> None:
    for content in ("A", "B"):
        await store.apply(by("t0"), replacing(content, last_chunk=True))
    with pytest.raises(VersionConflict):
        await EventedArtifactStore(store, client.listen).complete_edit(
            by("t1"), EditText(Span(0, 1), "new", base), COMPLETED
        )
    assert client.heard == []
    assert (await store.get(by("t0"))).text == "B"


async def test_an_edit_that_closes_the_draft_of_its_turn_leaves_none_to_close(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1"), replacing("A"))
    await telling.complete_edit(by("t1"), EditText(Span(0, 1), "new", 1), COMPLETED)
    told = len(client.told)
    await telling.close_all()
    assert len(client.told) == told
    assert len(await store.versions(by("t1"))) == 2


async def test_an_artifact_is_shown_as_it_stands_and_changes_nothing(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    for content in ("A", "B"):
        await store.apply(Ref("c", "a", "t0", "user"), replacing(content, last_chunk=True))
    await store.apply(by("t0"), Undo())
    before = await store.get(by("t1")), await store.versions(by("t1"))
    await EventedArtifactStore(store, client.listen).resend(by("t1"))
    (shown,) = client.told
    assert (shown.append, shown.parts, shown.last_chunk) == (False, (text("A"),), True)
    assert (shown.version, shown.author) == (1, "user")
    assert (await store.get(by("t1")), await store.versions(by("t1"))) == before


async def test_a_draft_of_the_same_turn_is_shown_as_the_version_that_it_will_be(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    for content in ("A", "B"):
        await store.apply(Ref("c", "a", "t0", "user"), replacing(content, last_chunk=True))
    await store.apply(by("t0"), Undo())
    telling = EventedArtifactStore(store, client.listen)
    written = await telling.apply(by("t1"), appending("+"))
    await telling.resend(by("t1"))
    assert client.told == [written, replace(written, resent=True)]


async def test_what_another_task_is_still_writing_is_not_shown(
    store: InMemoryArtifactStore, client: StockClient
) -> None:
    await store.apply(by("t0"), replacing("A", last_chunk=True))
    await store.apply(by("t2"), delta(appending("half a")))
    await EventedArtifactStore(store, client.listen).resend(by("t1"))
    (shown,) = client.told
    assert (shown.parts, shown.last_chunk, shown.version) == ((text("A"),), True, 1)


async def test_what_is_not_there_cannot_be_shown(store: InMemoryArtifactStore, client: StockClient) -> None:
    with pytest.raises(ArtifactNotFound):
        await EventedArtifactStore(store, client.listen).resend(by("t1"))
    assert client.heard == []


@pytest.mark.parametrize("change", [Undo(), Restore(1), EditText(Span(0, 1), "x", 2)])
async def test_a_step_of_another_task_is_told_with_the_next_append(
    store: InMemoryArtifactStore, client: StockClient, change: Step
) -> None:
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1"), replacing("A", last_chunk=True))
    await telling.apply(by("t1"), appending("B", last_chunk=True))
    await store.apply(by("t2"), change)
    applied = await telling.apply(by("t1"), appending("C"))
    assert not applied.append
    assert client.reads("a") == (await store.get(by("t1"))).content


@pytest.mark.parametrize("change", [Undo(), Restore(1), EditText(Span(0, 1), "x", 2)])
async def test_a_step_of_the_task_itself_can_be_appended_to(
    store: InMemoryArtifactStore, client: StockClient, change: Step
) -> None:
    telling = EventedArtifactStore(store, client.listen)
    await telling.apply(by("t1"), replacing("A", last_chunk=True))
    await telling.apply(by("t1"), appending("B", last_chunk=True))
    assert not (await telling.apply(by("t1"), change)).append
    assert (await telling.apply(by("t1"), appending("C"))).append
    assert client.reads("a") == (await store.get(by("t1"))).content
