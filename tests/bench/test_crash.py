"""The crash test in miniature; and it notices what it is there to notice."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.models.script import ScriptedModel
from a2a_canvas.server.wire import CANVAS, TURN
from bench import crash
from tests.database_fixtures import sqlite_url
from tests.server.faults.crash_harness import SCENES_AT_ONCE, Tally, complaints, one_round
from tests.server.faults.crash_scripts import (
    NOTED,
    SCENES,
    ScriptedTask,
    crash_script,
    reached,
    repeated,
    write_crash_script,
)
from tests.server.faults.judged_task import JudgedTask
from tests.server.faults.task_driver import RestartedServer

STATES = [(scene.name, states) for scene in SCENES for task in scene.tasks for states in task.states.values()]
GROWING = [states for name, states in STATES if name != "edited"]
"""What grows while it is written; an edit is there at once."""
TASK = ScriptedTask("write", {"doc": ("one\n", "one\ntwo\n")}, "Done.", ({"tools": [{"name": "a"}, {"name": "b"}]},))


def order(epoch: int, generation: int) -> dict[str, object]:
    return {TURN: {"epoch": float(epoch), "generation": float(generation)}}


def snapshot(state: str, text: str = "", *messages: str, at: tuple[int, int] = (1, 1)) -> dict[str, object]:
    """A task as it stands."""
    history = [{"messageId": message, "parts": [{"text": message}]} for message in messages]
    artifacts = [{"artifactId": "doc", "parts": [{"text": text}]}] if text else []
    task = {
        "id": "t",
        "contextId": "c",
        "status": {"state": f"TASK_STATE_{state}"},
        "history": history,
        "artifacts": artifacts,
    }
    return {"task": task | {"metadata": order(*at)}}


def written(text: str, *, append: bool, version: int = 0, at: tuple[int, int] = (1, 2)) -> dict[str, object]:
    """A change of the artifact; with a version it is closed."""
    artifact = {"artifactId": "doc", "parts": [{"text": text}]}
    metadata = order(*at) | {CANVAS: {"artifactVersion": float(version)}}
    change = {"artifact": artifact, "append": append, "lastChunk": version > 0, "metadata": metadata}
    return {"artifactUpdate": change}


def result(call: str, kind: str = "tool_result", at: tuple[int, int] = (1, 3)) -> dict[str, object]:
    """A call has succeeded, or failed."""
    data = {"tool_use_id": call, "content": "Written.", "error": "Nothing was changed."}
    told = {"event_type": kind, "data": data, "epoch": at[0], "generation": at[1]}
    return {"statusUpdate": {"status": {"state": "TASK_STATE_WORKING"}, "metadata": {TURN: told}}}


def faults(*events: dict[str, object]) -> list[str]:
    """The kinds of fault in what a client is told."""
    told = JudgedTask(TASK)
    for event in events:
        told.take(event)
    return [fault.kind for fault in told.faults]


# --------------------------------------------------------------------------- rounds


async def test_a_round_without_a_kill_is_clean_and_a_server_that_forgets_everything_is_found_out(
    tmp_path: Path,
) -> None:
    uninterrupted, killed = Tally(), Tally()
    server = RestartedServer("memory", tmp_path)
    await server.start()
    try:
        await one_round(server, random.Random(2), 0, 0.0, uninterrupted)
        await one_round(server, random.Random(2), 1, 0.0, killed)
    finally:
        await server.stop()
    assert (uninterrupted.rounds, uninterrupted.tasks > SCENES_AT_ONCE, uninterrupted.faults.total()) == (1, True, 0)
    assert (killed.kills, killed.faults["missing"] > 0) == (1, True)


async def test_on_sqlite_a_killed_server_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    tally = Tally()
    server = RestartedServer(sqlite_url(tmp_path), tmp_path)
    await server.start()
    try:
        await one_round(server, random.Random(2), 1, 0.0, tally)
    finally:
        await server.stop()
    assert (tally.kills, tally.at_work > 0, tally.faults) == (1, True, {})


def test_a_report_misses_its_target_if_anything_is_wrong_or_nothing_was_tried() -> None:
    good = Tally(rounds=3, at_work=5)
    bad = Tally(rounds=3, at_work=2)
    bad.faults["twice"] += 1
    assert all(check.holds for check in crash.report({"sqlite": good}, 1).checks)
    missed = [check.name for check in crash.report({"sqlite": bad}, 1).checks if not check.holds]
    assert missed == ["killed at work, sqlite", "twice, sqlite"]


def test_what_a_server_complains_of_counts_once() -> None:
    log = "INFO a\nERROR b: c\nTraceback (most recent call last):\n  d\nWARNING e\nTraceback (most recent call last):\n"
    assert complaints(log.splitlines()) == ["ERROR b: c", "Traceback (most recent call last):"]


# ---------------------------------------------------------------------------- plays


def test_the_script_is_one_that_the_model_takes(tmp_path: Path) -> None:
    ScriptedModel(write_crash_script(tmp_path))


def test_every_message_has_its_own_rule() -> None:
    says = [task.says for scene in SCENES for task in scene.tasks if task.rounds]
    assert len(set(says)) == len(says) == len(crash_script()["rules"]) - 1


@pytest.mark.parametrize(("name", "states"), STATES)
def test_what_a_script_writes_has_no_line_twice_and_is_known_at_every_step(name: str, states: tuple[str, ...]) -> None:
    assert [reached(states, text) for text in states] == list(range(1, len(states) + 1))
    assert not any(map(repeated, states))


@given(st.sampled_from(GROWING), st.data())
def test_the_beginning_of_the_next_change_counts_for_the_ones_before(
    states: tuple[str, ...], data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(states) - 1))
    before = states[number - 1] if number else ""
    start = len(before) if states[number].startswith(before) else 1  # an empty text is before the first change
    cut = data.draw(st.integers(start, len(states[number]) - 1))
    assert reached(states, states[number][:cut]) == number


@given(st.sampled_from([states for _, states in STATES]), st.data())
def test_a_line_that_is_there_twice_or_missing_is_no_text_of_the_script(
    states: tuple[str, ...], data: st.DataObject
) -> None:
    lines = states[-1].splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 2))
    doubled = "".join([*lines[: at + 1], *lines[at:]])
    assert (reached(states, doubled), repeated(doubled)) == (None, lines[at].rstrip("\n"))
    assert reached(states, "".join([*lines[:at], *lines[at + 1 :]])) is None


def test_a_reply_may_be_to_what_was_said_last() -> None:
    assert [NOTED in task.replies for scene in SCENES for task in scene.tasks] == [
        task.more for scene in SCENES for task in scene.tasks
    ]


# ----------------------------------------------------------------------------- told


def test_what_goes_on_as_it_should_is_no_fault() -> None:
    assert not faults(
        snapshot("SUBMITTED", "", "m"),
        written("on", append=False),
        written("e\n", append=True, version=1),
        result("first"),
        snapshot("WORKING", "one\ntw", "m", at=(2, 9)),
        written("one\n", append=False, at=(2, 10)),
        written("two\n", append=True, version=2, at=(2, 11)),
        result("second", at=(2, 11)),
        snapshot("COMPLETED", "one\ntwo\n", "m", "Done.", at=(2, 12)),
    )


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([snapshot("WORKING", "", "m", "n"), snapshot("WORKING", "", "m", at=(2, 1))], "missing"),
        ([snapshot("COMPLETED"), snapshot("WORKING", at=(2, 1))], "missing"),
        ([snapshot("INPUT_REQUIRED"), snapshot("WORKING", at=(2, 1))], "missing"),
        ([result("first", at=(1, 5)), snapshot("WORKING", at=(1, 4))], "missing"),
        ([written("o", append=False, at=(1, 5)), written("n", append=True, at=(1, 4))], "missing"),
        ([snapshot("WORKING", "one\n"), result("first"), snapshot("WORKING", "on", at=(2, 1))], "missing"),
        ([snapshot("WORKING", "one\n"), result("first"), snapshot("WORKING", at=(2, 1))], "missing"),
        ([result("first"), result("second"), result("third")], "twice"),
        ([snapshot("WORKING", "one\none\n")], "twice"),
        ([written("one\n", append=False), written("one\n", append=True)], "twice"),
        ([snapshot("WORKING", "three")], "text"),
        ([written("on", append=False, version=1), written("e\n", append=True, version=1)], "text"),
        ([result("first", "tool_execution_error")], "broken"),
    ],
)
def test_what_ought_not_to_be_is_noticed(events: list[dict[str, object]], kind: str) -> None:
    assert faults(*events) == [kind]


def test_text_on_its_way_may_be_lost_until_the_task_is_taken_over() -> None:
    lost = snapshot("WORKING", "o", at=(1, 2))
    assert not faults(snapshot("WORKING"), written("one\n", append=False, at=(1, 4)), lost)


def test_what_a_client_is_told_that_must_last_is_counted() -> None:
    told = JudgedTask(TASK)
    for event in (snapshot("WORKING", "", "m"), written("one\n", append=False, version=1), result("first")):
        told.take(event)
    assert told.count == 3


def test_an_error_is_no_event() -> None:
    with pytest.raises(ValueError, match="not an event"):
        JudgedTask(TASK).take({"error": {"code": -32603}})
