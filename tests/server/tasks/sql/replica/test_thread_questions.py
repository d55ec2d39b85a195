"""A comment that asks the agent, and a crash: the comment is made once, and the answer is given once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from a2a_canvas import Turn
from a2a_canvas.server.agent.events import State, UserMessage
from a2a_canvas.server.tasks.runtime import turn_review
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.models import text_part
from tests.fakes import Hold, Step, answer, text, tool
from tests.server.tasks.runtime.runtime_harness import rest
from tests.server.tasks.sql.replica_harness import SOON, Replica, Replicas, ended

TEXT = "One two three.\n"
TWO = {"start": 4, "end": 7, "text": "two"}
ASK = "Is that right?"
IT_IS = answer(text("It is."))


def operation(op: str, words: str = ASK, **fields: object) -> UserMessage:
    return UserMessage(f"m-{op}", (text_part(words),), {CANVAS: {"op": op, "artifactId": "doc", **fields}})


async def begin(replica: Replica) -> str:
    await rest(await replica.send(operation("put", name="doc", text=TEXT)))
    following = await replica.send(operation("annotate", selection=TWO, ask=True))
    return following.snapshot.task_id


async def threads(replica: Replica) -> list[list[tuple[str, str]]]:
    annotations = await replica.backend.journal.annotations.list("c", "doc")
    return [[(each.writer.author, each.text) for each in annotation.thread] for annotation in annotations]


async def crash(replica: Replica, hold: Hold) -> None:
    """When the step has been reached, and everything before it is on disk."""
    async with asyncio.timeout(SOON):
        await hold.reached.wait()
    await replica.backend.commits.flushed()
    await replica.crash()


def held(step: Callable[..., Any], hold: Hold) -> Callable[..., Any]:
    async def wait(*given: Any, **options: Any) -> Any:
        await hold()
        return await step(*given, **options)

    return wait


@pytest.mark.parametrize(
    ("step", "first", "second"),
    [("add_question", [], [IT_IS]), ("add_answer", [IT_IS], [])],
    ids=["before the comment", "before the answer is in the thread"],
)
async def test_a_crash_between_two_steps_repeats_neither(
    started: Replicas,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    first: Iterable[Iterable[Step]],
    second: Iterable[Iterable[Step]],
) -> None:
    hold = Hold()
    with monkeypatch.context() as patched:
        patched.setattr(turn_review, step, held(getattr(turn_review, step), hold))
        replica = await started.start(*first)
        task_id = await begin(replica)
        await crash(replica, hold)
    replica = await started.start(*second)
    record = await ended(replica, task_id)
    assert (record.state, record.message and record.message.text) == (State.COMPLETED, "It is.")
    assert await threads(replica) == [[("user", ASK), ("agent", "It is.")]]
    assert len(replica.llm.requests) == len([*second])


async def test_a_crash_while_the_model_answers_repeats_its_answer_alone(started: Replicas) -> None:
    hold = Hold()
    replica = await started.start(answer(text("It "), hold))
    task_id = await begin(replica)
    await crash(replica, hold)
    replica = await started.start(IT_IS)
    assert (await ended(replica, task_id)).state is State.COMPLETED
    assert await threads(replica) == [[("user", ASK), ("agent", "It is.")]]


async def test_a_reply_that_the_model_made_before_a_crash_counts_after_it(started: Replicas) -> None:
    hold = Hold()
    replies = tool("T1", "reply", {"artifact_id": "doc", "number": 1, "text": "Yes."})
    replica = await started.start(answer(replies), answer(hold, text("Done.")))
    task_id = await begin(replica)
    await crash(replica, hold)
    replica = await started.start(answer(text("Done.")))
    assert (await ended(replica, task_id)).state is State.COMPLETED
    assert await threads(replica) == [[("user", ASK), ("agent", "Yes.")]]


async def test_a_cancelled_question_keeps_its_comment_after_a_crash(started: Replicas) -> None:
    hold = Hold()
    replica = await started.start(answer(text("It "), hold))
    task_id = await begin(replica)
    await crash(replica, hold)
    hold = Hold()
    replica = await started.start(answer(text("It "), hold))
    async with asyncio.timeout(SOON):
        await hold.reached.wait()
    replica.runtime.cancel_turn(task_id)
    assert (await ended(replica, task_id)).state is State.CANCELED
    assert await threads(replica) == [[("user", ASK)]]


async def test_a_function_that_runs_again_after_a_crash_reads_the_same_thread(started: Replicas) -> None:
    hold, read = Hold(), []

    async def agent(turn: Turn) -> None:
        read.append((turn.text, turn.message.note, turn.message.data))
        if not turn.resumed:
            await hold()
        await turn.say("It is.")

    replica = await started.start(agent=agent)
    task_id = await begin(replica)
    await crash(replica, hold)
    replica = await started.start(agent=agent)
    assert (await ended(replica, task_id)).state is State.COMPLETED
    assert await threads(replica) == [[("user", ASK), ("agent", "It is.")]]
    assert read[0] == read[1]
    assert read[0][2][-1]["quote"] == "two"
