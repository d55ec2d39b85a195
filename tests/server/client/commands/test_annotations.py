"""The commands for comments and suggestions, against the whole application on loopback."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.client.commands import annotations, files
from a2a_canvas.server.client.commands.annotations import annotation_number, diff_lines
from a2a_canvas.server.client.conversation.invocation import Invocation
from tests.server.app_server import Served, agent_options, serving
from tests.server.canvas_client import Doc, made
from tests.server.client.artifact_runs import run
from tests.server.client.client_harness import Result, typed

TEXT = "# Tide pools\n\nA 😀 pool is small.\nIt is deep.\n"


@pytest.fixture
async def doc(served: Served) -> Doc:
    return await made(served, TEXT, "tide-pools.md", "text/markdown")


async def call(doc: Doc, *words: str) -> Result:
    return await typed(*words, "--context", doc.context, "--url", doc.served.url)


async def test_a_passage_is_commented_on_by_its_text_or_by_lines_and_listed(doc: Doc) -> None:
    added = await call(doc, "comment", "tide-pools.md", "pool is small", "What about", "large ones?")
    assert (added.code, added.out) == (0, "Added comment 1.\n")
    assert (await call(doc, "comment", "doc", "--lines", "4", "How deep?")).out == "Added comment 2.\n"
    assert (await call(doc, "reply", "doc", "#2", "Very", "deep.")).out == "Replied to comment 2.\n"
    head, first, second, reply = (await call(doc, "comments")).out.splitlines()
    assert head.split() == ["#", "line", "by", "made", "state", "passage", "comment"]
    assert first.split()[:3] == ["#1", "3", "user"]
    assert first.endswith("pool is small  What about large ones?")
    assert second.split()[:2] == ["#2", "4"]
    assert second.endswith("It is deep.    How deep?")
    assert reply.endswith("↳ Very deep.")
    assert (await call(doc, "resolve", "1")).out == "Resolved comment 1.\n"
    assert "#1" not in (await call(doc, "comments", "doc")).out
    assert " resolved " in (await call(doc, "comments", "doc", "--all")).out
    assert (await call(doc, "withdraw", "2")).out == "Withdrew comment 2.\n"
    assert (await call(doc, "comments")).err == "There are no open comments.\n"


async def test_suggestions_are_diffs_and_are_accepted_and_rejected_by_number(doc: Doc) -> None:
    assert (await call(doc, "suggest", "doc", "small", "tiny", "-m", "shorter")).out == "Added suggestion 1.\n"
    assert (await call(doc, "suggest", "doc", "--lines", "4", "")).out == "Added suggestion 2.\n"
    head, old, new, why, *second = (await call(doc, "suggestions", "doc")).out.splitlines()
    assert head.startswith("#1, line 3, by anonymous, ")
    assert (old, new) == ("-A 😀 pool is small.", "+A 😀 pool is tiny.")
    assert why == "↳ user: shorter"
    assert second[1:] == ["-It is deep.", "+"]
    assert (await call(doc, "accept", "doc", "1")).out == "Accepted suggestion 1: version 2 is saved.\n"
    assert (await call(doc, "reject", "#2")).out == "Rejected suggestion 2.\n"
    assert (await call(doc, "show", "doc")).out == TEXT.replace("small", "tiny")
    assert (await call(doc, "suggestions")).err == "There are no open suggestions.\n"
    states = [
        line.rpartition(": ")[2] for line in (await call(doc, "suggestions", "--all")).out.splitlines() if "#" in line
    ]
    assert states == ["accepted", "rejected"]


async def test_diffs_have_colours_on_a_terminal(doc: Doc) -> None:
    await call(doc, "suggest", "doc", "small", "tiny")
    shown = await run(
        annotations.suggestions, doc.served.url, tty=True, artifact="doc", context=doc.context, closed=False, by=None
    )
    assert "\x1b[31m-A 😀 pool is small." in shown.out
    assert "\x1b[32m+A 😀 pool is tiny." in shown.out


async def test_all_suggestions_or_those_of_an_author_are_accepted_as_one_version() -> None:
    ann, bob = new_key("ann"), new_key("bob")
    unique = "5f1c0f8e-2f0b-4f55-9d4e-0f6a1c3b2d70"
    async with serving(grpc=False, database="memory", api_keys=f"ann={ann},bob={bob}") as served:
        served.gate.open()

        async def by(key: str, *words: str, stdin: str = "") -> Result:
            return await typed(*words, "--context", unique, "--url", served.url, "--token", key, stdin=stdin)

        assert (await by(ann, "put", "doc", "-", stdin="one two three\n")).code == 0
        level = ("share", unique, "--with", "bob", "--level", "comment", "--url", served.url, "--token", ann)
        assert (await typed(*level)).out == "bob may read and comment on it.\n"
        assert (await by(ann, "suggest", "doc", "one", "1")).code == 0
        for old, new in (("two", "2"), ("three", "3")):
            assert (await by(bob, "suggest", "doc", old, new)).code == 0
        refused = await by(bob, "accept", "--all")
        assert refused.code == 1
        assert "it needs the level 'edit'" in refused.err
        assert (await by(ann, "suggestions", "--by", "bob")).out.count("by bob") == 2
        assert (await by(ann, "accept", "--all", "--by", "bob")).out == "Accepted 2 suggestions: version 2 is saved.\n"
        assert (await by(ann, "show")).out == "one 2 3\n"
        assert (await by(ann, "accept", "doc", "--all")).out == "Accepted suggestion 1: version 3 is saved.\n"


async def test_a_suggestion_whose_passage_is_gone_is_listed_as_it_was_made_and_can_be_rejected(doc: Doc) -> None:
    await call(doc, "suggest", "doc", "deep", "shallow")
    at = ("--context", doc.context, "--url", doc.served.url)
    assert (await typed("put", "doc", "-", *at, stdin="Another text.\n")).code == 0
    head, *diff = (await call(doc, "suggestions")).out.splitlines()
    assert head.startswith("#1, its passage is gone, by anonymous, ")
    assert head.endswith(": stale")
    assert diff == ["-deep", "+shallow"]
    refused = await call(doc, "accept", "1")
    assert refused.code == 1
    assert "Reject it, or make a new suggestion." in refused.err
    assert (await call(doc, "reject", "1")).code == 0


def test_a_suggestion_in_conflict_is_shown_with_the_text_as_it_is_now() -> None:
    out, err = StringIO(), StringIO()
    conflict = {"annotationId": "n-1", "base": "deep", "current": "very deep", "suggested": "shallow"}
    annotations.show_conflicts(
        Invocation(out=out, err=err), [{"annotationId": "n-1", "number": 3}], {"conflicts": [conflict]}
    )
    assert err.getvalue() == "#3: the text now, and the suggestion\n"
    assert out.getvalue() == "-very deep\n+shallow\n"


@pytest.mark.parametrize(
    ("words", "reason", "advice"),
    [
        (
            ("comment", "doc", "small"),
            "Give the passage and then the comment, or --lines",
            "comment doc 'text of the passage'",
        ),
        (("comment", "doc", "huge", "Why?"), '"huge" does not occur in version 1', ""),
        (("comment", "doc", "is", "Why?"), '"is" occurs 2 times in version 1', ""),
        (("comment", "other", "small", "Why?"), "There is no artifact 'other'", ""),
        (("suggest", "doc", "small", "very", "tiny"), "each in quotation marks", "suggest doc 'text of the passage'"),
        (("suggest", "doc", "--lines", "3"), "Missing argument", ""),
        (("accept", "doc", "7"), "tide-pools.md has no annotation '7'", "To list them: a2a-canvas comments doc"),
        (("accept", "doc", "x"), "tide-pools.md has no annotation 'x'", "suggestions doc"),
        (("accept", "doc"), "Give the number of an annotation, such as 3", "To list them"),
        (("accept", "doc", "1"), "#1 is a comment", "Instead: a2a-canvas resolve doc 1"),
        (("resolve", "doc", "2"), "#2 is a suggestion", "Instead: a2a-canvas accept doc 2"),
        (("accept", "--all", "2"), "Give numbers or --all, not both", ""),
        (("accept", "2", "--by", "bob"), "--by selects among all: add --all", ""),
        (("reply", "1"), "Give the number and then the reply", "reply doc 3 'Because…'"),
    ],
)
async def test_what_cannot_be_done_says_what_to_do(doc: Doc, words: tuple[str, ...], reason: str, advice: str) -> None:
    await call(doc, "comment", "doc", "small", "Why?")
    await call(doc, "suggest", "doc", "deep", "shallow")
    got = await call(doc, *words)
    assert (got.code, got.out) == (2, "")
    assert reason in got.err
    assert advice in got.err


async def test_what_was_decided_before_is_refused(doc: Doc) -> None:
    await call(doc, "suggest", "doc", "deep", "shallow")
    assert (await call(doc, "accept", "1")).code == 0
    again = await call(doc, "accept", "1")
    assert again.code == 1
    assert "is accepted already. Nothing was changed." in again.err


async def test_json_is_what_the_server_says(doc: Doc) -> None:
    added = await call(doc, "comment", "doc", "small", "Why?", "--json")
    states = [
        json.loads(line).get("statusUpdate", {}).get("status", {}).get("state") for line in added.out.splitlines()
    ]
    assert states[-1] == "TASK_STATE_COMPLETED"
    for command in ("comments", "suggestions"):
        listed = json.loads((await call(doc, command, "--json")).out)
        assert (listed["type"], listed["total"]) == ("AnnotationCollection", 1)
    accepted = await call(doc, "resolve", "1", "--json")
    assert accepted.code == 0
    assert accepted.out.startswith("{")


@given(st.integers(0, 10**9 - 1))
def test_a_number_is_named_with_or_without_its_sign(number: int) -> None:
    assert annotation_number(str(number)) == annotation_number(f"#{number}") == number


@pytest.mark.parametrize("word", ["", "#", "-1", "3a", "٣", "1234567890", "##3"])
def test_another_word_is_no_number(word: str) -> None:
    assert annotation_number(word) is None


def test_a_diff_has_the_lines_that_differ_alone() -> None:
    assert diff_lines("a\nb\nc", "a\nB\nc") == "-b\n+B\n"
    assert diff_lines("same", "same") == ""


async def test_a_text_with_marks_is_put_and_opened(doc: Doc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marked = TEXT.replace("small", "{~~small~>tiny~~}{>>Why?<<}")
    assert (await typed("put", "doc", "-", "--critic", *at(doc), stdin=marked)).code == 0
    assert (await call(doc, "show", "doc")).out == TEXT
    assert "#1, line 3" in (await call(doc, "suggestions", "doc")).out
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "text = path.read_text().replace('deep', '{==deep==}{>>How?<<}')\n"
        "path.write_text(text.replace('<<}', '<<}{>>Ok.<<}', 1))\n"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    opened = await run(files.open_artifact, doc.served.url, artifact="doc", context=doc.context, critic=True)
    assert opened.code == 0, opened.err
    assert opened.out.endswith("Added suggestion 1, comment 2.\n")
    assert (await call(doc, "show", "doc")).out == TEXT
    assert "↳ user: Ok." in (await call(doc, "suggestions", "doc")).out
    assert "How?" in (await call(doc, "comments", "doc")).out


async def test_marks_that_cannot_be_read_or_written_are_refused_with_their_line(doc: Doc) -> None:
    refused = await typed("put", "doc", "-", "--critic", *at(doc), stdin="one\n{++two")
    assert refused.code == 1
    assert "line 2 has '{++' without a '++}' after it" in refused.err
    followed = await typed("put", "doc", "x", "--critic", "--follow", *at(doc))
    assert (followed.code, "--critic saves a text once: omit --follow" in followed.err) == (2, True)
    assert (await typed("put", "doc", "-", *at(doc), stdin="{++i;}\n")).code == 0
    own = await run(files.open_artifact, doc.served.url, artifact="doc", context=doc.context, critic=True)
    assert own.code == 1
    assert "line 1 has '{++' in its own text" in own.err


def at(doc: Doc) -> tuple[str, ...]:
    return ("--context", doc.context, "--url", doc.served.url)


# ------------------------------------------------------------------------- the agent in a review

ANSWERS = r"""
rules:
  - match: {text: 'Is that right\?$'}
    rounds: [{text: "It is.", chunk: 3}]
  - match: {text: 'Make it shorter$'}
    rounds:
      - tools: [{name: suggest, input: {artifact_id: doc, old_text: small, new_text: tiny}}]
      - {text: "I suggest tiny."}
  - match: {text: 'Send it$'}
    rounds:
      - tools: [{name: send_mail, input: {to: ann}}]
  - match: {text: 'break$'}
    rounds: [{error: {status: 400, after: 0}, text: "x"}]
