"""A turn that a crash cut off, anywhere, and that somebody takes up again."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.edit.run import OperationRequest, run_operation
from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    LlmCallCompleted,
    MessageStarted,
    State,
    TextBlockStarted,
    ToolSucceeded,
)
from a2a_canvas.server.agent.model import Usage
from a2a_canvas.server.agent.models.script import ScriptedModel
from a2a_canvas.server.agent.turn.resume import InterruptedTurn, open_drafts, roll_back_drafts
from a2a_canvas.server.agent.turn.turn import TurnLimits
from a2a_canvas.store.edit_events import EditAborted, EditStarted, Selection
from a2a_canvas.store.models import Limits, Ref
from tests.fakes import BROKEN, EventRecorder, FakeLLM, answer, ask, broken, ids, text
from tests.property_examples import examples
from tests.server.agent.turn.cut_harness import (
    Cuts,
    ObservedOperation,
    WaitingStore,
    YieldingModel,
    check_cuts,
    folded,
)
from tests.server.agent.turn.turn_harness import check_request
from tests.server.agent.turn.turn_life import Life, check_ended
from tests.server.agent.turn.turn_scripts import OPERATIONS, START, update
from tests.store.artifact_builders import appending, delta, replacing

SCRIPT = """
rules:
  - match: {text: Go}
    rounds:
      - thinking: "Let me see."
        text: "I begin."
        tools:
          - &one
            name: artifact_update
            input: {append: false, artifact: {artifact_id: doc, name: doc.md, parts: [{kind: text, text: "one "}]}}
          - name: artifact_update
            input: {append: true, artifact: {artifact_id: doc, parts: [{kind: text, text: "two "}]}}
          - name: artifact_update
            input: {append: true, artifact: {artifact_id: other, parts: [{kind: text, text: "their own "}]}}
        chunk: 40
      - text: "An edit."
        tools:
          - {name: artifact_edit, input: {artifact_id: doc, old_text: two, new_text: "2, and"}}
        chunk: 20
      - tools:
          - name: artifact_update
            input: {append: true, artifact: {artifact_id: doc, parts: [{kind: text, text: "three "}]}}
          - name: artifact_update
            input: {append: false, last_chunk: true, artifact: {artifact_id: third, parts: [{kind: data, data: [1]}]}}
          - {name: artifact_restore, input: {artifact_id: third, version: 1}}
        chunk: 60
      - text: "All done."
        chunk: 4
