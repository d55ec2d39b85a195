"""The screen of `send`: every event, exactly as it is written, on a terminal and in a file."""

from __future__ import annotations

from io import BytesIO, StringIO, TextIOWrapper
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a_canvas.server.client.display import (
    ArtifactParts,
    DataLabel,
    FailureNotice,
    FileLabel,
    FinalReply,
    PlainLine,
    ReplyText,
    ScreenEvent,
    StatusText,
    TaskFacts,
    advance,
    cells,
    clean,
    fit,
    label,
    one_line,
)
from a2a_canvas.server.client.terminal import Terminal
from tests.property_examples import examples
from tests.server.client.emulator import Emulator

WIPE, DIM, PLAIN = "\r\x1b[K", "\x1b[2m", "\x1b[0m"
BELOW, BACK, WIPE_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r", "\x1b8", "\x1b[J"
REPORT = "── report.md ───────────────────────────\n"
CONTINUED = "── report.md (continued) ───────────────\n"
REWRITTEN = "── report.md (rewritten) ───────────────\n"
RULE = "─" * 40 + "\n"


class FakeTTY(StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(*events: ScreenEvent, columns: int = 80, thinking: bool = False) -> str:
    out = FakeTTY()
    terminal = Terminal(out, StringIO(), lambda: columns, thinking=thinking)
    for event in events:
        terminal.show(event)
    return out.getvalue()


class Fed(FakeTTY):
    """A terminal that someone looks at."""

    def __init__(self, emulator: Emulator) -> None:
        super().__init__()
        self._emulator = emulator

    def write(self, text: str) -> int:
        self._emulator.feed(text)
        return super().write(text)


def screen(*events: ScreenEvent, columns: int = 80, rows: int = 24, thinking: bool = False) -> list[str]:
    """The rows that a person sees, with what has scrolled away."""
    emulator = Emulator(columns, rows)
    emulator.feed(on_terminal(*events, columns=columns, thinking=thinking))
    return emulator.lines()


def in_file(*events: ScreenEvent) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    terminal = Terminal(out, err, lambda: 80, thinking=True)
    for event in events:
        terminal.show(event)
    return out.getvalue(), err.getvalue()


def text_of(*events: ScreenEvent) -> str:
    return in_file(*events)[0]


def report(*parts: str | FileLabel | DataLabel, append: bool = False, name: str = "report.md") -> ArtifactParts:
    return ArtifactParts("r1", parts, name, append)


# ------------------------------------------------------------------ status line


def test_a_status_overwrites_the_one_before() -> None:
    shown = on_terminal(StatusText("Working…"), StatusText("Writing report.md…"), StatusText(""))
    assert shown == f"{DIM}Working…{PLAIN}{WIPE}{DIM}Writing report.md…{PLAIN}{WIPE}"


def test_the_same_status_is_drawn_once() -> None:
    assert on_terminal(StatusText("Working…"), StatusText("Working…")) == f"{DIM}Working…{PLAIN}"


def test_a_status_is_one_line_and_leaves_the_last_column_free() -> None:
    assert on_terminal(StatusText("one\n\ttwo three"), columns=10) == f"{DIM}one two …{PLAIN}"


def test_wide_characters_count_two_columns() -> None:
    assert fit("報告書を書く", 7) == "報告書…"
    assert fit("報告書", 6) == "報告書"
    assert fit("e\u0301e\u0301", 2) == "e\u0301e\u0301"


def test_a_status_is_wiped_before_text() -> None:
    shown = on_terminal(StatusText("Writing…"), report("# T\n"))
    assert shown == f"{DIM}Writing…{PLAIN}{WIPE}{REPORT}# T\n{DIM}Writing…{PLAIN}"


def test_a_status_in_mid_line_stands_below_and_the_text_goes_on_where_it_was() -> None:
    emulator = Emulator(40, 4)
    terminal = Terminal(Fed(emulator), StringIO(), lambda: 40)
    steps: list[tuple[ScreenEvent, list[str], tuple[int, int]]] = [
        (report("# T\nfirst"), ["# T", "first"], (2, 5)),
        (StatusText("Writing…"), ["# T", "first", "Writing…"], (2, 5)),
        (StatusText("Still writing…"), ["# T", "first", "Still writing…"], (2, 5)),
        (report(" and\nlast", append=True), ["# T", "first and", "last", "Still writing…"], (3, 4)),
        (StatusText(""), ["# T", "first and", "last"], (3, 4)),
        (ReplyText("Done"), ["# T", "first and", "last", "─" * 40, "Done"], (5, 4)),
    ]
    for event, rows, cursor in steps:
        terminal.show(event)
        assert emulator.lines()[1:] == rows
        assert (emulator.row, emulator.column) == cursor


def test_a_status_waits_where_the_text_has_just_filled_its_row() -> None:
    filled = (StatusText("Writing…"), ReplyText("0123456789"), StatusText("Reading…"))
    assert on_terminal(*filled, columns=10).endswith("0123456789")
    assert screen(*filled, ReplyText("0123456789a"), StatusText("More…"), columns=10) == ["0123456789", "a", "More…"]


def test_a_status_that_is_over_leaves_nothing_below_the_text() -> None:
    shown = on_terminal(ReplyText("Hi"), StatusText("Writing…"), StatusText(""))
    assert shown == f"Hi{BELOW}{DIM}Writing…{PLAIN}{BACK}{WIPE_BELOW}"


def test_thinking_is_not_shown_unless_it_is_asked_for() -> None:
    label, thought = StatusText("Working…"), StatusText("hmm", thinking=True)
    assert on_terminal(label, thought) == on_terminal(label)


def test_a_piece_of_thinking_replaces_the_label_and_the_piece_before() -> None:
    events = [StatusText("Working…"), *(StatusText(piece, thinking=True) for piece in ("Planning", " an\noutline."))]
    assert [screen(*events[:count], thinking=True) for count in (2, 3)] == [["Planning"], ["an outline."]]
    assert screen(*events, columns=10, thinking=True) == ["an outli…"]


@pytest.mark.parametrize("said", [StatusText("Writing…"), StatusText("Working…"), ReplyText("Hi")])
def test_what_is_said_next_replaces_the_thinking(said: StatusText | ReplyText) -> None:
    assert screen(StatusText("Working…"), StatusText("hmm", thinking=True), said, thinking=True) == [said.text]


def test_thinking_without_a_word_leaves_the_status_as_it_is() -> None:
    blank = [StatusText(piece, thinking=True) for piece in ("\n", "")]
    assert screen(StatusText("Working…"), *blank, thinking=True) == ["Working…"]


def test_thinking_is_a_status_that_the_reply_clears() -> None:
    events = (StatusText("hmm", thinking=True), ReplyText("Hi"), ReplyText("Hi there\n"))
    shown = on_terminal(*events, thinking=True)
    assert shown == f"{DIM}hmm{PLAIN}{WIPE}Hi there\n"


def test_a_status_that_repeats_what_was_just_typed_is_left_out() -> None:
    assert on_terminal(ReplyText("Let me\nsee.\n"), StatusText("Let me see.")) == "Let me\nsee.\n"


# -------------------------------------------------------------------- artifacts


def test_an_artifact_grows_under_one_header() -> None:
    shown = text_of(report("# T\n"), report("a", append=True), report("b\n", append=True))
    assert shown == REPORT + "# T\nab\n"


def test_a_replacement_that_extends_what_was_printed_adds_only_the_rest() -> None:
    assert text_of(report("# T\n"), report("# T\nmore\n")) == REPORT + "# T\nmore\n"


def test_a_replacement_that_changes_nothing_prints_nothing() -> None:
    assert text_of(report("# T\n"), report("# T\n")) == REPORT + "# T\n"


def test_any_other_replacement_is_printed_whole_under_a_new_header() -> None:
    assert text_of(report("# T\nold"), report("# T\nnew\n")) == f"{REPORT}# T\nold\n{REWRITTEN}# T\nnew\n"


def test_going_on_after_another_artifact_says_so() -> None:
    other = ArtifactParts("r2", ("x",), "b")
    shown = text_of(report("a"), other, report("c\n", append=True))
    assert shown == f"{REPORT}a\n── b {'─' * 35}\nx\n{CONTINUED}c\n"


def test_an_artifact_without_a_name_goes_by_its_id() -> None:
    assert text_of(ArtifactParts("r1", ("x\n",))).startswith("── r1 ─")


def test_an_append_without_a_name_keeps_the_first() -> None:
    other = ArtifactParts("r2", ("x\n",), "b")
    assert CONTINUED in text_of(report("a\n"), other, report("b\n", append=True, name=""))


def test_an_append_to_an_unknown_artifact_opens_it() -> None:
    assert text_of(report("a\n", append=True)) == REPORT + "a\n"


def test_parts_that_are_not_text_are_one_line_each() -> None:
    chart = FileLabel("chart.png", "image/png", size=12 * 1024)
    shown = text_of(report("see", chart), report("see", chart, DataLabel('{"n":1}')))
    assert shown == f'{REPORT}see\n[file chart.png image/png 12 KB]\n[data {{"n":1}}]\n'


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (FileLabel("a.bin", size=0), "[file a.bin 0 B]"),
        (FileLabel("", "image/png", size=3 * 1024 * 1024 + 500_000), "[file image/png 3.5 MB]"),
        (FileLabel("a", url="http://x/a"), "[file a http://x/a]"),
        (DataLabel("1" * 100), f"[data {'1' * 59}…]"),
        (FileLabel("a\x1b]0;b\nc"), "[file a]0;b c]"),
    ],
)
def test_labels(part: FileLabel | DataLabel, expected: str) -> None:
    assert label(part) == expected


