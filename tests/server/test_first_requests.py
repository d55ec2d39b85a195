"""What newcomers ask for first, in a fitting conversation each, over the whole agent with the rehearsal model.

Beside each request stands the check that decides whether it got what it asks for. The score is printed.
"""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from uuid import uuid4
from xml.etree import ElementTree

import pytest
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from tests.server.app_server import Served, said
from tests.server.canvas_client import Doc
from tests.server.rehearsal_requests import Check, Outcome, has, keeps, lines, one_sentence, outcome, words

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"model": Rehearsal(chunk=2_000, delay=0), "database": "memory"}


BLOG = "write a blog post about why SQLite is great"
HAIKU = "write a haiku about rain"
LIST = "write a shopping list for pancakes"


def runs(program: str) -> bool:
    """Whether a program and its tests pass."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


def finds_duplicates(query: str) -> bool:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE users (id INTEGER, email TEXT)")
    addresses = ["ann@example.com", "Ann@example.com ", "bob@example.com", None]
    database.executemany("INSERT INTO users VALUES (?, ?)", enumerate(addresses))
    return database.execute(query).fetchall() == [("ann@example.com", 2, 0)]


def drawn(text: str) -> list[str]:
    return [element.tag.partition("}")[2] for element in ElementTree.fromstring(text)]


def paragraphs(text: str) -> list[str]:
    return [block for block in text.split("\n\n") if not block.startswith("#")]


def second_is_shorter(got: Outcome) -> bool:
    old, new = paragraphs(got.old), paragraphs(got.new)
    return (
        len(new) == len(old)
        and [a != b for a, b in zip(old, new, strict=True)].index(True) == 1
        and (0 < words(new[1]) < words(old[1]) and old[2:] == new[2:])
    )


FIRST_REQUESTS: list[tuple[str, Check] | tuple[str, Check, list[str]]] = [
    (HAIKU, lambda got: len(lines(got.new)) == 3 and "umbrella" in got.new),
    (
        "write a python function that reverses a string",
        lambda got: "def reverse" in got.new and "def test_" in got.new and runs(got.new),
    ),
    (
        "create a table of the planets with their moons",
        lambda got: got.new.count("\n| ") == 9 and has("moons", "Neptune", "Titan")(got),
    ),
    ("write an email to my boss asking for a raise", has("^Subject:", "salary", "next week")),
    (
        "Write a blog post about why SQLite is great, about 300 words, with a catchy title",
        lambda got: 260 <= words(got.new) <= 340 and has("^# .{20}", "SQLite")(got),
    ),
    ("write two documents: a plan and a checklist", lambda got: sorted(got.written) == ["checklist.md", "plan.md"]),
    ("make me a json config for a web server with two hosts", lambda got: len(json.loads(got.new)["hosts"]) == 2),
    ("give me a README for a command line tool that resizes images", has("^# ", "## Install", "images", "```sh")),
    ("plan a trip to Japan for 7 days", lambda got: got.new.count("## Day ") == 7 and has("Tokyo", "Kyoto")(got)),
    ("write slides about photosynthesis", lambda got: got.new.count("\n---\n") >= 4 and has("chloroplast")(got)),
    (
        "draw a simple logo as svg: a blue circle in a square",
        lambda got: drawn(got.new) == ["rect", "circle"] and "blue" in got.new,
    ),
    (LIST, lambda got: got.new.count("- [ ]") >= 5 and has("flour", "milk", "eggs")(got)),
    ("write a short story about a lighthouse keeper", lambda got: 150 < words(got.new) < 500 and has("light")(got)),
    ("write a SQL query that finds duplicate emails", lambda got: finds_duplicates(got.new)),
    (
        "write a unit test for a function that adds two numbers",
        lambda got: "def add" in got.new and runs(got.new),
    ),
    ("write a project proposal for a community garden", has("garden", "cost", "March")),
    (
        "add a conclusion",
        lambda got: got.new.startswith(got.old.rstrip()) and has("## Conclusion\n\n.{60}")(got),
        [BLOG],
    ),
    (
        "add a section on safety",
        lambda got: got.new.startswith(got.old.rstrip()) and has("## Safety\n\n- ")(got),
        [BLOG],
    ),
    (
        "add two more items to the list",
        lambda got: got.new.count("- [ ]") == got.old.count("- [ ]") + 2,
        [LIST],
    ),
    ("make it shorter", lambda got: 20 < words(got.new) < 0.7 * words(got.old), [BLOG]),
    (
        "make it longer",
        lambda got: got.new.startswith(got.old.rstrip()) and words(got.new) > words(got.old) + 20,
        [BLOG],
    ),
    (
        "make it more formal",
        lambda got: has("\nDear ", "I would like")(got) and not re.search("n't|I'm|Hi ", got.new),
        ["write an email to my boss asking for a raise"],
    ),
    ("make the second paragraph shorter", second_is_shorter, [BLOG]),
    (
        "rename the title to Morning Rain",
        lambda got: got.new == got.old.replace("# Rain\n", "# Morning Rain\n") != got.old,
        [HAIKU],
    ),
    (
        "delete the last section",
        lambda got: got.old.startswith(got.new.rstrip()) and got.new.count("## ") == got.old.count("## ") - 1,
        [BLOG],
    ),
    ("number the headings", has("^# The", r"\n## 1\. ", r"\n## 2\. ", r"\n## 4\. "), [BLOG]),
    ("undo that", lambda got: got.new.startswith("# Rain\n") != got.old.startswith("# Rain\n"), [HAIKU, "upper case"]),
    (
        "redo",
        lambda got: got.new.startswith("# RAIN\n") and got.old.startswith("# Rain\n"),
        [HAIKU, "upper case", "undo that"],
    ),
    (
        "go back to version 1",
        lambda got: got.new.startswith("# Rain\n") and got.old.startswith("# Wet"),
        [HAIKU, "upper case", "rename the title to Wet"],
    ),
    (
        "show me what changed",
        lambda got: got.unchanged and words(got.said) < 60 and "Version 2" in got.said and "Morning Rain" in got.said,
        [HAIKU, "rename the title to Morning Rain"],
    ),
    ("translate to German", one_sentence("cannot translate"), [HAIKU]),
    ("fix the bug in this code: def f(x): return x+", one_sentence("cannot fix"), [HAIKU]),
    ("explain this like I am five", one_sentence("cannot explain"), [HAIKU]),
    ("what is the capital of France?", one_sentence("cannot look anything up")),
    (
        "who are you and what can you do?",
        lambda got: got.unchanged and "I am a script" in got.said and "undo that" in got.said,
    ),
    ("hi", lambda got: got.unchanged and got.said.startswith("Hello") and words(got.said) < 40),
    ("ok", lambda got: got.unchanged and words(got.said) < 30 and "undo" in got.said, [HAIKU]),
    ("Schreibe ein Gedicht über den Herbst", lambda got: len(lines(got.new)) >= 8 and has("Herbst", "Nebel")(got)),
    ("Escribe una carta de agradecimiento", has("^Querida", "Gracias por", "abrazo")),
    ("写一首关于雨的俳句", lambda got: [len(line) for line in lines(got.new)] == [5, 7, 5] and "雨" in got.new),
]


async def why_not(served: Served, request: str, check: Check, earlier: list[str]) -> str:
    """Why a request does not get what it asks for; empty if it does."""
    got = await outcome(served, request, earlier)
    try:
        return "" if check(got) else f"{request}: {got}"
    except (LookupError, SyntaxError, ValueError, sqlite3.Error) as error:
        return f"{request}: {error!r}"


async def test_forty_first_requests_get_what_they_ask_for(
    served: Served, record_property: Callable[[str, object], None]
) -> None:
    failed = [
        reason
        for request, check, *earlier in FIRST_REQUESTS
        if (reason := await why_not(served, request, check, earlier[0] if earlier else []))
    ]
    score = len(FIRST_REQUESTS) - len(failed)
    record_property("summary", f"First requests: {score} of {len(FIRST_REQUESTS)} get what they ask for.")
    assert len(FIRST_REQUESTS) == 40
    assert failed == []


# ----------------------------------------------------------------- what is asked next

PYTHON = "write a python function that reverses a string"
BEES = "write an article about bees"
MAIL = "write an email to my boss asking for a raise"


def bash_accepts(got: Outcome) -> bool:
    checked = subprocess.run(["bash", "-n"], input=got.new.encode(), capture_output=True)
    return got.written[0].endswith(".sh") and got.new.startswith("#!") and checked.returncode == 0


def planets(got: Outcome) -> bool:
    head, *rows = csv.DictReader(got.texts["planets.csv"].splitlines())
    return got.written == ["planets.csv"] and head["planet"] == "Mercury" and len(rows) == 7


def without(*patterns: str) -> Check:
    """One document was changed, and none of these occurs in it."""
    return lambda got: got.old != got.new and not any(re.search(pattern, got.new) for pattern in patterns)


def grown(pattern: str) -> Check:
    """A document says what it did and, once more than before, this."""
    return lambda got: len(re.findall(pattern, got.new)) == len(re.findall(pattern, got.old)) + 1


NEXT_REQUESTS: list[tuple[str, Check] | tuple[str, Check, list[str]]] = [
    ("summarize it", lambda got: got.new.count("[") == got.new.count("]") and words(got.new) < words(got.old), [MAIL]),
    ("write a bash script that renames files", bash_accepts),
    ("write a bash script to back up a folder", bash_accepts),
    ("write a bash script that waters the plants", bash_accepts),
    ("a csv of the planets", planets),
    ("add an introduction", has(r"\A# [^\n]+\n\nIn this order: There is no server, "), [BLOG]),
    ("add an introduction", has(r"\A# Rain\n\n\[.+\]\n\nThe gutter"), [HAIKU]),
    ("add a title", has(r"\A# Subject: Can we talk about my salary\n\nSubject: "), [MAIL]),
    ("add a title", one_sentence("rain.md"), [HAIKU]),
    ("add the title “Wet Shoes”", has(r"\A# Wet Shoes\n\nThe gutter"), [HAIKU]),
    ("add a conclusion", has(r"\n## Conclusion\n\n.{60}"), [BEES]),
    ("add milk", grown(r"\n- \[ \] Milk\n"), ["write a checklist"]),
    ("add honey to the list", grown(r"\n- \[ \] Honey\n"), [LIST]),
    ("add an item: maple syrup", grown(r"\n- \[ \] Maple syrup\n"), [LIST]),
    ("add an item", grown(r"\n- \[ \] "), [LIST]),
    ("delete the last paragraph", without("For everything else"), [BLOG]),
    ("please remove the last paragraph", without("The first pancake"), [LIST]),
    ("make the second heading Why bother", grown("\n## Why bother\n"), [BLOG]),
    ("change the first heading to Hello", grown("^# Hello\n"), [BLOG]),
    # Invented later, from here on.
    ("make the title shorter", one_sentence("rename the title to"), [BLOG]),
    ("make it simpler", without("quite possibly", "; "), [BLOG]),
    ("make it more friendly", has(r"\AHi "), ["write a thank you letter"]),
    ("fix the grammar", one_sentence("sqlite.md"), [BLOG]),
    ("fix the typos", without("and and", "  "), [MAIL, "replace corridor by hall and and  floor"]),
    ("check off the first item", grown(r"- \[x\] 250 g flour"), [LIST]),
    ("make it a numbered list", has(r"\n1\. 250 g flour\n1\. 500 ml"), [LIST]),
    ("turn it into bullet points", has(r"\n- Whisk the eggs"), ["write a recipe"]),
    ("remove all exclamation marks", without("!"), ["write a thank you letter", "replace letter by hug! letter"]),
    ("make the headings bold", has(r"\n## \*\*There is no server\*\*\n"), [BLOG]),
    ("sign it as Anna", has(r"\nAnna\n"), [MAIL]),
    ("add a table of contents", has(r"\A# [^\n]+\n\n\*\*Contents:\*\* There is no server, "), [BLOG]),
    ("add a P.S.", grown(r"\nP\.S\. "), [MAIL]),
    ("continue", keeps, [BLOG]),
    ("revert", lambda got: "Rain\n" in got.new, [HAIKU, "upper case"]),
    ("write another haiku", lambda got: got.written != ["rain.md"] and len(lines(got.new)) == 3, [HAIKU]),
    ("write another one", one_sentence("write a haiku about snow"), [HAIKU]),
    ("make a copy of it", one_sentence(), [HAIKU]),
    ("swap the first two paragraphs", one_sentence(), [BLOG]),
    ("mark eggs as done", one_sentence("no rule"), [LIST]),
    ("stop", one_sentence(), [HAIKU]),
    ("add docstrings", grown('"""\\[What'), [PYTHON]),
    ("write a javascript function that sorts an array", one_sentence("Python")),
    ("write a dockerfile for a python app", has("^FROM python", "\nCOPY ", "\nCMD ")),
    ("write a gitignore for python", has("__pycache__", r"\.venv")),
    ("write a regex for email addresses", lambda got: re.fullmatch(got.new.split("\n")[-2], "ann@example.com")),
    ("write a resignation letter", has("resignation", r"\[")),
    ("write a birthday card for my mum", has("birthday", r"\[")),
    ("write a recipe for banana bread", has("banana bread", r"\n1\. \[")),
    ("pros and cons of remote work", has("remote work", r"\| *for *\|")),
    ("compare cats and dogs", has(r"\| cats \| dogs \|")),
    ("5 ideas for a birthday party", has("birthday party", r"\n5\. ")),
    ("draw a mermaid diagram of a login flow", has("```mermaid\n", "-->")),
    ("a list of countries in Europe", has("countries in Europe", r"\n- \[")),
]


