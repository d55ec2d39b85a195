"""An AG-UI run: from journal entries to what one subscriber is sent, held against AG-UI's own checkers."""

import json
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from ag_ui import core
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.protocols.agui import stream
from a2a_canvas.server.protocols.agui.run_events import RunProjection
from a2a_canvas.server.protocols.agui.state import CanvasState
from a2a_canvas.server.protocols.edge.encoded_events import EncodedEvents
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.store.edit_events import EditChunk, EditStarted
from a2a_canvas.store.models import Limits
from tests.fakes import BROKEN, REFUSED, Hold, answer, ask, broken, decline, text, thinking, tool, write
from tests.property_examples import examples
from tests.server.protocols.a2a_v1.model_rounds import Player, Round, rounds
from tests.server.protocols.agui.agui_runs import CONTEXT, HISTORY, Json, Played, ScriptedRuntime, kinds, of, operation
from tests.server.protocols.agui.agui_verifier import verify
from tests.server.protocols.agui.state_patches import AT, meaning, patched

CUT_OFF = "The answer was cut off at the model's output limit. Ask for less at a time."
EDIT = {"selection": {"start": 6, "end": 9}}
"""The word `big` of `Hello big world`."""


async def cancelled(*calls: Any, message: ev.UserMessage | None = None) -> Played:
    """A task that is cancelled where its model holds."""
    hold = next(step for call in calls for step in call if isinstance(step, Hold))
    world = ScriptedRuntime(calls)
    await world.has("Hello big world")

    async def cancel(task_id: str) -> None:
        await hold.reached.wait()
        await world.runtime.cancel(task_id, ANONYMOUS)

    return await world.play(message, meanwhile=cancel)


async def played(*calls: Any, message: ev.UserMessage | None = None, limits: Limits | None = None) -> Played:
    world = ScriptedRuntime(calls, limits)
    await world.has("Hello", "Hello big world")
    return await world.play(message)


SAYS_AND_WRITES = (
    answer(
        thinking("A short ", "note."),
        text("I ", "write", at=1),
        write("T1", "one two three", at=2, cut=9),
        write("T2", " four", at=3, append=True, last_chunk=True),
        reason="tool_use",
    ),
    answer(thinking("It is ", "there."), text("Done", ".", at=1)),
)

