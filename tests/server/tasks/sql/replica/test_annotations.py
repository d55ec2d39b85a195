"""Annotations on several replicas: each step is decided by what the ones before it have committed."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from a2a_canvas.server.agent.events import State, UserMessage
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.sql.projections.context_holders import context_holders
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.annotations.annotation import Annotation
from a2a_canvas.store.changes import ReplaceParts
from a2a_canvas.store.models import Ref, text_part
from tests.server.tasks.kept_count import counted, recounted
from tests.server.tasks.sql.replica_harness import Replica, Replicas, ended, replicas

TEXT = "One two three.\nFour five six.\n"
TWO = {"start": 4, "end": 7, "text": "two"}


@pytest.fixture
async def several() -> AsyncIterator[Replicas]:
    async with replicas() as started:
        yield started


def operation(op: str, words: str = "words", **fields: object) -> UserMessage:
    given = {"op": op, "artifactId": "doc", **fields}
    return UserMessage(f"m-{op}-{words}", (text_part(words),), {CANVAS: given})


async def run(replica: Replica, message: UserMessage) -> TaskRecord:
    following = await replica.send(message)
    return await ended(replica, following.snapshot.task_id)


async def listed(replica: Replica) -> tuple[Annotation, ...]:
    return await replica.backend.journal.annotations.list("c", "doc")


async def suggest(replica: Replica, words: str) -> str:
    assert (await run(replica, operation("annotate", words, selection=TWO, replacement=words))).state is State.COMPLETED
    return (await listed(replica))[-1].annotation_id


async def write(replica: Replica) -> None:
    await run(replica, operation("put", name="doc", text=TEXT))


async def test_of_two_replicas_that_accept_at_once_one_wins(several: Replicas) -> None:
    one, two = [await several.start() for _ in range(2)]
    await write(one)
    for number in range(5):
        suggestion = await suggest(one, f"2 {number}")
        found = await asyncio.gather(
            *(
                run(replica, operation("accept", f"{name}{number}", annotationId=suggestion))
                for name, replica in (("one", one), ("two", two))
            )
        )
        assert sorted(each.state for each in found) == [State.COMPLETED, State.REJECTED]
        [loser] = [each for each in found if each.state is State.REJECTED]
        assert "is accepted already" in loser.message.text
        await run(one, operation("undo", f"undo{number}"))
    async with one.backend._database.read() as connection:
        assert (await connection.execute(select(context_holders))).all() == []
    assert await counted(one.backend._database) == await recounted(one.backend._database)


async def test_replicas_comment_at_once_and_each_comment_has_its_number(several: Replicas) -> None:
    started = [await several.start() for _ in range(3)]
    await write(started[0])
    await asyncio.gather(
        *(
            run(replica, operation("annotate", f"{place}-{number}", selection=TWO))
            for place, replica in enumerate(started)
            for number in range(4)
        )
    )
    annotations = await listed(started[1])
    assert [each.number for each in annotations] == [*range(1, 13)]
    assert {each.thread[0].text for each in annotations} == {f"{a}-{b}" for a in range(3) for b in range(4)}


async def test_comments_do_not_wait_for_a_draft_on_another_replica(several: Replicas) -> None:
    one, two = [await several.start() for _ in range(2)]
    await write(one)
    suggestion = await suggest(one, "2")
    await one.backend.store.apply(Ref("c", "doc", "writer"), ReplaceParts((text_part("Draft"),)))
    assert (await run(two, operation("annotate", "meanwhile", selection=TWO, baseVersion=1))).state is State.COMPLETED
    rejected = await run(two, operation("accept", annotationId=suggestion))
    assert (rejected.state, rejected.message.metadata[CANVAS]["busy"]) == (State.REJECTED, True)


async def test_annotations_are_not_part_of_what_the_model_is_shown(several: Replicas) -> None:
    replica = await several.start()
    await write(replica)
    await suggest(replica, "2")
    later = await run(replica, operation("undo", "later"))
    journal = replica.backend.journal
    assert [len(each) for each in await journal.earlier_transcripts(later)] == [2, 0]
