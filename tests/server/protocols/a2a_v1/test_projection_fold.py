"""The law of the wire: fold a task's events as a stock client does, join the texts, and you have the store's artifact.

The oracle is the SDK's own fold. Everything between the model and the events is real.
"""

import itertools
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from a2a.server.tasks.task_manager import append_artifact_to_task
from a2a.types import a2a_pb2 as pb
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import ArtifactChanged, State, StatusChanged, UserMessage
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import ActivatedExtensions
from a2a_canvas.server.protocols.a2a_v1.projection.parts import to_part
from a2a_canvas.server.protocols.a2a_v1.projection.projection import TaskProjection, to_task
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.store.changes import Change, EditText, Redo, Restore, Undo
from a2a_canvas.store.errors import StoreError
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Artifact, Limits, Ref, text_part
from a2a_canvas.store.text.spans import Span
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import contexts_of, no_time
from tests.property_examples import examples
from tests.server.protocols.a2a_v1.model_rounds import (
    Player,
    Round,
    rounds,
)

CONTEXT = "c"


class InMemoryRuntime:
    """A runtime with everything it needs, in memory."""

    def __init__(self, llm: Player) -> None:
        now = lambda: datetime(2026, 1, 1, tzinfo=UTC)  # noqa: E731
        ids = itertools.count()
        self.store = InMemoryArtifactStore(Limits(artifact_bytes=150, parts=8))
        self.runtime = Runtime(
            contexts=contexts_of(InMemoryJournal(now), self.store),
            llm=llm,
            tools=lambda: TOOLS,
            now=now,
            new_id=lambda shard=None: f"id{next(ids)}",
            sleep=no_time,
        )

    async def play(self, text: str, steps: Iterable[Change] = ()) -> tuple[TaskRecord, list[Entry]]:
        """A task from its beginning to its end; every question is answered, after another task has made a step."""
        left = iter(steps)
        message = UserMessage("m", (text_part(text),))
        following = await self.runtime.send(Incoming(message, context_id=CONTEXT), ANONYMOUS)
        entries = []
        async for entry in following:
            entries.append(entry)
            if isinstance(entry.event, StatusChanged) and entry.event.state is State.INPUT_REQUIRED:
                await self._step(next(left, None))
                await self.runtime.send(Incoming(message, task_id=following.snapshot.task_id), ANONYMOUS)
        return following.snapshot, entries

    async def _step(self, step: Change | None) -> None:
        for artifact in await self.store.list(CONTEXT) if step else ():
            change = replace(step, base=artifact.version) if isinstance(step, EditText) else step
            with suppress(StoreError):
                await self.store.apply(Ref(CONTEXT, artifact.artifact_id, "another"), change)


def folded(record: TaskRecord, entries: Iterable[Entry]) -> pb.Task:
    """What a stock client that joins at `record` has in the end."""
    projection = TaskProjection(record, ActivatedExtensions(), ends_at_pause=False)
    task = to_task(record)
    for entry in entries:
        for event in projection.project(entry):
            if isinstance(event, pb.TaskArtifactUpdateEvent):
                append_artifact_to_task(task, event)
    return task


def joined(parts: Iterable[pb.Part]) -> list[pb.Part]:
    """Parts as docs/a2a.md tells clients to join them: all text is one part, files and data stand where they stand."""
    kept: list[pb.Part] = []
    for part in parts:
        text = next((other for other in kept if other.HasField("text")), None)
        if part.HasField("text") and text:
            text.text += part.text
            text.media_type = text.media_type or part.media_type
            text.metadata.update(dict(part.metadata.items()))
        else:
            kept.append(pb.Part.FromString(part.SerializeToString()))
    return kept


def expected(artifact: Artifact) -> pb.Artifact:
    return pb.Artifact(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        description=artifact.description,
        parts=[to_part(part) for part in artifact.parts],
    )


def seen(task: pb.Task) -> dict[str, pb.Artifact]:
    return {
        artifact.artifact_id: pb.Artifact(
            artifact_id=artifact.artifact_id,
            name=artifact.name,
            description=artifact.description,
            parts=joined(artifact.parts),
        )
        for artifact in task.artifacts
    }


@settings(max_examples=examples(200))
@given(
    rounds=rounds,
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    breaks=st.dictionaries(st.integers(0, 6), st.integers(1, 30), max_size=2),
    joins=st.lists(st.integers(0, 200), max_size=3),
)
async def test_folding_a_tasks_events_gives_the_artifacts_of_the_store_from_wherever_one_joins(
    rounds: list[Round], sizes: list[int], breaks: dict[int, int], joins: list[int]
) -> None:
    runtime = InMemoryRuntime(Player(rounds, sizes, breaks))
    start, entries = await runtime.play("write")
    records = list(itertools.accumulate(entries, fold, initial=start))
    store = {artifact.artifact_id: expected(artifact) for artifact in await runtime.store.list(CONTEXT)}
    assert seen(to_task(records[-1])) == store
    for at in {0, len(entries), *(join % len(records) for join in joins)}:
        assert seen(folded(records[at], entries[at:])) == store


@settings(max_examples=examples(200))
@given(
    rounds=st.lists(rounds, min_size=2, max_size=3),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    steps=st.lists(
        st.sampled_from(
            [Undo(), Undo(group=True), Redo(), Redo(group=True), Restore(1), EditText(Span(0, 0), "another's ", 0)]
        ),
        max_size=3,
    ),
)
async def test_what_other_tasks_undo_restore_and_edit_in_between_is_told_with_the_next_change(
    rounds: list[list[Round]], sizes: list[int], steps: list[Change]
) -> None:
    pause: Round = [("ask_user", {"question": "Go on?"})]
    runtime = InMemoryRuntime(Player([each for some in rounds for each in (*some, pause)], sizes, {}))
    start, entries = await runtime.play("write", steps)
    found = seen(folded(start, entries))
    for artifact in await runtime.store.list(CONTEXT):
        told = [entry.event for entry in entries if isinstance(entry.event, ArtifactChanged)]
        last = [event.version for event in told if event.artifact_id == artifact.artifact_id][-1]
        if last == artifact.version:  # nobody else has had the last word
            assert found[artifact.artifact_id] == expected(artifact)


@settings(max_examples=examples(50))
@given(first=rounds, second=rounds)
async def test_a_later_task_leaves_the_artifacts_of_a_finished_one_as_it_left_them(
    first: list[Round], second: list[Round]
) -> None:
    runtime = InMemoryRuntime(Player([*first, (), *second], [7], {}))
    start, _ = await runtime.play("first")
    left = to_task(await runtime.runtime.get(start.task_id, ANONYMOUS))
    later, entries = await runtime.play("second")
    assert to_task(await runtime.runtime.get(start.task_id, ANONYMOUS)) == left
    store = {artifact.artifact_id: expected(artifact) for artifact in await runtime.store.list(CONTEXT)}
    for artifact_id, artifact in seen(folded(later, entries)).items():
        assert artifact == store[artifact_id]