"""
TOOLS = """
from a2a_canvas import tool

@tool(approval="ask")
def send_mail(to: str) -> str:
    "Send a mail."
    return to
"""


@pytest.fixture
async def answered(tmp_path: Path) -> AsyncIterator[Doc]:
    async with serving(grpc=False, database="memory", **agent_options(tmp_path, ANSWERS, TOOLS, {})) as served:
        served.gate.open()
        doc = Doc(served, "notes")
        assert (await typed("put", "doc", "-", *at(doc), stdin=TEXT)).code == 0
        yield doc


async def test_a_comment_and_a_reply_ask_the_agent_whose_answer_is_printed_and_in_the_thread(answered: Doc) -> None:
    asked = await call(answered, "comment", "doc", "small", "Is", "that", "right?", "--ask")
    assert (asked.code, asked.out.splitlines()[0]) == (0, "It is.")
    assert (await call(answered, "reply", "1", "Make it shorter", "--ask")).out.startswith("I suggest tiny.\n")
    _, *rows = (await call(answered, "comments")).out.splitlines()
    assert [row.split("  ")[-1] for row in rows] == ["Is that right?", "↳ It is.", "↳ Make it shorter"]
    assert "+A 😀 pool is tiny." in (await call(answered, "suggestions")).out
    assert (await call(answered, "reply", "1", "Is that right?")).out == "Replied to comment 1.\n"


async def test_a_turn_that_fails_is_an_error_and_one_that_waits_says_how_to_answer(answered: Doc) -> None:
    failed = await call(answered, "comment", "doc", "small", "break", "--ask")
    assert (failed.code, failed.out) == (1, "")
    assert "break" in (await call(answered, "comments")).out, "the comment stays"
    waits = await call(answered, "comment", "doc", "deep", "Send it", "--ask")
    assert waits.code == 3
    assert "send_mail" in waits.out
    assert "Approve with: a2a-canvas send --task" in waits.out


async def test_its_owner_has_agents_suggest_and_write_again(answered: Doc) -> None:
    assert (await call(answered, "agents")).out == "Agents change artifacts directly.\n"
    on = await call(answered, "agents", "suggest")
    assert on.out == "Agents suggest changes to artifacts, and people accept or reject them.\n"
    assert json.loads((await call(answered, "agents", "--json")).out)["agentsSuggest"] is True
    assert (await call(answered, "agents")).out == on.out
    off = json.loads((await call(answered, "agents", "write", "--json")).out)
    assert (off["contextId"], off["agentsSuggest"]) == (answered.context, False)
    refused = await call(answered, "agents", "rewrite")
    assert (refused.code, "is not one of 'suggest', 'write'" in refused.err) == (2, True)


async def test_only_the_owner_can_have_agents_suggest() -> None:
    ann, bob = new_key("ann"), new_key("bob")
    unique = "5f1c0f8e-2f0b-4f55-9d4e-0f6a1c3b2d71"
    async with serving(grpc=False, database="memory", api_keys=f"ann={ann},bob={bob}") as served:
        served.gate.open()
        where = ("--context", unique, "--url", served.url, "--token")
        assert (await typed("put", "doc", "-", *where, ann, stdin=TEXT)).code == 0
        of_ann = ("--url", served.url, "--token", ann)
        assert (await typed("share", unique, "--with", "bob", "--level", "edit", *of_ann)).code == 0
        refused = await typed("agents", "suggest", *where, bob)
        assert refused.code == 1
        assert "owner" in refused.err
        assert (await typed("agents", *where, bob)).out == "Agents change artifacts directly.\n"