# ------------------------------------------------------------------------ reply


def test_a_reply_types_out_below_the_artifact() -> None:
    shown = text_of(report("# T"), ReplyText("I wr"), ReplyText("I wrote it."), FinalReply("I wrote it."))
    assert shown == f"{REPORT}# T\n{RULE}I wrote it.\n"


def test_a_reply_that_does_not_extend_the_last_starts_a_new_line() -> None:
    assert text_of(ReplyText("First round"), ReplyText("Second"), FinalReply("Second")) == "First round\nSecond\n"


def test_the_final_reply_is_not_repeated_when_only_its_edges_differ() -> None:
    assert text_of(ReplyText("Done. \n"), FinalReply("Done.")) == "Done. \n"


def test_the_final_reply_adds_what_was_not_typed_yet() -> None:
    assert text_of(ReplyText("Done"), FinalReply("Done, all of it.")) == "Done, all of it.\n"


def test_the_final_reply_stands_whole_when_something_else_was_typed() -> None:
    assert text_of(ReplyText("Let me see"), FinalReply("Done.")) == "Let me see\nDone.\n"


def test_an_empty_final_reply_ends_the_line() -> None:
    assert text_of(ReplyText("Half"), FinalReply("")) == "Half\n"
    assert text_of(FinalReply("")) == ""