PLAYS: dict[str, Callable[[], Any]] = {
    "a turn that thinks, says and writes": lambda: played(*SAYS_AND_WRITES),
    "nothing to say": lambda: played(answer()),
    "many calls that fail": lambda: played(*[answer(tool(f"T{n}", "no_such_tool")) for n in range(5)]),
    "an answer that breaks off and is asked for again": lambda: played(
        broken(text("Let"), tool("T0", "artifact_list", at=1), write("T1", "on", at=2, cut=5, stopped=False), BROKEN),
        answer(text("Let me"), write("T1", "one", at=1)),
        answer(text("Done.")),
    ),
    "an answer that breaks off before a question is asked": lambda: played(
        broken(ask("T1", "Which?"), BROKEN), answer(text("Done."))
    ),
    "an answer that cannot be had": lambda: played(broken(text("Let"), REFUSED)),
    "an answer that is cut off": lambda: played(answer(text("So lo"), reason="max_tokens")),
    "an answer that is refused": lambda: played(answer(text("I"), reason="refusal")),
    "a task that is declined": lambda: played(answer(text("Hm."), decline("T1", "I may not.", at=1))),
    "a question": lambda: played(answer(text("Well."), ask("T1", "Which?", at=1))),
    "a final message that is only a part": lambda: played(answer(text("Well."), text("Done.", at=1, final=True))),
    "an artifact that grows too large": lambda: played(
        answer(write("T1", "x" * 200, cut=20)), limits=Limits(artifact_bytes=100)
    ),
    "a task that is cancelled in the middle": lambda: cancelled(
        answer(thinking("hm"), text("I wr", at=1), tool("T1", "artifact_update", '{"a', at=2, stopped=False), Hold())
    ),
    "a call's id that is used twice": lambda: played(
        answer(tool("T", "artifact_list"), tool("T", "artifact_list", at=1)), answer(text("Done."))
    ),
    "an edit": lambda: played(answer(thinking("hm"), text("sm", "all", at=1)), message=operation("edit", **EDIT)),
    "an edit that breaks off and is made again": lambda: played(
        broken(text("sm"), BROKEN), answer(text("small")), message=operation("edit", **EDIT)
    ),
    "an edit that comes to nothing": lambda: played(broken(text("sm"), REFUSED), message=operation("edit", **EDIT)),
    "an edit that is cancelled": lambda: cancelled(
        answer(text("sm", "all"), Hold()), message=operation("edit", **EDIT)
    ),
    "an undo": lambda: played(message=operation("undo")),
    "an undo that there is no version for": lambda: played(message=operation("redo")),
    "a person's own edit": lambda: played(message=operation("put", text="Hello small world")),
}  # fmt: skip


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
async def test_what_a_client_is_sent_is_a_whole_run_wherever_it_joins(play: Callable[[], Any]) -> None:
    task = await play()
    runs = [run for shown in (True, False) for run in task.runs(thinking=shown)]
    runs += task.runs(older="doc") + task.runs(older="")
    for run in runs:
        assert kinds(run)[:2] == ["RUN_STARTED", "STATE_SNAPSHOT"]
        assert of(run, "RUN_STARTED")[0]["protocolVersion"] == "1.0"
        assert all_calls_have_results(run)
    verify(*runs)


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
@pytest.mark.parametrize("older", [None, "doc"])
async def test_whoever_joins_has_the_same_state_in_the_end(play: Callable[[], Any], older: str | None) -> None:
    task = await play()
    final = json.loads(json.dumps(task.state(-1, older).snapshot()))
    for run in task.runs(older=older):
        assert {**meaning(state_of(run)), "artifactAction": 0} == {**meaning(final), "artifactAction": 0}


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
async def test_clients_that_share_encoded_events_are_sent_what_each_would_be_sent_alone(
    play: Callable[[], Any],
) -> None:
    task = await play()
    shared = EncodedEvents()
    for joins in (0, len(task.records) // 2, 0):
        for exposed in (True, False):
            assert encoded(task, joins, exposed, shared) == encoded(task, joins, exposed, EncodedEvents())


def encoded(task: Played, joins: int, exposed: bool, cache: EncodedEvents) -> bytes:
    names = {"thread_id": CONTEXT, "run_id": "r", "history": HISTORY, "expose_thinking": exposed}
    run = RunProjection(task.records[joins], task.state(joins, None), **names)
    assert [*run.begin()]
    following = SimpleNamespace(ready=tuple, has_next=False)
    return b"".join(
        stream._encode_ready(run, entry, following, cache) for entry in task.entries[joins:] if not run.ended
    )


def all_calls_have_results(run: list[Json]) -> bool:
    begun = {event["toolCallId"] for event in of(run, "TOOL_CALL_START")}
    return begun == {event["toolCallId"] for event in of(run, "TOOL_CALL_RESULT")}


def state_of(run: list[Json]) -> Json:
    state = of(run, "STATE_SNAPSHOT")[0]["snapshot"]
    for event in of(run, "STATE_DELTA"):
        state = patched(state, event["delta"])
    return state


@settings(max_examples=examples(12))
@given(
    rounds=rounds,
    sizes=st.lists(st.integers(3, 40), min_size=1),
    breaks=st.dictionaries(st.integers(0, 6), st.integers(1, 30), max_size=2),
)
async def test_so_it_is_whatever_the_model_does(rounds: list[Round], sizes: list[int], breaks: dict[int, int]) -> None:
    task = await ScriptedRuntime(Player(rounds, sizes, breaks), Limits(artifact_bytes=150, parts=8)).play()
    runs = [task.run(joins, older="a") for joins in range(0, len(task.records), 5)]
    assert all(all_calls_have_results(run) for run in runs)
    verify(*runs)


# ------------------------------------------------------------------------- messages


async def test_the_text_of_a_round_is_one_message_and_its_calls_belong_to_it() -> None:
    task = await played(*SAYS_AND_WRITES)
    run, task_id = task.run(), task.records[0].task_id
    assert messages(run) == {f"{task_id}:1": "I write", f"{task_id}:2": "Done."}
    starts = of(run, "TOOL_CALL_START")
    assert [start["parentMessageId"] for start in starts] == [f"{task_id}:1"] * 2
    assert [start["toolCallName"] for start in starts] == ["artifact_update"] * 2
    arguments = "".join(event["delta"] for event in of(run, "TOOL_CALL_ARGS") if event["toolCallId"] == "T1")
    assert json.loads(arguments)["artifact"]["parts"][0]["text"] == "one two three"
    result = of(run, "TOOL_CALL_RESULT")[0]
    assert (result["toolCallId"], result["messageId"], result["role"]) == ("T1", "T1:result", "tool")


def messages(run: list[Json]) -> dict[str, str]:
    """The texts of all messages by their ids."""
    texts: dict[str, str] = {event["messageId"]: "" for event in of(run, "TEXT_MESSAGE_START")}
    for event in of(run, "TEXT_MESSAGE_CONTENT"):
        texts[event["messageId"]] += event["delta"]
    return texts


async def test_a_round_that_is_asked_for_again_is_another_message() -> None:
    task = await PLAYS["an answer that breaks off and is asked for again"]()
    task_id = task.records[0].task_id
    assert messages(task.run()) == {f"{task_id}:1": "Let", f"{task_id}:1:2": "Let me", f"{task_id}:2": "Done."}


async def test_a_call_that_broke_off_says_so_and_what_had_acted_keeps_its_result() -> None:
    task = await PLAYS["an answer that breaks off and is asked for again"]()
    results = {event["toolCallId"]: event["content"] for event in of(task.run(), "TOOL_CALL_RESULT")}
    assert list(results) == ["T0", "T1", "T1:2"]
    assert "was interrupted" in results["T1"]
    assert "was interrupted" not in results["T0"] + results["T1:2"]


@pytest.mark.parametrize(
    ("play", "last"),
    [
        ("a question", ["Well.", "Which?"]),
        ("an answer that is cut off", ["So lo", CUT_OFF]),
        ("a final message that is only a part", ["Well.\n\nDone.", "Done."]),
        ("nothing to say", []),
        ("an undo", ["Undone: doc.md is at version 1 again."]),
    ],
)  # fmt: skip
async def test_what_is_said_without_having_been_streamed_is_a_message_of_its_own(play: str, last: list[str]) -> None:
    assert list(messages((await PLAYS[play]()).run()).values()) == last


async def test_a_newcomer_gets_the_text_so_far_and_then_what_follows() -> None:
    task = await played(answer(text("Hel", "lo")))
    joins = task.at(ev.TextAdded)
    run = task.run(joins)
    assert kinds(run)[2:7] == [
        "final_message_start",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "assistant",
        "TEXT_MESSAGE_CONTENT",
    ]
    assert messages(run) == messages(task.run()) == {f"{task.records[0].task_id}:1": "Hello"}


async def test_a_newcomer_is_spared_the_rest_of_a_call_that_it_has_not_seen_begin() -> None:
    task = await played(*SAYS_AND_WRITES)
    run = task.run(task.at(ev.ToolInputAdded))
    begun = {event["toolCallId"] for event in of(run, "TOOL_CALL_START")}
    seen = {event["toolCallId"] for event in run if event["type"].startswith("TOOL_CALL")}
    assert seen == begun == {"T2"}


# ------------------------------------------------------- what a client shows in the end

BREAKS = "an answer that breaks off and is asked for again"


def shown(run: list[Json]) -> list[str]:
    """The texts of the agent that AG-UI's own client has in the end."""
    texts = messages(run)
    for snapshot in of(run, "MESSAGES_SNAPSHOT"):
        texts = {message["id"]: message.get("content", "") for message in snapshot["messages"]}
        assert next(iter(texts.items())) == ("u", "Go")
        del texts["u"]
        texts = {each["id"]: texts[each["id"]] for each in snapshot["messages"] if each["role"] == "assistant"}
    return list(filter(None, texts.values()))


@pytest.mark.parametrize(
    ("play", "left"),
    [
        ("a turn that thinks, says and writes", ["Done."]),
        (BREAKS, ["Done."]),
        ("a final message that is only a part", ["Done."]),
        ("an undo", ["Undone: doc.md is at version 1 again."]),
        ("a question", ["Well.", "Which?"]),
        ("a task that is declined", ["Hm.", "I may not."]),
        ("an answer that is cut off", ["So lo", CUT_OFF]),
        ("an answer that cannot be had", ["The key for the model is not valid."]),
        ("a task that is cancelled in the middle", ["I wr"]),
    ],
)
async def test_in_the_end_the_last_round_is_left_and_what_it_did_not_say_itself(play: str, left: list[str]) -> None:
    task = await PLAYS[play]()
    assert shown(task.run()) == left
    assert all(shown(run)[-1:] == left[-1:] for run in task.runs()[:-1])


@pytest.mark.parametrize(
    ("play", "left"),
    [
        ("a turn that thinks, says and writes", ["Done."]),
        (BREAKS, ["Done."]),
        ("a question", ["Well.", "Which?"]),
        ("an answer that is cut off", ["So lo", CUT_OFF]),
        ("a task that is cancelled in the middle", ["I wr"]),
    ],
)
async def test_a_client_that_keeps_its_messages_to_itself_is_sent_those_that_stay_when_the_run_ends(
    play: str, left: list[str]
) -> None:
    run = (await PLAYS[play]()).run(older="doc")
    assert list(messages(run).values()) == left
    first = kinds(run).index("TEXT_MESSAGE_START")
    assert kinds(run)[first:-1] == [
        *["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"] * len(left),
        "completed",
        "stream_end",
    ]
    assert not of(run, "MESSAGES_SNAPSHOT")


async def test_the_snapshot_has_what_the_client_sent_and_the_rest_of_the_run_in_its_order() -> None:
    task = await PLAYS[BREAKS]()
    history = (*HISTORY, core.ReasoningMessage(id="x", role="reasoning", content="Hm."))
    run, task_id = task.run(history=history), task.records[0].task_id
    (snapshot,) = of(run, "MESSAGES_SNAPSHOT")
    assert [message["id"] for message in snapshot["messages"]] == [
        *("u", "x", f"{task_id}:1", "T0:result", f"{task_id}:1:2", "T1:2:result", f"{task_id}:2"),
    ]
    assert snapshot["messages"][1] == {"id": "x", "role": "reasoning", "content": "Hm."}
    first = snapshot["messages"][2]
    assert ([call["id"] for call in first["toolCalls"]], "content" in first) == (["T0"], False)
    assert kinds(run)[kinds(run).index("MESSAGES_SNAPSHOT") + 1 :] == ["completed", "stream_end", "RUN_FINISHED"]


@pytest.mark.parametrize("thinks", [True, False])
async def test_reasoning_is_in_the_snapshot_as_it_was_shown(thinks: bool) -> None:
    (snapshot,) = of((await played(*SAYS_AND_WRITES)).run(thinking=thinks), "MESSAGES_SNAPSHOT")
    thoughts = [message["content"] for message in snapshot["messages"] if message["role"] == "reasoning"]
    assert thoughts == (["A short note.", "It is there."] if thinks else [])


@pytest.mark.parametrize("play", ["nothing to say", "many calls that fail", "an edit", "a question"])
async def test_where_nothing_is_taken_back_there_is_no_snapshot(play: str) -> None:
    assert not of((await PLAYS[play]()).run(), "MESSAGES_SNAPSHOT")


async def test_from_a_client_that_sent_no_messages_nothing_is_taken_back() -> None:
    assert not of((await PLAYS[BREAKS]()).run(history=()), "MESSAGES_SNAPSHOT")


# ------------------------------------------------------------------------- thinking


async def test_thinking_is_reasoning_for_those_to_whom_it_is_exposed() -> None:
    run = (await played(*SAYS_AND_WRITES)).run()
    assert [event["delta"] for event in of(run, "REASONING_MESSAGE_CONTENT")] == [
        "A short ",
        "note.",
        "It is ",
        "there.",
    ]
    assert len(of(run, "REASONING_START")) == len(of(run, "REASONING_END")) == 2
    assert [value["content"] for value in of(run, "thinking")] == ["A short ", "note.", "It is ", "there."]


@pytest.mark.parametrize("play", ["a turn that thinks, says and writes", "an edit"])
async def test_nobody_else_sees_any_of_it(play: str) -> None:
    for run in (await PLAYS[play]()).runs(thinking=False):
        assert not [kind for kind in kinds(run) if kind.startswith("REASONING") or kind == "thinking"]
        assert not any(word in json.dumps(run) for word in ("short", "there.", "hm"))


async def test_nor_does_who_joins_in_the_middle_of_it_see_it_end() -> None:
    task = await played(*SAYS_AND_WRITES)
    for joins in (task.at(ev.TextBlockStarted), task.at(ev.ThinkingAdded)):
        stopped = [value["index"] for value in of(task.run(joins, thinking=False), "content_block_stop")]
        assert stopped == [0, 1, 2, 3], "the blocks of thinking, 0 and 4, have no number"
        assert of(task.run(joins), "content_block_stop")[0]["index"] == 0


async def test_a_block_that_a_newcomer_sees_grow_is_seen_to_stop() -> None:
    task = await played(answer(text("Hel", "lo")))
    run = task.run(task.at(ev.TextAdded), thinking=False)
    assert [value["index"] for value in of(run, "content_block_stop")] == [0]
    task = await played(*SAYS_AND_WRITES)
    run = task.run(task.at(ev.ToolInputAdded), thinking=False)
    assert [value["index"] for value in of(run, "content_block_stop")] == [1, 2, 3]


async def test_without_thinking_no_number_is_missing_wherever_a_client_joins() -> None:
    task = await played(*SAYS_AND_WRITES)
    first, *later = task.runs(thinking=False)
    starts = [event["value"]["index"] for event in first if event.get("name") in ("text_block_start", "tool_use_start")]
    assert starts == list(range(len(starts)))
    numbered = [(event["name"], event["value"].get("index")) for event in first if event["type"] == "CUSTOM"]
    for run in later:
        own = [(event["name"], event["value"].get("index")) for event in run if event["type"] == "CUSTOM"]
        assert set(own) <= set(numbered)


# --------------------------------------------------------------------- turn events


async def test_turn_events_are_custom_in_their_order() -> None:
    run = (await played(answer(text("Hel", "lo")))).run()
    custom = [event["name"] for event in run if event["type"] == "CUSTOM"]
    assert custom == [
        *("message_start", "text_block_start", "final_message_start", "text_delta", "assistant", "text_delta"),
        *("assistant", "content_block_stop", "message_delta", "llm_call_completed", "completed", "stream_end"),
    ]
    assert of(run, "assistant")[-1] == {"content": "Hello", "replace": True}
    assert of(run, "completed") == [{"content": "Hello"}]
    assert of(run, "stream_end") == [{}]
    assert kinds(run)[-2:] == ["stream_end", "RUN_FINISHED"]


async def test_who_lags_is_sent_the_reply_once_after_its_last_piece() -> None:
    task = await played(answer(text("Hel", "lo")), answer())
    run = task.run(behind=True)
    assert of(run, "assistant") == [{"content": "Hello", "replace": True}]
    assert kinds(run)[kinds(run).index("assistant") + 1] == "content_block_stop"


@pytest.mark.parametrize("joins", [0, 900])
async def test_a_long_reply_costs_what_it_is_long(joins: int) -> None:
    pieces = [f"{number:08}" for number in range(2000)]
    task = await played(answer(text(*pieces)))
    whole = "".join(pieces)
    said = [value["content"] for value in of(task.run(joins), "assistant")]
    assert said[-1] == whole
    assert all(len(after) > 9 / 8 * len(before) for before, after in pairwise(said[:-1]))
    assert sum(map(len, said)) < 11 * len(whole)


async def test_the_reply_is_whole_when_its_block_stops() -> None:
    run = (await played(answer(text("x" * 80, "y")))).run()
    assert [value["content"] for value in of(run, "assistant")] == ["x" * 80, "x" * 80 + "y"]
    assert kinds(run)[kinds(run).index("content_block_stop") - 1] == "assistant"


async def test_the_reply_is_whole_when_its_answer_breaks_off() -> None:
    run = (await played(broken(text("x" * 80, "y"), REFUSED))).run()
    assert of(run, "assistant")[-1]["content"] == "x" * 80 + "y"
    assert kinds(run).index("llm_call_completed") > max(n for n, kind in enumerate(kinds(run)) if kind == "assistant")


async def test_the_reply_is_whole_when_its_task_is_cancelled() -> None:
    run = (await cancelled(answer(text("x" * 80, "y"), Hold()))).run()
    assert of(run, "assistant")[-1]["content"] == "x" * 80 + "y"


async def test_a_reply_that_a_new_round_overwrites_is_not_sent_any_more() -> None:
    run = (await played(broken(text("old"), BROKEN), answer(text("new")))).run(behind=True)
    assert of(run, "assistant")[-1] == {"content": "new", "replace": True}
    for before, after in pairwise(kinds(run)):
        assert (before, after) != ("assistant", "message_start")


# ---------------------------------------------------------------------------- ends


@pytest.mark.parametrize(
    ("play", "end"),
    [
        ("a turn that thinks, says and writes", {"outcome": {"type": "success"}}),
        ("a task that is cancelled in the middle", {"outcome": {"type": "cancelled"}}),
        ("an answer that is cut off",
         {"code": "failed", "message": CUT_OFF}),
        ("a task that is declined", {"code": "rejected", "message": "I may not."}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("joins", [0, -1])
async def test_a_task_that_ends_ends_the_run(play: str, end: Json, joins: int) -> None:
    run = (await PLAYS[play]()).run(joins)
    which = {"threadId": CONTEXT, "runId": "r"} if "outcome" in end else {}
    assert run[-1] == {"type": "RUN_FINISHED" if which else "RUN_ERROR", **which, **end}


@pytest.mark.parametrize(
    ("pause", "reason"),
    [
        (ask("T1", "Which?"), "input_required"),
        (tool("T1", "auth_required", {"reason": "Which?"}), "auth_required"),
    ],
    ids=["a question", "authentication"],
)
async def test_a_pause_interrupts_the_run_and_its_answer_is_another_run(pause: list[Any], reason: str) -> None:
    world = ScriptedRuntime([answer(pause), answer(text("Blue, then."))])
    asked = await world.play()
    task_id = asked.records[0].task_id
    interrupt = {"id": task_id, "reason": reason, "message": "Which?"}
    for joins in (0, -1):
        assert asked.run(joins)[-1]["outcome"] == {"type": "interrupt", "interrupts": [interrupt]}
    answered = await world.play(task_id=task_id)
    assert answered.run()[-1]["outcome"] == {"type": "success"}
    verify(*asked.runs(), *answered.runs())


@pytest.mark.parametrize(
    "play", ["a question", "an undo", "an answer that is cut off", "an undo that there is no version for"]
)
async def test_who_joins_after_the_end_gets_the_state_the_last_message_and_the_end(play: str) -> None:
    task = await PLAYS[play]()
    run = task.run(-1)
    message = task.records[-1].message
    assert message
    assert messages(run) == {message.message_id: message.text}
    assert of(run, "completed") == [{"content": message.text}]
    said = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    shown = ["RUN_STARTED", "STATE_SNAPSHOT", *said, "completed", "stream_end"]
    assert kinds(run)[:-1] in (shown, [*shown, "rejected"])


async def test_a_rejected_operation_says_what_the_artifact_is_like_now() -> None:
    run = (await PLAYS["an undo that there is no version for"]()).run()
    assert of(run, "rejected") == [{"artifactId": "doc", "artifactVersion": 2}]
    assert kinds(run)[-2:] == ["rejected", "RUN_ERROR"]


def test_a_failure_without_a_reason_still_has_a_message() -> None:
    record = fold(TaskRecord("t", CONTEXT, "", AT), Entry(1, 2, AT, ev.StatusChanged(ev.State.FAILED)))
    state = CanvasState(record, (), {})
    run = RunProjection(record, state, thread_id=CONTEXT, run_id="r", expose_thinking=False)
    sent = [json.loads(event.model_dump_json(by_alias=True)) for event in run.begin()]
    assert kinds(sent) == ["RUN_STARTED", "STATE_SNAPSHOT", "completed", "stream_end", "RUN_ERROR"]
    assert sent[-1]["message"] == "The task is failed."


# ----------------------------------------------------------------- the first snapshot


@pytest.mark.parametrize("play", ["a turn that thinks, says and writes", "an edit", "a person's own edit"])
async def test_a_snapshot_shows_nothing_that_its_task_has_done_since(play: str) -> None:
    """The store is read after the record, and the task may have ended by then."""
    task = await PLAYS[play]()
    for joins, record in enumerate(task.records[:-1]):
        run = task.run(joins, older="doc")
        begin = of(run, "STATE_SNAPSHOT")[0]["snapshot"]
        texts = {"doc": "Hello big world"} | {each.artifact_id: each.content.text for each in record.artifacts.values()}
        views = begin["artifacts"]
        assert {name: "".join(part["text"] for part in view["parts"]) for name, view in views.items()} == texts
        last = begin["artifact"]["contents"][-1]
        assert (last["index"], begin["artifact"]["currentIndex"]) == (views["doc"]["version"], views["doc"]["version"])
        assert last["fullMarkdown"] == texts["doc"]
    assert state_of(task.run(older="doc"))["artifact"] == state_of(task.run(-1, older="doc"))["artifact"]


# --------------------------------------------------------------------------- edits


async def test_an_edit_is_told_while_it_is_written_and_is_no_reply_text() -> None:
    task = await PLAYS["an edit"]()
    run = task.run()
    selection = {"start": 6, "end": 9}
    (start,) = of(run, "artifact_partial_update_start")
    assert (start["selection"], start["strategy"], start["unit"], start["artifactId"]) == (
        selection,
        "replace",
        "utf16",
        "doc",
    )
    chunks = of(run, "artifact_partial_update_chunk")
    assert "".join(chunk["chunk"] for chunk in chunks) == "small"
    assert all(chunk["selection"] == selection and chunk["id"] == start["id"] for chunk in chunks)
    (complete,) = of(run, "artifact_partial_update_complete")
    assert (complete["selection"], complete["updatedContent"], complete["written"]) == (
        selection,
        "small",
        {"start": 6, "end": 11},
    )
    assert not of(run, "assistant")
    assert state_of(run)["artifacts"]["doc"]["parts"] == [{"kind": "text", "text": "Hello small world"}]


async def test_an_edit_that_comes_to_nothing_is_aborted_and_the_artifact_is_as_it_was() -> None:
    run = (await PLAYS["an edit that is cancelled"]()).run()
    (abort,) = of(run, "artifact_partial_update_abort")
    assert (abort["selection"], abort["artifactId"]) == ({"start": 6, "end": 9}, "doc")
    assert state_of(run)["artifacts"]["doc"]["parts"][0]["text"] == "Hello big world"


async def test_who_joins_an_edit_gets_its_beginning_and_its_text_so_far() -> None:
    task = await PLAYS["an edit"]()
    assert kinds(task.run(task.at(EditStarted)))[2] == "artifact_partial_update_start"
    run = task.run(task.at(EditChunk) + 1)
    chunks = [value["chunk"] for value in of(run, "artifact_partial_update_chunk")]
    assert chunks == ["small"]
    assert kinds(run)[2:4] == ["artifact_partial_update_start", "artifact_partial_update_chunk"]


async def test_the_older_view_of_an_edit_is_a_partial_update() -> None:
    run = (await PLAYS["an edit"]()).run(older="doc")
    begin = of(run, "STATE_SNAPSHOT")[0]["snapshot"]
    assert begin["artifactAction"] == "partial_update"
    artifact = state_of(run)["artifact"]
    assert artifact["currentIndex"] == 3
    assert [content["fullMarkdown"] for content in artifact["contents"]] == [
        "Hello",
        "Hello big world",
        "Hello small world",
    ]