@pytest.mark.parametrize(
    ("request_", "check", "earlier"),
    [(each[0], each[1], each[2] if len(each) == 3 else []) for each in NEXT_REQUESTS],
    ids=[f"{each[0]} ({number})" for number, each in enumerate(NEXT_REQUESTS)],
)
async def test_a_request_gets_a_result_or_a_template_or_one_sentence(
    served: Served, request_: str, check: Check, earlier: list[str]
) -> None:
    assert await why_not(served, request_, check, earlier) == ""


# ----------------------------------------------------- quick actions on a selection

TEA = "Tea is  hot and and good. it has been so for ages, and we utilize it in order to wake up. It isn't new , though."
AREA = """\
def area(radius, unit="m"):
    result = math.pi * radius ** 2
    if unit == "cm":
        return result * 10000
    return result
"""
QUICK_ACTIONS = [
    (TEA, "make this passage shorter", "Tea is  hot and and good."),
    (TEA, "make this passage longer", f"{TEA} An example helps here: one place, one day, one person."),
    (TEA, "make this passage simpler", TEA.replace("ages, and we utilize it in order", "ages. And we use it")),
    (TEA, "make this passage more formal", TEA.replace("isn't", "is not")),
    (TEA, "make it friendlier", TEA.replace("it has", "it's")),
    (
        TEA,
        "fix the grammar",
        "Tea is hot and good. It has been so for ages, and we utilize it in order to wake up. It isn't new, though.",
    ),
    (TEA, "turn this into a list", "- " + TEA.replace(". ", ".\n- ")),
    (TEA, "translate to German", None),
    (TEA, "explain it", None),
    (TEA, "rewrite this", None),
    (TEA, "improve this", None),
    (TEA, "add comments", None),
    (
        AREA,
        "add comments",
        """\
# `area`: [what it is for].
def area(radius, unit="m"):
    result = math.pi * radius ** 2
    # Only if `unit == "cm"`.
    if unit == "cm":
        return result * 10000
    return result
""",
    ),
    (AREA, "make it async", f"async {AREA}"),
    (AREA, "add a docstring", AREA.replace(":\n", ':\n    """[What `area` is for.]"""\n', 1)),
    (AREA, "add types", None),
    (AREA, "explain it", None),
    (AREA, "fix the grammar", None),
    (AREA, "make this passage simpler", None),
    (AREA, "make this passage more formal", None),
    (AREA, "fix the bug", None),
    (AREA, "add error handling", None),
    (AREA, "write a test", None),
]


@pytest.mark.parametrize(("passage", "instruction", "expected"), QUICK_ACTIONS)
async def test_a_quick_action_edits_the_selection_or_says_in_one_sentence_that_it_cannot(
    served: Served, passage: str, instruction: str, expected: str | None
) -> None:
    name = "area.py" if passage is AREA else "tea.md"
    text = f"import math\n\n\n{passage}\n\nprint(area(2))\n" if passage is AREA else f"# Tea\n\n{passage}\n\nMore.\n"
    doc = Doc(served, str(uuid4()), text)
    await doc.run(doc.operation("put", text=text, name=name))
    task = await doc.run(doc.edit(instruction, passage))
    if expected is not None:
        assert (await doc.read())[1] == text.replace(passage, expected)
    else:
        assert task.status.state == pb.TASK_STATE_COMPLETED
        assert await doc.read() == (1, text)
        assert len(re.findall(r"\.(?:\s|$)", said(task.status))) == 1, said(task.status)