"""
WHOLE = {"doc": "one 2, and three ", "other": "their own ", "third": ""}
VERSIONS = {"doc": 3, "other": 1, "third": 2}


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    file = tmp_path_factory.mktemp("script") / "s.yaml"
    file.write_text(SCRIPT, encoding="utf-8")

    async def no_time(seconds: float) -> None: ...

    return lambda: ScriptedModel(file, sleep=no_time)


async def test_undisturbed_the_script_comes_to_its_end(script) -> None:
    life = Life(script())
    await life.run()
    life.check()
    assert life.texts() == WHOLE
    assert {name: len(document.versions) for name, document in life.store.documents.items()} == VERSIONS


async def test_wherever_a_turn_is_cut_off_it_goes_on_and_comes_to_the_same_end_and_no_call_runs_twice(script) -> None:
    first = Life(script())
    for cut in await first.run():
        life = first.crash(cut)
        if life.record.state.settled:
            assert cut.told == len(first.told.events)
            continue
        check_cuts(life.told.events, await life.run(), START)
        life.check()
        assert life.record.state is State.COMPLETED
        assert life.record.message.text == "All done."
        assert life.texts() == WHOLE
        assert {name: len(document.versions) for name, document in life.store.documents.items()} == VERSIONS
        done = [event.content for event in life.told.of(ToolSucceeded)]
        assert len(done) == 7


@given(data=st.data())
@settings(max_examples=examples(25))
async def test_it_may_be_cut_off_again_and_again(script, data) -> None:
    life = Life(script())
    for _ in range(data.draw(st.integers(1, 4))):
        cuts = [cut for cut in await life.run() if not life.crash(cut).record.state.settled]
        if not cuts:
            break
        life = life.crash(cuts[data.draw(st.integers(0, len(cuts) - 1))])
    if not life.record.state.settled:
        await life.run()
    life.check()
    assert life.texts() == WHOLE
    assert len(life.told.of(ToolSucceeded)) == 7


async def test_the_next_request_carries_the_completed_calls_and_their_results(script) -> None:
    first = Life(script())
    for cut in await first.run():
        life = first.crash(cut)
        if life.record.state.settled:
            continue
        llm = FakeLLM([answer(text("Enough."))])
        life.llm = YieldingModel(llm)
        await life.run()
        check_request(llm.requests[0].messages)
        heard = [c.id for m in llm.requests[0].messages for c in m.content if type(c).__name__ == "ToolUse"]
        assert heard == [event.tool_use_id for event in life.told.of(ToolSucceeded)]


# ------------------------------------------------------------- what is taken back, in words


async def store_of(*changes, artifact="doc", task="task") -> WaitingStore:
    store = WaitingStore()
    for change in changes:
        await store.apply(Ref("context", artifact, task), change)
    return store


def cut_off(**what) -> InterruptedTurn:
    nothing = InterruptedTurn("task", "context", None, (), ())
    return replace(nothing, **what)


async def test_where_nothing_is_open_nothing_is_said() -> None:
    told = EventRecorder()
    await roll_back_drafts(cut_off(), WaitingStore(), told, ())
    assert told.events == []


async def test_an_open_model_call_is_over_with_an_error() -> None:
    told = EventRecorder()
    await roll_back_drafts(cut_off(round=3), WaitingStore(), told, ())
    assert told.events == [LlmCallCompleted(3, "error", Usage())]


async def test_an_unfinished_call_is_taken_back_and_watchers_get_the_artifact_as_the_last_one_left_it() -> None:
    store, told = await store_of(replacing("Hello"), delta(appending(" Wor"))), EventRecorder()
    assert await open_drafts(store, "context", "task") == ("doc",)
    await roll_back_drafts(cut_off(drafts=("doc",)), store, told, ["doc"])
    [back] = told.of(ArtifactChanged)
    assert (back.append, back.parts[0].text, back.last_chunk, back.version) == (False, "Hello", False, 1)
    assert await open_drafts(store, "context", "task") == ("doc",)


async def test_without_a_completed_call_the_artifact_goes_back_to_its_version() -> None:
    store, told = await store_of(replacing("Hello", last_chunk=True), delta(replacing("Wor"))), EventRecorder()
    await roll_back_drafts(cut_off(drafts=("doc",)), store, told, ["doc"])
    [back] = told.of(ArtifactChanged)
    assert (back.append, back.parts[0].text, back.last_chunk, back.version) == (False, "Hello", True, 1)
    assert await open_drafts(store, "context", "task") == ()


async def test_a_text_without_any_completed_call_or_version_stays_until_it_is_rewritten() -> None:
    store, told = await store_of(delta(replacing("Hel"))), EventRecorder()
    await roll_back_drafts(cut_off(drafts=("doc",)), store, told, ["doc"])
    assert told.events == []
    life = Life(FakeLLM([answer(update("T1", append=True)), answer(text("Done."))]), documents=store.documents)
    await life.run()
    assert life.texts() == {"doc": "T1;"}


async def test_a_draft_of_another_task_is_not_this_ones() -> None:
    store = await store_of(replacing("Hello"), task="another-task")
    assert await open_drafts(store, "context", "task") == ()


async def test_an_open_edit_is_aborted_and_its_artifact_shown() -> None:
    store, told = await store_of(replacing("Hello", last_chunk=True), task="another-task"), EventRecorder()
    here = Selection(0, 2)
    await roll_back_drafts(
        cut_off(open_edits=(("e", "doc", here, "apply"), ("f", "gone", here, "apply"))), store, told, ()
    )
    aborted, shown, other = told.events
    assert (aborted, other) == (EditAborted("e", "doc", here), EditAborted("f", "gone", here))
    assert (shown.append, shown.parts[0].text, shown.version, shown.last_chunk) == (False, "Hello", 1, True)


async def test_an_open_edit_that_suggests_is_aborted_and_its_artifact_is_not_the_tasks() -> None:
    store, told = await store_of(replacing("Hello", last_chunk=True), task="another-task"), EventRecorder()
    here = Selection(0, 2)
    await roll_back_drafts(cut_off(open_edits=(("e", "doc", here, "suggest"),)), store, told, ())
    assert told.events == [EditAborted("e", "doc", here)]


async def test_what_is_shown_after_an_open_edit_is_what_another_call_of_the_same_task_has_written_since() -> None:
    store, told = await store_of(replacing("Hello", last_chunk=True), replacing("Bye")), EventRecorder()
    await roll_back_drafts(
        cut_off(open_edits=(("e", "doc", Selection(0, 2), "apply"),), drafts=("doc",)), store, told, ["doc"]
    )
    [shown] = told.of(ArtifactChanged)
    assert (shown.parts[0].text, shown.version, shown.last_chunk) == ("Bye", 2, False)


@pytest.mark.parametrize(
    ("calls", "state"),
    [
        ([answer(text("Done."))], State.COMPLETED),
        ([answer(ask("T2", "Which?"))], State.INPUT_REQUIRED),
        ([answer(text("No"), reason="refusal")], State.REJECTED),
        ([broken(text("x"), BROKEN)] * 3, State.FAILED),
        ([broken(text("x"), ZeroDivisionError("?"))], State.FAILED),
        ([answer(text("More."), update("T2", append=True, cut=9, at=1))], State.FAILED),
    ],
)
async def test_drafts_that_were_left_open_are_closed_with_the_last_word_as_if_nothing_had_happened(
    calls, state
) -> None:
    documents, names = {}, ("doc", "other")
    for name in names:
        documents |= (await store_of(replacing("T1;"), artifact=name)).documents
    changes = [ArtifactChanged(name, "", "", False, replacing("T1;").parts, False, 1, "agent", 0) for name in names]
    life = Life(FakeLLM(calls), folded(START, changes), documents, Limits(artifact_bytes=5))
    cuts = Cuts(life.told, life.store)
    with cuts.taken():
        await life.go_on(drafts=names)
    check_cuts(life.told.events, cuts.all, life.base)
    assert life.record.state is state
    for name in names:
        [version] = life.store.documents[name].versions
        assert (version.content.text, version.incomplete) == ("T1;", False)


async def test_a_turn_that_was_cut_off_in_its_last_round_has_had_its_rounds() -> None:
    life = Life(FakeLLM([]))
    life.told.events = [MessageStarted(TurnLimits().rounds), LlmCallCompleted(TurnLimits().rounds, "error", Usage())]
    await life.run()
    assert life.record.message.text.startswith("Stopped after 30 rounds")


# ------------------------------------------------------------------------ operations


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_wherever_an_operation_is_cut_off_it_runs_anew_and_changes_the_artifact_once(operation) -> None:
    reply = [answer(text("TW", "O!"))]
    first = await ObservedOperation(*reply).ready()
    before = first.store.documents["doc"]
    await first.run_to_the_end(OPERATIONS[operation])
    for cut in first.cuts.all:
        told = EventRecorder()
        told.events = first.told.events[: cut.told]
        record = folded(START, told.events)
        if record.state.settled:
            continue
        assert cut.documents["doc"] == before
        store = WaitingStore(documents=cut.documents)
        open_edits = tuple((e.edit_id, e.artifact_id, e.selection, e.mode) for e in record.open_edits.values())
        open_round = record.progress.round if record.call_open else None
        await roll_back_drafts(cut_off(round=open_round, open_edits=open_edits), store, told, tuple(record.artifacts))
        request = OperationRequest(OPERATIONS[operation], "m-1", "task", "context", folded(START, told.events).progress)
        await run_operation(request, llm=FakeLLM(reply), store=store, emit=told, new_id=ids())
        check_ended(told.events)
        assert store.documents["doc"] == first.store.documents["doc"]
        assert told.events[-1].state is first.told.events[-1].state
        places = [event.place.index for event in told.events if isinstance(event, TextBlockStarted)]
        assert places == list(range(len(places)))
        assert len({event.edit_id for event in told.of(EditStarted)}) == len(told.of(EditStarted))