def test_what_was_typed_before_an_artifact_is_not_said_again_after_it() -> None:
    shown = text_of(ReplyText("All done."), report("x\n"), FinalReply("All done."))
    assert shown == f"All done.\n{REPORT}x\n"


# ------------------------------------------------------------------------ rules


def test_a_rule_is_no_wider_than_the_window() -> None:
    shown = on_terminal(report("x\n"), ReplyText("Hi\n"), columns=22)
    assert shown == f"── report.md ─────────\nx\n{'─' * 22}\nHi\n"


def test_a_rule_counts_the_cells_of_a_wide_name() -> None:
    header = text_of(report("x\n", name="報告書.md")).splitlines()[0]
    assert (cells(header), len(header)) == (40, 37)


def test_a_name_too_long_for_the_window_is_cut_and_what_is_said_of_it_is_not() -> None:
    shown = screen(report("a\n"), report("b\n"), columns=22)
    assert shown == ["── report.md ─────────", "a", "── rep… (rewritten) ──", "b"]
    assert text_of(report("a\n", name="n" * 60)).startswith(f"── {'n' * 60} ──\n")


# ---------------------------------------------------------------------- the end


def test_ids_come_last_and_dim() -> None:
    facts = TaskFacts("c1", "t1", (("r1", "report.md"), ("r2", "")))
    lines = ["context   c1", "task      t1", "artifact  r1  report.md", "artifact  r2"]
    assert on_terminal(StatusText("Working…"), facts) == (
        f"{DIM}Working…{PLAIN}{WIPE}" + "".join(f"{DIM}{line}{PLAIN}\n" for line in lines)
    )
    assert text_of(ReplyText("Hi"), facts) == "Hi\n" + "".join(f"{line}\n" for line in lines)


def test_ids_that_are_not_known_are_left_out() -> None:
    assert text_of(TaskFacts(context_id="c1")) == "context   c1\n"


def test_an_id_cannot_pass_for_a_row_of_ours() -> None:
    facts = TaskFacts("c1\ntask      t2", "\u202et1\u2028x", (("r1\n", "a\u2066\nb"), ("\x1b", "")))
    assert text_of(facts) == "context   c1 task t2\ntask      t1 x\nartifact  r1  a b\n"


def test_a_line_of_our_own_stands_alone() -> None:
    assert text_of(report("a"), PlainLine("Answer with: x")) == REPORT + "a\nAnswer with: x\n"


def test_a_failure_is_one_line_on_err_after_the_screen_is_tidy() -> None:
    out, err = FakeTTY(), StringIO()
    terminal = Terminal(out, err, lambda: 80)
    for event in (StatusText("Working…"), FailureNotice("Task failed: a\nb")):
        terminal.show(event)
    assert out.getvalue() == f"{DIM}Working…{PLAIN}{WIPE}"
    assert err.getvalue() == "Task failed: a b\n"
    assert in_file(report("a"), FailureNotice("x")) == (REPORT + "a\n", "x\n")


def test_what_can_be_done_stands_below_a_failure() -> None:
    assert in_file(FailureNotice("x", ("Do\nthis", "or that"))) == ("", "x\nDo this\nor that\n")


# -------------------------------------------------------------- not a terminal


