"""What a person sees of a task, on a terminal and elsewhere."""

from __future__ import annotations

import re
from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from a2a_canvas.server.client.display import (
    ArtifactParts,
    DataLabel,
    FileLabel,
    FinalReply,
    PlainLine,
    ReplyText,
    ScreenEvent,
    StatusText,
    TaskFacts,
)
from a2a_canvas.server.client.screen import Screen
from tests.server.client.client_harness import Screen as Stream

STYLES = re.compile(r"\x1b\[[\d;]*m")
HEAD = "── doc.md ──────────────────────────────\n"


def shown(*events: ScreenEvent, thinking: bool = False) -> tuple[str, str]:
    """What is on `out` and on `err`, neither being a terminal."""
    out, err = StringIO(), StringIO()
    screen = Screen(Console(file=out), Console(file=err), thinking=thinking)
    for event in events:
        screen.show(event)
    screen.close()
    return out.getvalue(), err.getvalue()


def styled(*events: ScreenEvent, live: bool = False) -> str:
    """What is written to a terminal of 40 columns; without a status line unless `live`."""
    out = Stream(tty=live)
    console = Console(file=out, force_terminal=True, width=40, height=20, highlight=False, _environ={})
    screen = Screen(console, Console(file=StringIO()))
    for event in events:
        screen.show(event)
    screen.close()
    return out.getvalue()


def doc(text: str, *, append: bool = False, name: str = "doc.md") -> ArtifactParts:
    return ArtifactParts("doc", (text,), name, append)


def test_text_is_printed_once_and_what_is_written_anew_in_full() -> None:
    out, _ = shown(doc("one "), doc("two\n", append=True), doc("one two\nthree\n"), doc("other"), FinalReply(""))
    assert out == f"{HEAD}one two\nthree\n── doc.md (rewritten) ──────────────────\nother\n"


def test_a_reply_between_two_pieces_of_an_artifact_has_its_own_place() -> None:
    out, _ = shown(ReplyText("I am"), ReplyText("I am here."), doc("one"), ReplyText("Next."), doc("two", append=True))
    rule = "─" * 40 + "\n"
    assert out == f"I am here.\n{HEAD}one\n{rule}Next.\n── doc.md (continued) ──────────────────\ntwo\n"


def test_the_final_reply_is_not_repeated() -> None:
    assert shown(ReplyText("Done."), FinalReply("Done.")) == ("Done.\n", "")
    assert shown(ReplyText("Half"), FinalReply("Whole."))[0] == "Half\nWhole.\n"


def test_parts_that_are_no_text_are_labels() -> None:
    parts = (FileLabel("a.png", "image/png", 2048), DataLabel('{"k":1}'))
    assert shown(ArtifactParts("doc", parts, "doc.md"))[0] == f'{HEAD}[file a.png image/png 2 KB]\n[data {{"k":1}}]\n'


def test_statuses_are_lines_on_err_each_once_and_the_thinking_on_demand() -> None:
    events = [StatusText("Working…"), StatusText("Working…"), StatusText("hm", thinking=True), StatusText("Writing…")]
    assert shown(*events)[1] == "Working…\nWriting…\n"
    assert shown(*events, thinking=True)[1] == "Working…\nhm\nWriting…\n"


def test_ids_and_lines_of_our_own_stand_alone() -> None:
    facts = TaskFacts("c1", "t1", (("r1", "report.md"),))
    out, _ = shown(doc("text"), facts, PlainLine("Next"))
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


def test_the_status_line_is_erased_before_the_end() -> None:
    written = styled(StatusText("Working…"), doc("one\n"), FinalReply("Done."), live=True)
    _, status, after = written.rpartition("Working…")
    assert status
    assert "\x1b[2K" in after
    assert "Done." in after


@given(st.text())
def test_no_control_character_of_a_server_reaches_the_screen(text: str) -> None:
    out, err = shown(doc(text), ReplyText(text), StatusText(text), FinalReply(text))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out + err)
