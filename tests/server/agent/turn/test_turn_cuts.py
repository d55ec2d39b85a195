"""What is said in one step: a call with its change and its result, the last words with the status.

Whoever keeps what is said between two waits together, or not at all, has with every cut a turn that can go on from it.
"""

import asyncio
from datetime import UTC, datetime
from itertools import count

import pytest

from a2a_canvas.server.agent.edit.run import save
from a2a_canvas.server.agent.events import ArtifactChanged, State, StatusChanged
from a2a_canvas.server.agent.turn.history import user_said
from a2a_canvas.server.agent.turn.turn import TurnLimits
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.changes import Redo, Restore, Undo
from a2a_canvas.store.models import Limits
from tests.fakes import BROKEN, REFUSED, FakeLLM, Hold, answer, ask, broken, decline, said, text, thinking, tool
from tests.server.agent.edit.operation_harness import OperationHarness, edit
from tests.server.agent.edit.test_run import go, put
from tests.server.agent.turn.cut_harness import Cuts, WaitingStore, YieldingModel, check_cuts, check_marks, closings
from tests.server.agent.turn.turn_harness import TurnHarness
from tests.store.artifact_builders import appending, replacing

START = TaskRecord("task", "context", "", datetime(2026, 1, 1, tzinfo=UTC), transcript=(user_said(said("m-1", "Go")),))


def update(use_id, *, artifact="doc", append=False, last=False, given=None, **options):
    """A call of `artifact_update` that leaves its mark."""
    written = {"artifact_id": artifact, "parts": [{"kind": "text", "text": f"{use_id};"}]}
    return tool(use_id, "artifact_update", {"append": append, "last_chunk": last, "artifact": written}, **options)


def change(use_id, old, **options):
    given = {"artifact_id": "doc", "old_text": old, "new_text": f"{use_id};"}
    return tool(use_id, "artifact_edit", given, **options)


def restore(use_id, version):
    return tool(use_id, "artifact_restore", {"artifact_id": "doc", "version": version})


LIMITS = TurnLimits(rounds=5, tool_errors_in_a_row=4)
DONE = answer(text("Done."))
TURNS = {
    "a reply": [answer(thinking("hm"), text("Hi."))],
    "a draft": [answer(text("I write."), update("T1", cut=9)), answer(update("T2", append=True, cut=9)), DONE],
    "a version": [answer(update("T1", last=True), text("So.", at=1)), DONE],
    "versions": [answer(update("T1"), update("T2")), answer(update("T3", append=True, last=True)), DONE],
    "many artifacts": [answer(*[update(f"T{n}", artifact=f"a{n}") for n in range(4)]), DONE],
    "an edit of a draft": [answer(update("T1"), change("T2", "T1;", cut=7)), DONE],
    "a restored version": [answer(update("T1", last=True)), answer(update("T2", append=True), restore("T3", 1)), DONE],
    "calls that end together": [
        answer(*[update(f"T{n}", artifact=f"a{n}", at=n, last=n % 2 == 0, stopped=False) for n in range(4)]),
        answer(change("T8", "T0;", at=1, stopped=False), update("T9", append=True, at=2, stopped=False)),
        DONE,
    ],
    "a question": [answer(text("Hm."), update("T1"), ask("T2", "Go on?", at=1))],
    "two questions": [answer(ask("T1", "This?"), ask("T2", "Or that?", at=1), update("T3", at=2))],
    "a refusal of the tool": [answer(update("T1"), decline("T2", "No."))],
    "a refusal of the model": [answer(update("T1"), text("I will"), reason="refusal")],
    "the output limit": [answer(update("T1"), update("T2", append=True, cut=9)[:-3], reason="max_tokens")],
    "a break": [broken(update("T1"), update("T2", append=True, cut=9, stopped=False), BROKEN), DONE],
    "a break of an edit": [answer(update("T1")), broken(change("T2", "T1;", cut=9, stopped=False), BROKEN), DONE],
    "no way on": [answer(update("T1")), broken(update("T2", artifact="b", stopped=False), REFUSED)],
    "a fault": [answer(update("T1")), broken(update("T2", append=True), ZeroDivisionError("?"))],
    "too many rounds": [answer(update(f"T{n}", append=True)) for n in range(5)],
    "too many errors": [answer(update("T1"), tool(f"U{n}", "nope", at=1)) for n in range(5)],
    "input that is wrong": [answer(update("T1"), text("And more."), tool("T2", "artifact_update", "x" * 10)), DONE],
}


class Observed(TurnHarness):
    """A turn of which cuts are taken."""

    def __init__(self, *calls, **options) -> None:
        super().__init__(*calls, store=WaitingStore(options.pop("artifact_limits", None)), **options)
        self.llm = YieldingModel(FakeLLM(calls))
        self.cuts = Cuts(self.told, self.store)

    async def run_to_the_end(self) -> None:
        with self.cuts.taken():
            try:
                await self._run()
            except asyncio.CancelledError:
                await self.told(StatusChanged(State.CANCELED))  # as the runtime does, at once
        check_cuts(self.told.events, self.cuts.all, START)
        for cut in self.cuts.all:
            check_marks(self.told.events, cut)


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
        harness.inbox.append(said("m-2", "Also"))
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

OPERATIONS = {
    "undo": go(Undo()),
    "undo of another version": go(Undo(1)),
    "redo": go(Redo()),
    "restore": go(Restore(1)),
    "put": put("All new"),
    "put too early": put("All new", 1),
    "edit": edit(base=1),
}


class ObservedOperation(OperationHarness):
    def __init__(self, *calls) -> None:
        super().__init__(*calls, store=WaitingStore())
        self.llm = YieldingModel(FakeLLM(calls))
        self.cuts = Cuts(self.told, self.store)

    async def ready(self) -> "ObservedOperation":
        await super().ready()
        await self.put(self.text + "More\n")
        return self

    async def run_to_the_end(self, operation) -> None:
        with self.cuts.taken():
            try:
                await self.run(operation)
            except asyncio.CancelledError:
                await self.told(StatusChanged(State.CANCELED))


REPLIES = {"whole": [answer(text("TW", "O!"))], "broken": [broken(text("T"), BROKEN)] * 3, "no way": [broken(REFUSED)]}


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_the_change_of_an_operation_and_its_last_word_are_said_in_one_step_whenever_a_cancel_comes(
    operation, reply
) -> None:
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
        if late:
            break


async def test_a_change_of_the_user_outside_of_the_house_is_made_with_all_others_in_one_step() -> None:
    harness = await ObservedOperation().ready()
    changes = [("doc", replacing("New", last_chunk=True)), ("a", replacing("A", last_chunk=True))]
    with harness.cuts.taken():
        changes.append(("b", appending("B", last_chunk=True)))
        assert await save(changes, "context", "task", harness.store, harness.told) is None
    assert [event.artifact_id for event in harness.told.of(ArtifactChanged)] == ["doc", "a", "b"]
    assert {cut.told for cut in harness.cuts.all} == {0, 3}
