"""What a person sees of a task, on a terminal and elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from operator import methodcaller
from pathlib import Path
from threading import active_count
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import ParseDict
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from a2a_canvas.server.client.screen.fold import SeenTask, fold
from a2a_canvas.server.client.screen.screen import Screen
from a2a_canvas.server.wire import TURN
from tests.server.client.client_harness import Screen as Stream
from tests.server.client.client_harness import status as task_status
from tests.server.client.client_harness import update

Step = Callable[[Screen], object]
STYLES = re.compile(r"\x1b\[[\d;]*m")
HEAD = "── doc.md ──────────────────────────────\n"


def shown(*steps: Step, thinking: bool = False) -> tuple[str, str]:
    """What is on `out` and on `err`, neither being a terminal."""
    out, err = StringIO(), StringIO()
    screen = Screen(Console(file=out), Console(file=err), thinking=thinking)
    for step in steps:
        step(screen)
    screen.close()
    return out.getvalue(), err.getvalue()


def styled(*steps: Step, live: bool = False) -> str:
    """What is written to a terminal of 40 columns; without a status line unless `live`."""
    out = Stream(tty=live)
    console = Console(file=out, force_terminal=True, width=40, height=20, highlight=False, _environ={})
    screen = Screen(console, Console(file=StringIO()))
    for step in steps:
        step(screen)
    screen.close()
    return out.getvalue()


def doc(text: str, *, append: bool = False, name: str = "doc.md") -> Step:
    return methodcaller(
        "artifact", pb.Artifact(artifact_id="doc", name=name, parts=[pb.Part(text=text)]), append=append
    )


def check(holds: bool) -> None:
    assert holds


def reply(text: str) -> Step:
    return methodcaller("reply", text)


def final(text: str) -> Step:
    return methodcaller("closing_reply", text)


def status(text: str) -> Step:
    return methodcaller("status", text)


def responses(*said: pb.StreamResponse) -> Step:
    """What a server says, one response after the other."""

    def step(screen: Screen) -> None:
        seen = SeenTask()
        for response in said:
            seen = fold(seen, response)
            screen.show(response, seen)

    return step


def turn(value: Any) -> pb.StreamResponse:
    event = update("WORKING")
    event.status_update.metadata.update({TURN: value})
    return event


def said(event_type: str, **data: Any) -> pb.StreamResponse:
    return turn({"event_type": event_type, "data": data})


def test_text_is_printed_once_and_what_is_written_anew_in_full() -> None:
    out, _ = shown(doc("one "), doc("two\n", append=True), doc("one two\nthree\n"), doc("other"), final(""))
    assert out == f"{HEAD}one two\nthree\n── doc.md (rewritten) ──────────────────\nother\n"


def test_a_reply_between_two_pieces_of_an_artifact_has_its_own_place() -> None:
    out, _ = shown(reply("I am"), reply("I am here."), doc("one"), reply("Next."), doc("two", append=True))
    rule = "─" * 40 + "\n"
    assert out == f"I am here.\n{HEAD}one\n{rule}Next.\n── doc.md (continued) ──────────────────\ntwo\n"


def adk(text: str, *, partial: bool) -> pb.StreamResponse:
    event = update("WORKING", text)
    event.status_update.metadata.update({"adk_partial": partial} if partial else {})
    return event


def artifact(text: str) -> pb.StreamResponse:
    event = pb.StreamResponse()
    event.artifact_update.artifact.CopyFrom(pb.Artifact(artifact_id="a1", parts=[pb.Part(text=text)]))
    return event


@pytest.mark.parametrize("partial", [True, False])
def test_an_answer_in_pieces_that_comes_again_whole_and_as_an_artifact_is_shown_once(partial: bool) -> None:
    """As google-adk sends it."""
    pieces = [adk("Tea\n", partial=True), adk("is hot.", partial=True)] if partial else []
    out, err = shown(responses(*pieces, adk("Tea\nis hot.", partial=False), artifact("Tea\nis hot.")))
    assert (out, err) == ("Tea\nis hot.\n", "")


def test_pieces_of_a_later_round_are_a_reply_of_their_own() -> None:
    rounds = [adk("One.", partial=True), adk("One.", partial=False), adk("Two.", partial=True), artifact("Three.")]
    out, err = shown(responses(*rounds))
    assert (out.splitlines()[:2], err) == (["One.", "Two."], "")
    assert out.endswith("\nThree.\n")


def test_the_final_reply_is_not_repeated() -> None:
    assert shown(reply("Done."), final("Done.")) == ("Done.\n", "")
    assert shown(reply("Half"), final("Whole."))[0] == "Half\nWhole.\n"


def test_parts_that_are_no_text_are_labels() -> None:
    parts = [
        pb.Part(text="a"),
        pb.Part(raw=bytes(2048), filename="f", media_type="image/png"),
        pb.Part(url="http://x/f"),
        ParseDict({"data": {"é": 3}}, pb.Part()),
    ]
    change = pb.TaskArtifactUpdateEvent(artifact=pb.Artifact(artifact_id="doc.md", parts=parts), append=True)
    out, _ = shown(responses(pb.StreamResponse(artifact_update=change)))
    assert out == f'{HEAD}a\n[file f image/png 2 KB]\n[file http://x/f]\n[data {{"é":3}}]\n'


def test_statuses_are_lines_on_err_each_once_and_the_thinking_on_demand() -> None:
    label = responses(update("WORKING", "Working…"))
    events = [label, label, responses(said("thinking", content="hm")), status("Writing…")]
    assert shown(*events)[1] == "Working…\nWriting…\n"
    assert shown(*events, thinking=True)[1] == "Working…\nhm\nWriting…\n"


def test_the_reply_adds_up_from_its_pieces_and_begins_anew_with_every_answer() -> None:
    pieces = [
        said("assistant", content="I am", replace=True),  # what was said before this client came
        said("text_delta", text=" writ"),
        said("message_start", round=1),  # it broke off
        said("text_delta", text="I am writ"),
        said("text_delta", text="ing."),
        said("assistant", content="I am writing.", replace=True),
        said("message_start", round=2),
        said("text_delta", text="Written."),
    ]
    assert shown(responses(*pieces)) == ("I am writing.\nWritten.\n", "")


def test_a_call_that_has_failed_is_a_line_that_says_so() -> None:
    failing = responses(
        said("tool_use_start", tool_use_id="t-1", name="count_words"),
        update("WORKING", "Running count_words…"),
        said("tool_execution_error", tool_use_id="t-1", error="There is no text.\nCall artifact_list."),
        said("tool_execution_error", tool_use_id="t-0", error="No."),
    )
    told = "count_words failed: There is no text. Call artifact_list."
    assert shown(failing) == ("", f"Running count_words…\n{told}\nA tool failed: No.\n")
    assert told in " ".join(STYLES.sub("", styled(failing)).split())


def test_a_failure_that_names_its_tool_is_said_once() -> None:
    failing = responses(
        said("tool_use_start", tool_use_id="t-1", name="boom"),
        update("WORKING", "Running boom…"),
        said("tool_execution_error", tool_use_id="t-1", error="boom took too long."),
    )
    assert shown(failing) == ("", "Running boom…\nboom took too long.\n")


def test_turn_events_that_are_malformed_show_nothing() -> None:
    for value in ({}, {"event_type": "assistant"}, {"event_type": 7, "data": 1}, "text"):
        assert shown(responses(turn(value))) == ("", "")


def test_closing_words_are_no_status() -> None:
    asking = pb.StreamResponse(task=pb.Task(status=task_status("INPUT_REQUIRED", "Which?")))
    assert shown(responses(update("COMPLETED", "Done."), asking)) == ("", "")


def test_ids_and_lines_of_our_own_stand_alone() -> None:
    seen = SeenTask("t1", "c1", artifacts=(("r1", "report.md"),))
    out, _ = shown(doc("text"), methodcaller("print_ids", seen), methodcaller("line", "Next"))
    assert out == f"{HEAD}text\ncontext   c1\ntask      t1\nartifact  r1  report.md\nNext\n"


def test_markdown_is_styled_on_a_terminal_however_it_is_cut() -> None:
    text = "# Title\n\nSome *words* here.\n\n- a\n- b\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n```\nend"
    whole = styled(doc(text))
    assert "\x1b[1" in whole
    plain = STYLES.sub("", whole)
    assert not re.search(r"[*#|`]|---", plain)
    pieces = [doc("")] + [doc(character, append=True) for character in text]
    assert [line.rstrip() for line in STYLES.sub("", styled(*pieces)).split("\n")] == [
        line.rstrip() for line in plain.split("\n")
    ]


def test_the_lines_of_a_poem_stay_lines() -> None:
    assert "one\ntwo\n" in STYLES.sub("", styled(doc("one\ntwo\n")))


def test_code_is_coloured_by_its_name_and_text_is_left_alone() -> None:
    assert "\x1b[" in styled(doc("def f(): pass\n", name="f.py")).partition("\n")[2]
    assert styled(doc("# no *Markdown*\n\nx\n", name="a.txt")).partition("\n")[2] == "# no *Markdown*\n\nx\n"


async def test_only_the_thread_that_prints_draws_so_that_nothing_that_is_printed_is_erased() -> None:
    before = active_count()
    styled(status("Working…"), lambda _: check(active_count() == before), doc("# T\n\none\n\ntwo\n"), live=True)


async def test_the_status_line_is_erased_before_the_end() -> None:
    written = styled(status("Working…"), doc("one\n"), final("Done."), live=True)
    _, working, after = written.rpartition("Working…")
    assert working
    assert "\x1b[2K" in after
    assert "Done." in after


@given(st.text())
def test_no_control_character_of_a_server_reaches_the_screen(text: str) -> None:
    out, err = shown(doc(text), reply(text), status(text), final(text))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out + err)


def test_where_both_outputs_are_one_file_a_status_is_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    with file.open("w") as out, open(out.fileno(), "w", closefd=False) as err:
        screen = Screen(Console(file=out), Console(file=err))
        screen.reply("A limerick, then.")
        screen.status("Writing limerick.md…")
        screen.artifact(pb.Artifact(artifact_id="doc", name="doc.md", parts=[pb.Part(text="There was")]))
        screen.close()
    assert file.read_text() == f"A limerick, then.\nWriting limerick.md…\n{HEAD}There was\n"
