"""Tag removal: what a reader sees does not depend on how the text was cut, and holds no leaked tag."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.text.visible import (
    ELEMENTS,
    MAX_TAG_LENGTH,
    NAMESPACES,
    PAIRS,
    TOKENS,
    VisibleText,
    visible,
)
from tests.property_examples import examples

TAG_NAMES = [space + name for space in ("", *NAMESPACES) for name in ELEMENTS if name != "function="]
FRAGMENTS = [
    *("<", "</", "th", "ink", ">", "/>", "<th", "ink>", "<think>", "</think>", "<think/>", "<THINK a='b'>"),
    *("<think ", "<tool_call>", "</tool_call>", "<invoke name='x'>", "</invoke>", "<function=f>"),
    *("</function>", "<|im_", "end|>", "<|im_end|>", "[", "THINK]", "[THINK]", "[/THINK]", "]", "◁", "▷"),
    *("[TOOL_CALLS]", "◁think▷", "◁/think▷", "<|python_tag|>", "<|eom_id|>", "<code>", "<b>", "<result>"),
    *("`", "``", "```", "````", "~", "~~~", "\n", "\n\n", "\r\n", " ", "    ", "a", "word ", "é𝄞", "="),
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join)
PROSE = st.text("abc .,-*#_(){}!'\"\n\tüß漢𝄞", max_size=30)


def shown(pieces: list[str]) -> str:
    block = VisibleText()
    return "".join(map(block.feed, pieces)) + block.finish()


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[str]]:
    text = draw(TEXTS)
    places = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=8))})
    return text, [text[start:end] for start, end in pairwise(places)]


# ------------------------------------------------------------------ what goes


@pytest.mark.parametrize("name", TAG_NAMES)
def test_every_listed_element_goes_with_its_content(name: str) -> None:
    assert visible(f"a <{name}>secret</{name}> b") == "a  b"
    assert visible(f'a <{name.upper()} k="v" x>secret</{name.upper()} > b') == "a  b"


@pytest.mark.parametrize("name", TAG_NAMES)
def test_every_listed_element_may_close_itself(name: str) -> None:
    assert visible(f"a<{name}/>b<{name} k='v' />c") == "abc"


@pytest.mark.parametrize(("opening", "shut"), [pair for pair in PAIRS.items() if pair[1]])
def test_every_listed_pair_goes_with_its_content(opening: str, shut: str) -> None:
    assert visible(f"a{opening}secret{shut}b") == "ab"
    assert visible(f"a{shut}b") == "ab"


@pytest.mark.parametrize("opening", [opening for opening, shut in PAIRS.items() if not shut])
def test_what_nothing_closes_hides_the_rest(opening: str) -> None:
    assert visible(f"a {opening}secret\n\nsecret") == "a "


@pytest.mark.parametrize("token", TOKENS)
def test_every_listed_token_goes_alone(token: str) -> None:
    assert visible(f"a{token}b") == "ab"


@pytest.mark.parametrize("token", [*TOKENS, *PAIRS, *filter(None, PAIRS.values())])
def test_a_token_can_be_found_by_its_first_and_last_character(token: str) -> None:
    assert re.fullmatch(r"[<\[◁][^<\[◁`~\n>\]▷]+[>\]▷]", token)
    assert len(token) <= MAX_TAG_LENGTH


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think>Hi", "Hi"),
        ("Hi <think>a <think>b</think> c</think>there", "Hi there"),
        ("Hi <think>a <think/> c</think>there", "Hi there"),
        ("Hi <think>a <tool_call> b</think>there", "Hi there"),
        ("<think>never closed `<b>`\n\n```\n", ""),
        (" \n<think>a</think>\n<tool_call>{never closed", " \n"),
        ("Hi [THINK]never closed `<b>`\n\n```\n", "Hi "),
        ("Hi</think> there", "Hi there"),
        ("<thinking>a</thinking>Hi", "Hi"),
        ("<think>```\n</think>Hi", "Hi"),
        ("<tool_call>\n<function=f>\n<parameter=p>\nx\n</parameter>\n</function>\n</tool_call>", ""),
        ("Hi <function=f>{}</function>there", "Hi there"),
        ("<｜DSML｜tool_calls><｜DSML｜invoke name='f'></｜DSML｜invoke></｜DSML｜tool_calls>Hi", "Hi"),
        ("<|start|>assistant<|channel|>final<|message|>Hi<|return|>", "Hi"),
        ("<|start_header_id|>assistant<|end_header_id|>\n\nHi<|eot_id|>", "Hi"),
        ("Hi[TOOL_CALLS]f[ARGS]{}</s>", "Hi"),
    ],
)
def test_examples_of_what_goes(text: str, expected: str) -> None:
    assert visible(text) == expected
    assert shown(list(text)) == expected


# ------------------------------------------------------------- what was prose


@pytest.mark.parametrize(
    "text",
    [
        "I added a <reasoning> section, and `x`.\n\n```\n<think>\n```\n",
        "if a <think and b> c",
        "The <THINK a='b'> of it, and another <think> and <thinking>.",
        "One <think> two <tool_call> three <invoke name='x'>",
        "Call <function=f> or <function=g>",
        "a<th<think>ink> b",
    ],
)
def test_an_element_in_the_middle_of_prose_that_never_closes_loses_no_text(text: str) -> None:
    assert visible(text) == text
    assert shown(list(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think>Hi <think>b", "Hi <think>b"),
        ("Hi <tool_call>a</tool_call> <reasoning> <think>b</think>", "Hi  <reasoning> <think>b</think>"),
        ("Hi <think> <think>b</think>", "Hi <think> <think>b</think>"),
        ("a<th<think>b", "a<th<think>b"),
    ],
)
def test_it_and_what_follows_are_given_back_as_they_were_written(text: str, expected: str) -> None:
    assert visible(text) == expected
    assert shown(list(text)) == expected
    assert visible(expected) == expected


def test_what_was_prose_is_given_back_at_the_end_of_the_block() -> None:
    block = VisibleText()
    assert [block.feed(piece) for piece in ("A <thi", "nk>", " section", ".")] == ["A ", "", "", ""]
    assert block.finish() == "<think> section."
    assert block.finish() == ""


# ---------------------------------------------------------------- what stays


@pytest.mark.parametrize(
    "text",
    [
        "Use <code>x</code>, <b>bold</b>, <result>1</result> and <function>f</function>.",
        "a < b, a << b, a <= b, <- and <",
        "<thinker>a</thinker> <think-aloud> <rethink> < think> <think=1>",
        "[think] [THINK about it] [a](b) [x] ◁ ▷",
        "The element `<think>` and ``a ` <tool_call>`` stay.",
        "```xml\n<think>\n\n</think>\n```",
        "~~~\n<|im_end|>\n```\n[TOOL_CALLS]\n~~~",
        "   ````\n<think>\n```\n<think>\n````",
        "List<ToolCall> and Vec<String>",
        "<think\n>",
        "<think" + " " * MAX_TAG_LENGTH + ">",
        "<think `a` >",
        "<s>struck</s>",
        "\n\n  leading whitespace, and trailing \n",
    ],
)
def test_examples_of_what_stays(text: str) -> None:
    assert visible(text) == text
    assert shown(list(text)) == text


def test_the_longest_tag_is_a_tag_and_one_more_character_is_none() -> None:
    longest = "<think " + "x" * (MAX_TAG_LENGTH - 8) + ">"
    assert len(longest) == MAX_TAG_LENGTH
    assert visible(f"a{longest}b</think>") == shown(list(f"a{longest}b</think>")) == "a"
    longer = longest.replace(" ", "  ")
    assert visible(f"a{longer}b") == shown(list(f"a{longer}b")) == f"a{longer}b"


def test_code_ends_and_tags_go_again() -> None:
    assert visible("`<think>` <think>a</think>b") == "`<think>` b"
    assert visible("```\n<think>\n```\n<think>a</think>b") == "```\n<think>\n```\nb"


def test_a_backtick_without_its_partner_guards_until_the_paragraph_ends() -> None:
    assert visible("a ` b <think>c</think>\n\n<think>d</think>e") == "a ` b <think>c</think>\n\ne"


def test_markdown_is_judged_on_what_is_shown() -> None:
    assert visible("<think>a</think>```\n<think>\n```") == "```\n<think>\n```"
    assert visible("~~<|im_end|>~\n<think>") == "~~~\n<think>"
    assert visible("`` a ``<|im_end|>` `` <think>b</think>") == "`` a ``` `` "


def test_pieces_that_a_removal_joins_are_a_tag() -> None:
    assert visible("a<th<think>b</think>ink>c</think>d") == "ad"
    assert visible("a<th<|im_end|>e b") == "a<the b"
    assert visible("<th[THINK]b") == "<th"


# ---------------------------------------------------------------- whitespace


def test_a_reply_does_not_begin_with_the_blank_lines_after_a_removed_element() -> None:
    assert visible("<think>a</think>\n\n<tool_call>b</tool_call> \n Hi\n") == "Hi\n"
    assert visible("a</think>\n\nHi") == "a\n\nHi"
    assert visible("</think>\n\nHi") == "Hi"


def test_whitespace_shown_before_the_removal_has_been_shown() -> None:
    assert visible("\n<think>a</think>\n\nHi") == "\nHi"


def test_whitespace_in_the_middle_stays() -> None:
    assert visible("Hi\n\n<think>a</think>\n\nthere") == "Hi\n\n\n\nthere"


# ------------------------------------------------------------------ streaming


def test_what_cannot_become_a_tag_is_shown_at_once() -> None:
    block = VisibleText()
    pieces = ["a <", "b", "[", "x", "<t", "h", "x", "<thin", " ", "```", "<"]
    expected = ["a ", "<b", "", "[x", "", "", "<thx", "", "<thin ", "```", "<"]
    assert [block.feed(piece) for piece in pieces] == expected


def test_what_may_become_a_tag_is_held_back_until_it_is_known() -> None:
    block = VisibleText()
    pieces = ["a <thi", "nk", ">b</th", "ink", ">c", "<"]
    assert [block.feed(piece) for piece in pieces] == ["a ", "", "", "", "c", ""]
    assert block.finish() == "<"
    assert block.finish() == ""


@settings(max_examples=examples(400))
@given(cut_texts())
@example(("a<th<think>ink>", ["a<th<thi", "nk>in", "k>"]))
def test_any_cut_shows_what_the_whole_shows(case: tuple[str, list[str]]) -> None:
    text, pieces = case
    assert shown(pieces) == visible(text)


@given(TEXTS)
def test_character_by_character_shows_what_the_whole_shows(text: str) -> None:
    assert shown(list(text)) == visible(text)


@settings(max_examples=examples(400))
@given(TEXTS)
@example("th<think><|python_tag|><think><|eom_id|>`</think>")
@example("<<think </think>>")
def test_what_is_shown_holds_nothing_more_to_remove(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(TEXTS)
def test_what_is_shown_was_written_in_that_order(text: str) -> None:
    rest = iter(text)
    assert all(character in rest for character in visible(text))


@given(cut_texts())
def test_text_is_held_back_only_from_where_a_tag_may_begin(case: tuple[str, list[str]]) -> None:
    block = VisibleText()
    for piece in case[1]:
        block.feed(piece)
    held = block.finish()
    assert not held or held[0] in "<[◁"


@given(PROSE)
def test_text_in_which_no_tag_can_begin_passes_at_once_and_untouched(text: str) -> None:
    assert VisibleText().feed(text) == text


# ------------------------------------------------------------ against models

NAMES = st.sampled_from(["think", "tool_call", "antml:invoke", "Thinking"])


def naive(text: str) -> str:
    """For text without Markdown or nesting: elements go whole, then closing tags, then tokens."""
    names = "think|tool_call|antml:invoke|Thinking"
    text = re.sub(rf"<({names})>.*?</\1>", "", text, flags=re.DOTALL)
    before, *prose = re.split(rf"(?=<(?:{names})>)", text, maxsplit=1)
    return re.sub(rf"</({names})>|<\|im_end\|>", "", before) + "".join(prose)


SIMPLE = st.one_of(PROSE, NAMES.map("</{}>".format), st.sampled_from(["<|im_end|>", "<b>"]))


@given(st.lists(SIMPLE, max_size=8), NAMES)
def test_simple_texts_are_as_a_regular_expression_would_leave_them(pieces: list[str], name: str) -> None:
    text = "Hi " + "".join(pieces) + f"<{name}>secret<b> [x]" + "".join(pieces)
    assert visible(text) == naive(text)


def hidden(source: str) -> tuple[str, str]:
    return source, ""


def kept(source: str) -> tuple[str, str]:
    return source, source


ODDITIES = ["`", "```\n", "\n\n", "<b>", "[THINK]", "</other>", "a", "<|im_end|>"]
SECRETS = st.lists(st.sampled_from(ODDITIES)).map("".join)
ELEMENT = st.builds("<{0}>{1}</{0}>".format, NAMES, SECRETS).map(hidden)
TOKEN = st.sampled_from(TOKENS).map(hidden)
SPAN = SECRETS.map(lambda text: "`" + re.sub(r"[`\n]", "", text) + " <think>` ").map(kept)
FENCE = SECRETS.map(lambda text: "\n\n~~~~\n" + text + "<think>\n~~~~\n\n").map(kept)
WORDS = st.sampled_from(["word ", "a < b ", "[x](y) ", "<b>bold</b> ", "\n\n"]).map(kept)


@given(st.lists(st.one_of(ELEMENT, TOKEN, SPAN, FENCE, WORDS), max_size=10))
def test_a_document_loses_its_hidden_parts_and_keeps_its_code(parts: list[tuple[str, str]]) -> None:
    source, expected = ("Start " + "".join(side) for side in zip(*parts, strict=True)) if parts else ("", "")
    assert visible(source) == expected