def test_in_a_file_statuses_are_lines_on_err_and_thinking_is_left_out() -> None:
    shown = in_file(StatusText("Working…"), StatusText("Working…"), StatusText("hmm", thinking=True), ReplyText("Hi\n"))
    assert shown == ("Hi\n", "Working…\n")


def test_what_the_encoding_lacks_is_replaced() -> None:
    raw = BytesIO()
    terminal = Terminal(TextIOWrapper(raw, encoding="ascii"), StringIO(), lambda: 80)
    terminal.show(ReplyText("caf\u00e9 \ud800"))
    assert raw.getvalue() == b"caf? ?"


# -------------------------------------------------------------- untrusted text

ANYTHING = st.text(alphabet=st.one_of(st.sampled_from("\x1b\r\n\t\x07\x9b\x7f\u202e\u2028ab ["), st.characters()))


@given(ANYTHING, ANYTHING)
@settings(max_examples=examples(200))
def test_no_control_character_of_a_server_gets_through(text: str, name: str) -> None:
    events: list[ScreenEvent] = [
        StatusText(text),
        report(text, FileLabel(text, name), DataLabel(text), name=name),
        report(name, append=True),
        ReplyText(text),
        FinalReply(name),
        TaskFacts(text, name, ((text, name),)),
        PlainLine(text),
        FailureNotice(text),
    ]
    shown = in_file(*events)
    assert all(c in "\n\t" or c == clean(c) for c in "".join(shown))
    ours = on_terminal(*events)
    for code in (BELOW, BACK, WIPE, WIPE_BELOW, DIM, PLAIN):
        ours = ours.replace(code, "")
    assert all(c in "\n\t" or c == clean(c) for c in ours)


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069"])
def test_what_turns_letters_around_or_breaks_lines_unseen_is_taken_out(character: str) -> None:
    assert clean(f"a{character}b") == "ab"


def test_the_marks_that_hebrew_and_arabic_need_stay() -> None:
    assert clean("a\u200e\u200f\u061cb") == "a\u200e\u200f\u061cb"


@given(ANYTHING)
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


@given(ANYTHING, st.integers(1, 30))
def test_fitted_text_fits(text: str, columns: int) -> None:
    shown = fit(one_line(text), columns)
    assert fit(shown, columns) == shown


def cut(text: str, places: list[int]) -> list[str]:
    borders = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[a:b] for a, b in pairwise(borders)]


@given(ANYTHING, st.lists(st.integers(0, 1000), max_size=8))
@example("a\r\n\x1b[31mb", [2, 4, 5])
def test_however_text_is_cut_into_appends_the_plain_output_has_it_once(text: str, places: list[int]) -> None:
    first, *rest = cut(text, places)
    shown = text_of(report(first), *(report(piece, append=True) for piece in rest), report(text))
    assert shown == (REPORT + clean(text)).encode("utf-8", "replace").decode()


@given(ANYTHING, st.lists(st.integers(0, 1000), max_size=8))
def test_however_often_a_reply_is_told_it_is_typed_once(text: str, places: list[int]) -> None:
    told = [ReplyText(text[: place % (len(text) + 1)]) for place in sorted(p % (len(text) + 1) for p in places)]
    shown = text_of(*told, ReplyText(text), FinalReply(text))
    assert shown.rstrip("\n") == clean(text).encode("utf-8", "replace").decode().rstrip("\n")


CELLS = st.text(alphabet=st.sampled_from("ab 報é\u0301\t\n"), max_size=60)
STATUSES = st.sampled_from(["Hm", "報告書", "x" * 50])


@given(CELLS, st.lists(st.integers(0, 1000), max_size=8), STATUSES, st.integers(8, 30))
@example("# T\nbody\n", [2, 4, 7], "Writing…", 20)
@example("0123456789", [8, 8, 9], "Writing…", 8)
def test_statuses_leave_no_trace_in_the_text(text: str, places: list[int], status: str, columns: int) -> None:
    pieces = [report(piece, append=True) for piece in cut(text, places)]
    among = [event for piece in pieces for event in (piece, StatusText(status), StatusText("t", thinking=True))]
    shown = screen(*among, StatusText(""), columns=columns, rows=3, thinking=True)
    assert shown == screen(*pieces, columns=columns, rows=3)
    told = [ReplyText(text[:end]) for end in sorted(place % (len(text) + 1) for place in places)]
    between = [event for reply in told for event in (reply, StatusText(status))]
    assert screen(*between, StatusText(""), columns=columns, rows=3) == screen(*told, columns=columns, rows=3)


@given(CELLS, st.integers(2, 30), st.integers(0, 30))
def test_the_column_is_that_of_the_cursor(text: str, columns: int, start: int) -> None:
    start %= columns
    emulator = Emulator(columns, 3)
    emulator.feed(" " * start + text)
    assert min(advance(start, text, columns), columns - 1) == emulator.column
