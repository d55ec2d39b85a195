"""What `change` makes of texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.models.script.text_transforms import TRANSFORMS, Passage, facts_of, transform
from tests.property_examples import examples

BLOG = """# Tea

Tea is hot and good. It has been so for ages.

## Leaves

- green
- black
- white

## Water

Boil it well enough. Not twice.
"""


def made(change: str, text: str, language: str = "markdown", *, whole: bool = True, table=None, **groups) -> str | None:
    return transform(change, Passage(text, language, whole, groups, table or {}))


def test_shorter_keeps_the_headings_first_sentences_and_half_of_each_list() -> None:
    shorter = "# Tea\n\nTea is hot and good.\n\n## Leaves\n\n- green\n- black\n\n## Water\n\nBoil it well enough."
    assert made("shorter", BLOG) == shorter


@pytest.mark.parametrize(
    ("text", "language", "new"),
    [
        ("One. Two. Three is where it begins. Four.", "", "One. Two. Three is where it begins."),
        ("# Rain\n\nfirst line\nsecond line\nthird line", "markdown", "# Rain\n\nfirst line\nsecond line"),
        ("one two three four", "", "one two"),
        ("One sentence of six words.", "", "One sentence of."),
        ("Stop.", "", None),
        ("word", "", None),
        ("[It has two. Sentences.] Then one. More.", "", "[It has two. Sentences.] Then one."),
        ("An open [bracket is no. Bracket. More.", "", "An open [bracket is no."),
        ("| a |\n|---|\n| 1 |\n| 2 |\n| 3 |\n| 4 |", "markdown", "| a |\n|---|\n| 1 |\n| 2 |"),
        ("你好。再见。", "", None),
    ],
)
def test_shorter(text: str, language: str, new: str | None) -> None:
    assert made("shorter", text, language) == new


def test_a_text_of_with_is_added_once_and_knows_the_document() -> None:
    table = {"Coffee": "never", "Tea": "## End\n\n{title}: {first} ({sections})", "": "More of {topic}."}
    added = made("add", BLOG.rstrip(), table=table, topic="it")
    assert added == BLOG + "\n## End\n\nTea: Tea is hot and good. (Leaves, Water)"
    assert made("add", "## End\n\nTea: Tea (all of the above)", table={"": "x"}) == (
        "## End\n\nTea: Tea (all of the above)\n\nx"
    )
    assert made("add", "Tea. x", table={"": "x"}) is None


def test_to_a_program_only_a_program_is_added() -> None:
    assert made("add", "x = 1", "python", table={"x": "## End\n\nIt ends.", "": "y = 2"}) == "x = 1\n\n\ny = 2"
    assert made("add", "    x = 1", "python", whole=False, table={"": "y = 2"}) == "    x = 1\n    y = 2"
    assert made("add", "{}", "json", table={"": "y = 2"}) is None


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("# L\n\n- [x] a\n- [x] b\n\nend", "# L\n\n- [x] a\n- [x] b\n- [ ] cocoa\n- [ ] dates\n\nend"),
        ("1. a\n2. b", "1. a\n2. b\n3. cocoa\n4. dates"),
        ("- cocoa", "- cocoa\n- dates\n- eggs"),
        ("no list", None),
    ],
)
def test_items_have_the_form_of_the_last_list(text: str, new: str | None) -> None:
    assert made("items", text, table={"": "cocoa\ndates\neggs"}, count="two") == new


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("It rains.", "It rains. One."),
        ("It rains. One.", "It rains. One. Two."),
        ("- rain", "- rain, and wind"),
        ("It rains. One. Two.", None),
    ],
)
def test_extend_adds_the_next_line_that_is_not_there(text: str, new: str | None) -> None:
    table = {r"[.]$": "One.\nTwo.", "(?<![.])$": ", and wind"}
    assert made("extend", text, table=table) == new


def test_words_are_replaced_in_upper_and_lower_case() -> None:
    assert made("replace", "Tea or tea", old="tea", new="milk") == "Milk or milk"
    assert made("replace", "1.5 and 115", old="1.5", new=r"\1") == r"\1 and 115"
    assert made("rewrite", "I'm here. Don't!", table={r"I'm": "I am", r"(\w)on't": r"\1o not"}) == "I am here. Do not!"


def test_a_pattern_of_with_has_groups_of_its_own_beside_those_of_the_message() -> None:
    table = {r"(?P<end>[.] )(?P<letter>[a-z])": "{end}{letter:capital}", "NAME": "{name}"}
    assert made("rewrite", "One. two. NAME", table=table, name="Ann") == "One. Two. Ann"


def test_prose_is_rewritten_by_rewrite_and_a_program_by_code() -> None:
    assert made("rewrite", "a", "python", table={"a": "b"}) is None
    assert made("code", "a", "python", table={"a": "b"}) == "b"
    assert made("shorter", "a", "python", table={"a": "b"}) == "b"
    assert made("code", "a", "markdown", table={"a": "b"}) is None


@pytest.mark.parametrize(
    ("new", "text"), [("{text:upper}", "ANN'S TEA"), ("{text:lower}", "ann's tea"), ("{text:capital}", "Ann's Tea")]
)
def test_what_is_filled_in_may_have_another_case(new: str, text: str) -> None:
    assert made("rewrite", "ann's Tea", table={"(?P<text>.+)": new}) == text


@pytest.mark.parametrize(
    ("text", "new", "expected"),
    [
        ("# Tea\n\nHot.", "It is {title}.", "# Tea\n\nIt is Tea.\n\nHot."),
        ("Hot.\nOr not.", "It is tea.", "It is tea.\n\nHot.\nOr not."),
        ("Hot!\nOr not.", "# {title}", "# Hot\n\nHot!\nOr not."),
        ("# Tea", "# Coffee", None),
    ],
)
def test_a_beginning_is_below_the_title_and_a_title_above_everything(text: str, new: str, expected: str | None) -> None:
    assert made("begin", text, table={"": new}) == expected


@pytest.mark.parametrize(
    ("change", "text", "new"),
    [
        ("sort", "- b\n- a\n\nb\na", "- a\n- b\n\nb\na"),
        ("put", "anything", None),
        ("delete", "anything", None),
    ],
)
def test_of_a_whole_document(change: str, text: str, new: str | None) -> None:
    assert made(change, text, new="x") == new


@pytest.mark.parametrize(("change", "new"), [("sort", "a\nb"), ("put", "x"), ("delete", "")])
def test_of_a_passage(change: str, new: str) -> None:
    assert made(change, "b\na", whole=False, new="x") == new


@pytest.mark.parametrize("change", ["rewrite", "extend", "title", "number"])
def test_what_would_break_a_program_is_not_done(change: str) -> None:
    assert made(change, "def f(): pass", "python", table={"": "More."}, new="x") is None


def test_the_title_is_the_first_heading() -> None:
    assert made("title", BLOG, new="coffee") == BLOG.replace("# Tea", "# Coffee")
    assert made("title", "Text.", new="Coffee") == "# Coffee\n\nText."
    assert made("title", "## Milk", new="coffee", whole=False) == "## Coffee"


def test_headings_are_numbered_but_for_a_title_and_what_is_in_fences() -> None:
    text = "# T\n\n## A\n\n```\n## no\n```\n\n### B\n\n## 7. C"
    numbered = "# T\n\n## 1. A\n\n```\n## no\n```\n\n### 1.1. B\n\n## 2. C"
    assert made("number", text) == numbered
    assert made("number", numbered) is None


@settings(max_examples=examples(200))
@given(
    st.sampled_from(sorted(TRANSFORMS)),
    st.lists(st.sampled_from(["# A", "## B", "- c", "1. d", "| e |", "```", "---", "One. Two.", "", "{", " x"])),
    st.sampled_from(["", "markdown", "json", "python"]),
    st.booleans(),
)
def test_every_text_can_be_transformed_or_is_left_alone(change, lines, language, whole) -> None:
    text = "\n".join(lines)
    new = made(change, text, language, whole=whole, table={"": "More."}, old="c", new="d", count="2")
    assert new is None or new != text
    assert facts_of(text).keys() == {"title", "first", "sections", "words"}
