"""A hundred requests as a newcomer would put them, over the whole agent with the rehearsal model.

They were written before there was a rule for them. What each gets is one of three:

- DONE: the check beside it holds. A template counts if it has the form and the subject that were asked for.
- SAID: the reply says what it cannot do; what it has written in its place, if anything, is called what it is.
- WRONG: something else was written or changed, and the reply does not say so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from xml.etree import ElementTree

import pytest

from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from tests.server.app_server import Served
from tests.server.rehearsal_requests import Check, Outcome, has, keeps, lines, outcome, words

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"model": Rehearsal(delay=0, chunk=2_000), "database": "memory"}


Verdict = Literal["DONE", "SAID", "WRONG"]
BLOG = "write a blog post about why SQLite is great"
HAIKU = "write a haiku about rain"
LIST = "write a shopping list for pancakes"
MAIL = "write an email to my boss asking for a raise"
TIDES = "write an outline about tide pools"
STORY = "write a short story about a lighthouse keeper"
RECIPE = "write a recipe for pancakes"

ADMISSION = re.compile(
    r"\b(I cannot|I have (no|only|one|finished|a finished|a poem)|I know (no|nothing|how)|I (don't|do not) know|"
    r"only have this|there is no|no rule|no difference|nothing (is|was) (changed|written)|found nothing)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Says:
    """Nothing is changed, and the reply has what was asked for."""

    pattern: str

    def __call__(self, got: Outcome) -> object:
        return got.unchanged and re.search(self.pattern, got.said, re.IGNORECASE)


def begins(text: str) -> Check:
    return lambda got: got.new.startswith(text)


def headings(text: str) -> list[str]:
    return re.findall(r"(?m)^## (.+)$", text)


def items(text: str) -> list[str]:
    return re.findall(r"(?m)^(?:[-*]|\d+\.) (?:\[.\] )?(.+)$", text)


def before_heading(number: int, pattern: str) -> Check:
    """All that was there stays, and the pattern occurs before the heading of this number."""
    return lambda got: (
        set(got.old.splitlines()) <= set(got.new.splitlines())
        and re.search(pattern, "\n## ".join(got.new.split("\n## ")[: number + 1]), re.IGNORECASE)
    )


def so_many_words(least: int, most: int) -> Check:
    return lambda got: least <= words(got.new) <= most


def times_old(least: float, most: float) -> Check:
    return lambda got: least * words(got.old) <= words(got.new) <= most * words(got.old)


def so_many_items(count: int, *patterns: str) -> Check:
    return lambda got: len(items(got.new)) == count and has(*patterns)(got)


def became(change: Callable[[str], str]) -> Check:
    """The document is what `change` makes of what it was."""
    return lambda got: got.new == change(got.old) != got.old


def limerick(subject: str) -> Check:
    return lambda got: len(lines(got.new)) == 5 and re.search(subject, got.new, re.IGNORECASE)


def file(ending: str, *patterns: str) -> Check:
    return lambda got: got.written[0].endswith(ending) and has(*patterns)(got)


def shape(*tags: str) -> Check:
    return lambda got: set(tags) & {each.tag.partition("}")[2] for each in ElementTree.fromstring(got.new).iter()}


def first_heading(text: str, change: Callable[[str], str]) -> str:
    return re.sub(r"\A# (.+)", lambda hit: f"# {change(hit[1])}", text)


Row = tuple[str, list[str], Check, Verdict]

REQUESTS: list[Row] = [
    # Versions.
    ("undo two", [HAIKU, "upper case", "lower case"], begins("# Rain\n"), "DONE"),
    ("undo the last two changes", [HAIKU, "upper case", "lower case"], begins("# Rain\n"), "DONE"),
    ("undo that twice", [HAIKU, "upper case", "rename the title to Wet"], begins("# Rain\n"), "DONE"),
    ("redo both", [HAIKU, "upper case", "lower case", "undo", "undo"], begins("# rain\n"), "DONE"),
    ("undo everything", [HAIKU, "upper case", "lower case", "rename the title to Wet"], begins("# Rain\n"), "DONE"),
    ("go back to the first version", [HAIKU, "upper case", "lower case"], begins("# Rain\n"), "DONE"),
    ("go back two versions", [HAIKU, "upper case", "lower case"], begins("# Rain\n"), "DONE"),
    ("I liked the original better", [HAIKU, "upper case", "lower case"], begins("# Rain\n"), "DONE"),
    ("undo my last change please", [HAIKU, "upper case"], begins("# Rain\n"), "DONE"),
    ("which version is this?", [HAIKU, "upper case"], Says(r"version 2"), "DONE"),
    ("restore version 7", [HAIKU, "upper case"], Says(r"no version 7|versions? 1"), "DONE"),
    ("what was it like before?", [HAIKU, "upper case"], Says("gutter keeps"), "DONE"),
    # Places.
    ("add a note at the top: draft, do not share", [BLOG], before_heading(0, "draft, do not share"), "DONE"),
    ('put "Reviewed in May" at the very top', [BLOG], lambda got: "Reviewed in May" in got.new[:120], "DONE"),
    ("add a section on costs at the top", [TIDES], lambda got: headings(got.new)[0].lower() == "costs", "DONE"),
    (
        "add a section on parking before the last section",
        [TIDES],
        lambda got: headings(got.new)[-2].lower() == "parking" and headings(got.new)[-1] == headings(got.old)[-1],
        "DONE",
    ),
    (
        "add a section on gloves after the first section",
        [TIDES],
        lambda got: headings(got.new)[1].lower() == "gloves" and len(headings(got.new)) == len(headings(got.old)) + 1,
        "DONE",
    ),
    ("insert a summary at the beginning", [BLOG], before_heading(1, "summary"), "DONE"),
    ("add eggs at the top of the list", ["write a checklist"], lambda got: items(got.new)[0] == "Eggs", "DONE"),
    ("put butter first on the list", [LIST], lambda got: items(got.new)[0] == "Butter", "DONE"),
    ("add a dash of salt after the milk", [LIST], has(r"milk\n- \[ \] a dash of salt\n"), "DONE"),
    (
        "remove the flour from the list",
        [LIST],
        lambda got: len(items(got.new)) == len(items(got.old)) - 1 and "flour" not in got.new,
        "DONE",
    ),
    ("move the last section to the top", [TIDES], lambda got: headings(got.new)[0] == headings(got.old)[-1], "SAID"),
    (
        "swap the first and the second section",
        [TIDES],
        lambda got: headings(got.new)[:2] == headings(got.old)[1::-1],
        "SAID",
    ),
    ('write "The End" at the bottom', [STORY], lambda got: keeps(got) and got.new.endswith("The End\n"), "DONE"),
    ("delete the first paragraph", [BLOG], lambda got: words(got.new) < words(got.old) - 20, "DONE"),
    ("delete the last two sections", [TIDES], lambda got: headings(got.new) == headings(got.old)[:-2], "SAID"),
    ("keep only the first two sections", [TIDES], lambda got: headings(got.new) == headings(got.old)[:2], "SAID"),
    # Lengths and numbers.
    ("plan a meeting of an hour", [], has("60 min|1 h\\b"), "DONE"),
    ("write an agenda for a 30 minute meeting", [], has("30 min"), "DONE"),
    ("write a blog post about SQLite in 300 words", [], so_many_words(260, 340), "DONE"),
    ("write 1000 words about SQLite", [], so_many_words(900, 1100), "SAID"),
    ("write a 100 word story about a lighthouse", [], so_many_words(80, 120), "SAID"),
    ("plan a trip to Japan for 3 days", [], lambda got: len(re.findall("(?m)^## Day", got.new)) == 3, "DONE"),
    ("plan a weekend in Rome", [], lambda got: len(re.findall("(?mi)^## .*day", got.new)) == 2, "SAID"),
    ("make it half as long", [BLOG], times_old(0.35, 0.65), "SAID"),
    ("cut it to 100 words", [BLOG], so_many_words(50, 100), "SAID"),
    ("make it twice as long", [BLOG], times_old(1.8, 2.2), "SAID"),
    ("make it one paragraph", [BLOG], lambda got: len(re.findall(r"\n\n", got.new.strip())) <= 1, "SAID"),
    ("ten ideas for a birthday party", [], so_many_items(10, "birthday party"), "DONE"),
    ("write five questions for an interview", [], so_many_items(5, "interview"), "DONE"),
    ("give me 3 reasons to learn SQL", [], so_many_items(3, "SQL"), "DONE"),
    ("write a packing list with 12 items", [], so_many_items(12, "pack"), "DONE"),
    ("write two haiku", [], lambda got: len(got.written) == 2 or len(lines(got.new)) == 6, "DONE"),
    # Subjects.
    ("write a limerick about a cat", [], limerick(r"\bcat\b"), "DONE"),
    ("a limerick about my boss, please", [], limerick("boss"), "DONE"),
    ("write a sonnet about the sea", [], lambda got: len(lines(got.new)) == 14 and "sea" in got.new, "SAID"),
    ("write a short story about a robot", [], has("robot"), "DONE"),
    ("tell me a joke about programmers", [], has("programmer"), "SAID"),
    ("tell me a joke about cheese", [], has("cheese"), "SAID"),
    ("write a poem about my grandmother", [], has("grandmother"), "DONE"),
    ("write a haiku about the sea", [], lambda got: len(lines(got.new)) == 3 and "tide" in got.new, "DONE"),
    ("write a recipe for lasagne", [], has("lasagne", "^## Ingredients|You need", r"(?m)^1\. "), "SAID"),
    ("write an outline about volcanoes", [], has("volcanoes", r"(?m)^## "), "DONE"),
    ("a checklist for moving house", [], has("moving house", r"- \[ \]"), "DONE"),
    ("write a cover letter for a job as a nurse", [], has("nurse", "Dear"), "DONE"),
    ("write an invitation to a garden party", [], has("garden party", "(?i)invit|come"), "DONE"),
    ("write an apology to my neighbour for the noise", [], has("sorry|apolog", "noise|neighbour"), "DONE"),
    ("write a product description for a teapot", [], has("teapot"), "DONE"),
    ("make slides about climate change", [], has("climate change", "\n---\n"), "DONE"),
    ("write a speech for my sister's wedding", [], has("wedding"), "DONE"),
    ("write a press release about our new office", [], has("new office"), "DONE"),
    ("a todo list for Monday", [], has("Monday", r"- \[ \]"), "DONE"),
    ("write an FAQ for a bike rental shop", [], has("bike rental", r"\?"), "DONE"),
    ("write a song about summer", [], has("summer"), "DONE"),
    # Formats.
    ("write a latex document about gravity", [], file(".tex", "gravity"), "SAID"),
    ("make it a pdf", [BLOG], lambda got: got.written[0].endswith(".pdf"), "SAID"),
    ("write a word document about bees", [], file(".docx", "bees"), "SAID"),
    ("convert it to html", [TIDES], file(".html", "<h1>Tide pools</h1>"), "SAID"),
    ("write a yaml config for a web server", [], file(".yaml", "hosts|server"), "DONE"),
    ("a javascript function that reverses a string", [], file(".js", "function"), "DONE"),
    ("write a python class for a bank account", [], file(".py", "class .*Account"), "SAID"),
    ("draw a red triangle as svg", [], shape("polygon", "path"), "DONE"),
    ("draw a cat", [], has("cat"), "DONE"),
    ("make a csv of the largest cities", [], file(".csv", "Tokyo|city"), "SAID"),
    ("an excel sheet for my expenses", [], file(".xlsx"), "SAID"),
    ("write an xml file with two books", [], lambda got: len(ElementTree.fromstring(got.new)) == 2, "DONE"),
    ("create a table of the days of the week", [], has("Monday", "Sunday"), "DONE"),
    ("a mermaid diagram of the water cycle", [], has("mermaid", "rain|water|cloud"), "DONE"),
    ("write a regex for phone numbers", [], lambda got: re.search(got.new.split("\n")[-2], "+49 30 123456"), "DONE"),
    ("a gitignore for node", [], has("node_modules"), "DONE"),
    ("write a dockerfile for a node app", [], has("FROM node"), "DONE"),
    ("write a SQL query that lists customers without orders", [], file(".sql", "customers", "orders"), "SAID"),
    # Changes.
    ("make the title uppercase", [BLOG], became(lambda text: first_heading(text, str.upper)), "DONE"),
    ("make the word SQLite bold", [BLOG], became(lambda text: re.sub(r"\bSQLite\b", "**SQLite**", text)), "DONE"),
    (
        "replace rain with snow in the title",
        [HAIKU],
        became(lambda text: first_heading(text, lambda title: title.replace("Rain", "Snow"))),
        "DONE",
    ),
    ("remove the title", [HAIKU], became(lambda text: text.removeprefix("# Rain\n\n")), "DONE"),
    ("check everything off", [LIST], became(lambda text: text.replace("[ ]", "[x]")), "DONE"),
    ("mark the second item as done", [LIST], lambda got: got.new.count("[x]") == 1, "DONE"),
    (
        "sort the list in reverse order",
        [LIST],
        lambda got: items(got.new) == sorted(items(got.old), key=str.casefold, reverse=True),
        "DONE",
    ),
    ("make it shorter and more formal", [MAIL], lambda got: times_old(0, 0.9)(got) and "Hi " not in got.new, "SAID"),
    ("write it in French", [HAIKU], has("la pluie"), "SAID"),
    ("make it rhyme", [HAIKU], has("rhyme"), "SAID"),
    ("make it funnier", [BLOG], has("joke"), "SAID"),
    ("how many words does it have?", [HAIKU], Says(r"\b1[2-9] words"), "DONE"),
    ("rename the file to notes.md", [HAIKU], lambda got: got.written == ["notes.md"], "SAID"),
    ("turn every heading into a question", [TIDES], lambda got: all("?" in h for h in headings(got.new)), "DONE"),
    ("double the quantities", [LIST], has("500 g flour"), "SAID"),
    ("delete the document", [HAIKU], lambda got: not got.texts, "SAID"),
    (
        "make all headings uppercase",
        [TIDES],
        became(lambda text: re.sub(r"(?m)^(#+ )(.+)$", lambda hit: hit[1] + hit[2].upper(), text)),
        "DONE",
    ),
]


def verdict(check: Check, got: Outcome) -> Verdict:
    try:
        if check(got) and (got.written or isinstance(check, Says)):
            return "DONE"
    except (LookupError, SyntaxError, re.error):
        pass
    return "SAID" if ADMISSION.search(got.said) else "WRONG"


@pytest.mark.parametrize(
    ("request_", "earlier", "check", "expected"), REQUESTS, ids=[each[0].replace(" ", "-") for each in REQUESTS]
)
async def test_a_request_is_done_or_what_is_not_is_said(
    served: Served, request_: str, earlier: list[str], check: Check, expected: Verdict
) -> None:
    got = await outcome(served, request_, earlier)
    assert verdict(check, got) == expected, got


REFUSED = Says(r"nothing is changed|found nothing")
LIMITED = Says(r"without conditions, so nothing is changed")


def added(heading: str, *said: str) -> Check:
    """A section of this heading is the last, and the reply says so."""
    return lambda got: keeps(got) and headings(got.new)[-1] == heading and all(each in got.said for each in said)


# What was wrong beside the hundred, and requests invented after it: places, limits and wishes that no rule follows.
BESIDE: list[Row] = [
    # Versions: a count beyond those there are undoes none.
    ("undo three", [HAIKU, "upper case"], Says("version 2.* not 3 changes"), "DONE"),
    ("undo the last three changes", [HAIKU, "upper case"], Says("version 2.* not 3 changes"), "DONE"),
    ("go back three versions", [HAIKU, "upper case", "lower case"], Says("version 3.* not 3 changes"), "DONE"),
    ("undo both", [HAIKU], Says("version 1.* not 2 changes"), "DONE"),
    (
        "redo both",
        [HAIKU, "upper case", "undo"],
        lambda got: got.new.startswith("# RAIN\n") and "Only 1 of 2" in got.said,
        "DONE",
    ),
    ("undo everything except the last change", [HAIKU, "upper case", "lower case"], LIMITED, "DONE"),
    ("undo the upper case", [HAIKU, "upper case", "rename the title to Wet"], LIMITED, "DONE"),
    ("don't undo that", [HAIKU, "upper case"], LIMITED, "DONE"),
    # Places.
    ("add a section on parking at the end", [TIDES], added("Parking", "section on parking now"), "DONE"),
    ("add a section called Costs at the very end", [TIDES], added("Costs", "section on Costs now"), "DONE"),
    ("add milk to the bottom of the list", [LIST], lambda got: items(got.new)[-1] == "Milk", "DONE"),
    ("add a table of contents at the end", [TIDES], REFUSED, "DONE"),
    ("add two sections on wine and cheese", [TIDES], REFUSED, "DONE"),
    # What limits a change.
    ("make everything except the title upper case", [TIDES], LIMITED, "DONE"),
    ("make it upper case but not the headings", [TIDES], LIMITED, "DONE"),
    ("make the last word upper case", [HAIKU], LIMITED, "DONE"),
    ("delete the last sentence of the first paragraph", [BLOG], LIMITED, "DONE"),
    ("number the headings with roman numerals", [TIDES], LIMITED, "DONE"),
    ("sort the sections alphabetically", [TIDES], LIMITED, "DONE"),
    ("sort the list by price", [LIST], LIMITED, "DONE"),
    ("make it 20% shorter", [BLOG], LIMITED, "DONE"),
    ("make it shorter and add a conclusion", [BLOG], LIMITED, "DONE"),
    ("add an introduction and a conclusion", [BLOG], LIMITED, "DONE"),
    ("halve the recipe", [RECIPE], REFUSED, "DONE"),
    ("add 15 more items to the list", [LIST], REFUSED, "DONE"),
    # What only looks like a limit.
    (
        "replace SQLite with Postgres in the title",
        [BLOG],
        Says("The title of .*nothing to change|found nothing"),
        "DONE",
    ),
    ("replace SQLite with Postgres in the headings", [BLOG], LIMITED, "DONE"),
    (
        "replace rain with snow in the title",
        [HAIKU, 'add "More rain."'],
        lambda got: got.new.startswith("# Snow") and got.new.endswith("More rain.\n"),
        "DONE",
    ),
    ("make every heading upper case", [TIDES], has("(?-i:## WHO LIVES THERE\n)", "(?-i:Anemones)"), "DONE"),
    ("make it much shorter", [BLOG], times_old(0, 0.7), "DONE"),
    ("rename the title to Only You", [HAIKU], begins("# Only You\n"), "DONE"),
    ('replace "a little" by "all but"', [HAIKU], has("both all but wet"), "DONE"),
    # Wishes that a ready-made text does not follow.
    ("write a two hour workshop agenda", [], has(r"\*\*Length:\*\* 2 h,"), "DONE"),
    ("write an agenda for a 1.5 hour meeting", [], has("1.5 h"), "SAID"),
    ("write a vegan recipe for pancakes", [], has("vegan"), "SAID"),
    ("write a shopping list for pancakes without eggs", [], lambda got: got.new and "eggs" not in got.new, "SAID"),
    ("write three poems about the sea", [], lambda got: len(got.written) == 3, "SAID"),
    ("write a blog post about SQLite in Spanish", [], has("la base de datos"), "SAID"),
    ("write a haiku with eight lines", [], lambda got: len(lines(got.new)) == 8, "SAID"),
]


@pytest.mark.parametrize(
    ("request_", "earlier", "check", "expected"), BESIDE, ids=[each[0].replace(" ", "-") for each in BESIDE]
)
async def test_neither_is_one_beside_them_silently_wrong(
    served: Served, request_: str, earlier: list[str], check: Check, expected: Verdict
) -> None:
    got = await outcome(served, request_, earlier)
    assert verdict(check, got) == expected, got


async def test_of_a_hundred_requests_most_are_done(record_property: Callable[[str, object], None]) -> None:
    found = Counter(each[3] for each in REQUESTS)
    assert (found["DONE"] >= 70, found["WRONG"]) == (True, 0)
    record_property("summary", f"Requests: {', '.join(f'{number} {name}' for name, number in sorted(found.items()))}.")
    assert len({each[0] for each in REQUESTS}) == 100
