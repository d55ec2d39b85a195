"""What is said in one step: a call with its change and its result, the last words with the status.

Whoever keeps what is said between two waits together, or not at all, has with every cut a turn that can go on from it.
"""

import asyncio
from itertools import count

import pytest

from a2a_canvas.server.agent.edit.run import apply_user_changes
from a2a_canvas.server.agent.events import ArtifactChanged, State, StatusChanged
from a2a_canvas.store.models import Limits
from tests.fakes import Hold, answer, ask, said, text
from tests.server.agent.turn.cut_harness import (
    Observed,
    ObservedOperation,
    closings,
)
from tests.server.agent.turn.turn_scripts import (
    DONE,
    LIMITS,
    OPERATIONS,
    REPLIES,
    TURNS,
    update,
)
from tests.store.artifact_builders import appending, replacing


@pytest.mark.parametrize("turn", TURNS)
async def test_with_every_cut_what_was_done_was_said_and_is_remembered_and_the_end_is_whole(turn) -> None:
    harness = Observed(*TURNS[turn], limits=LIMITS)
    await harness.run_to_the_end()
    assert len(harness.cuts.all) > len(TURNS[turn])


async def test_the_limit_of_an_artifact_too_ends_the_turn_in_one_step() -> None:
    too_long = update("T2", append=True, cut=9)
    harness = Observed(answer(text("I write."), update("T1"), too_long), artifact_limits=Limits(artifact_bytes=4))
    await harness.run_to_the_end()
    assert harness.told.statuses[-1][0] == "failed"
    assert [event.parts[0].text for event in closings(harness.told.events)] == [""]


async def test_a_message_that_comes_during_the_last_round_is_remembered_in_one_step_with_it() -> None:
    for asked in ([], [ask("T1", "Right?", at=1)]):
        hold = Hold()
        harness = Observed(answer(text("Done."), *asked, hold), DONE)
        running = asyncio.create_task(harness.run_to_the_end())
        await hold.reached.wait()
        harness.new_messages.append(said("m-2", "Also"))
        hold.release.set()
        await running
        assert harness.told.statuses[-1] == ("completed", "Done.")


@pytest.mark.parametrize("turn", TURNS)
async def test_wherever_a_cancel_comes_every_cut_is_whole_and_the_drafts_are_closed_with_the_status(turn) -> None:
    for at in count(1):
        harness = Observed(*TURNS[turn], limits=LIMITS)
        running = asyncio.create_task(harness.run_to_the_end())
        for _ in range(at):
            await asyncio.sleep(0)
        late = running.done()
        running.cancel()
        await asyncio.wait([running])
        await running
        assert not any(document.draft for document in harness.store.documents.values())
        if late:
            break


# ------------------------------------------------------------------------ operations


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_the_change_of_an_operation_and_its_last_word_are_said_in_one_step_whenever_a_cancel_comes(
    operation, reply
) -> None:
    seen = 0
    for at in count():
        harness = await ObservedOperation(*REPLIES[reply]).ready()
        before = (await harness.doc()).version
        made = len(await harness.versions())
        running = asyncio.create_task(harness.run_to_the_end(OPERATIONS[operation]))
        for _ in range(at):
            await asyncio.sleep(0)
        late = running.done()
        running.cancel()
        await asyncio.wait([running])
        total = len(harness.told.events)
        if not harness.told.events:
            continue
        canceled = harness.told.events[-1] == StatusChanged(State.CANCELED)
        for cut in harness.cuts.all:
            document = cut.documents["doc"]
            changed = document.current != before or len(document.versions) > made
            assert not changed or cut.told == total
            assert not (changed and canceled)
            seen += changed
        if late:
            break
    changed = (await harness.doc()).version != before or len(await harness.versions()) > made
    assert bool(seen) is changed


async def test_a_change_of_the_user_outside_of_the_house_is_made_with_all_others_in_one_step() -> None:
    harness = await ObservedOperation().ready()
    changes = [("doc", replacing("New", last_chunk=True)), ("a", replacing("A", last_chunk=True))]
    with harness.cuts.taken():
        changes.append(("b", appending("B", last_chunk=True)))
        assert await apply_user_changes(changes, "context", "task", harness.store, harness.told) is None
    assert [event.artifact_id for event in harness.told.of(ArtifactChanged)] == ["doc", "a", "b"]
    assert {cut.told for cut in harness.cuts.all} == {0, 3}
