"""What of a reply to an edit is document text: fences, remarks, the ends, and that it never matters how it is cut."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.edit.edit_reply import EditReply
from a2a_canvas.server.agent.edit.reply_fence import HEAD
from a2a_canvas.server.agent.model import EditPrompt
from a2a_canvas.server.agent.text.markdown_code import FENCE_LINE, inside_fence
from tests.property_examples import examples


def passage(
    selected: str = "old", language: str = "python", strategy: str = "replace", *, after: str = "", lines: bool = False
) -> EditPrompt:
    return EditPrompt("a.py", language, "", selected, after, "change it", strategy, lines)


CODE, LINE, WINDOWS_LINE = passage(), passage("old\n"), passage("old\r\n")
MARKDOWN, INSERT, PLACE = passage(language="markdown"), passage("old\n", "", "insert_after"), passage("")
BEFORE, AFTER = passage(strategy="insert_before", lines=True), passage(strategy="insert_after", lines=True)
AFTER_LINE = passage("old\n", "markdown", "insert_after", after="more", lines=True)
ABOVE = passage(strategy="insert_before", after="\n")
BLOCK = passage("```py\nx\n```\n", "markdown")
PASSAGES = [CODE, LINE, WINDOWS_LINE, MARKDOWN, INSERT, PLACE, BLOCK, passage("\nold\n")]
PASSAGES += [BEFORE, AFTER, AFTER_LINE, ABOVE, passage("<think>x"), passage(" <THINKING>", "markdown")]
PASSAGES += [replace(of, line_end="\r\n") for of in (WINDOWS_LINE, CODE, MARKDOWN, PLACE, BEFORE, AFTER, ABOVE)]


def judged(of: EditPrompt, *deltas: str, inside_fence: bool = False) -> tuple[str, str, bool]:
    """The text that a reply makes, the remarks, and whether it is the passage alone."""
    edit = EditReply(of, inside_fence=inside_fence)
    text = "".join([edit.feed(delta) for delta in deltas]) + edit.finish()
    return text, edit.remarks, edit.alone


def emptied(of: EditPrompt, *deltas: str) -> tuple[str, bool]:
    """The text that a reply makes, and whether it is no answer."""
    edit = EditReply(of, inside_fence=False)
    return "".join([edit.feed(delta) for delta in deltas]) + edit.finish(), edit.empty


def rewritten(of: EditPrompt, *deltas: str, inside_fence: bool = False) -> tuple[str, str]:
    """The text that a reply makes, which is the passage alone, and the remarks."""
    text, remarks, alone = judged(of, *deltas, inside_fence=inside_fence)
    assert alone
    return text, remarks


# ------------------------------------------------------------------- the rules at once, over whole texts


def fence_of(line: str) -> tuple[str, str, int] | None:
    """The run, the info string and the indent of the fence that a line is."""
    hit = re.fullmatch(r"([ \t]*)(`{3,}(?=[^`]*$)|~{3,})([^\n]*)", line)
    return (hit[2], hit[3].strip(), len(hit[1].expandtabs(4))) if hit and len(line) <= FENCE_LINE else None


def unwrapped(reply: str, wrappers: str) -> tuple[str, str, bool]:
    """The text, the remarks, and whether there was a wrapper."""
    body = re.sub(r"^(?:[ \t]*\r?\n)*", "", reply)
    first, line_break, rest = body.partition("\n")
    fence = fence_of(first)
    too_far = len(reply) - len(rest) > FENCE_LINE
    if not fence or not line_break or too_far:
        return reply, "", False
    if isinstance(wrappers, int):  # the size of the fence of backticks that the selection begins with
        second = re.match(r"(?:[ \t]*\r?\n)*[ \t]*(?:```|~~~)", rest)
        blanks = re.match(r"[ \t\r\n]*(?:`{0,2}|~{0,2})", rest).end()
        longer = not fence[1] and (fence[0][0] != "`" or len(fence[0]) > wrappers)
        known = second and len(reply) - len(rest) + blanks <= FENCE_LINE
        if not known or not (longer or (fence[1].lower().split() or [""])[0] in ("markdown", "md", "text")):
            return reply, "", False
    if wrappers == "of text" and (fence[1].lower().split() or [""])[0] not in ("", "markdown", "md", "text"):
        return reply, "", False
    bare = wrappers == "of text" and not fence[1]
    opened, lines = [fence[0]], re.split("(?<=\n)", rest)
    for n, line in enumerate(lines):
        found = fence_of(re.sub(r"\r?\n\Z", "", line) if line.endswith("\n") else line)
        if not found or found[2] > fence[2] + 3:
            continue
        if found[1]:
            opened.append(found[0])
        elif found[0].startswith(opened[-1]):
            opened.pop()
        if not opened:
            remarks = "".join(lines[n + 1 :]).strip()
            whole = re.sub(r"\r?\n\Z", "", "".join(lines[:n]))
            return (reply, "", False) if bare and remarks else (whole, remarks, True)
    return (reply, "", False) if bare else (rest, "", True)


def unthought(of: EditPrompt, reply: str) -> tuple[str, bool]:
    """The reply without its thinking, and whether that has ended."""
    tag = r"(?is)[ \t\r\n]*<(think|thinking)>"
    begun = re.match(tag, reply)
    if not begun or begun.end() > HEAD or re.match(tag, of.selected):
        return reply, True
    _, closing, rest = re.sub(rf"(?i)</{begun[1]}>", "\0", reply[begun.end() :], count=1).partition("\0")
    return re.sub(r"^[ \t]*(\r?\n([ \t]*\r?\n)*)?", "", rest), bool(closing)


def ended(of: EditPrompt, text: str, wrapped: bool) -> str:
    if of.strategy == "replace" and of.selected:
        if end := re.search(r"\r?\n\Z", of.selected):
            return text and re.sub(r"(\r?\n)?\Z", "", text, count=1) + end[0]
        return re.sub(r"(\r?\n)+\Z", "", text) if text.strip("\r\n") else text
    if not text:
        return ""
    if not of.selected_by_lines:
        begins_line = of.strategy == "insert_before"  # the passages here begin a text
        return text + of.line_end * (wrapped and begins_line)
    if of.strategy == "insert_before" or of.selected.endswith("\n"):
        return text if text.endswith("\n") else text + of.line_end
    begin, rest = re.fullmatch(r"(?s)(\r?\n)?(.*)", text).groups()
    return (begin or of.line_end) + re.sub(r"\r?\n\Z", "", rest)


SENTENCE = r"(?:[^\s`~][^\n]*[.:!][ \t]*\r?\n(?:[ \t]*\r?\n)*)"


def untalked(of: EditPrompt, reply: str, wrappers: str, inside: bool) -> tuple[str, bool]:
    """The reply without its preamble, and whether none is left."""
    blanks, body = re.fullmatch(r"(?s)((?:[ \t]*\r?\n)*)(.*)", reply).groups()
    said = re.match(rf"{SENTENCE}+", body[: FENCE_LINE - len(blanks)])
    if of.language not in ("python", "markdown", "") or any(map(fence_of, of.selected.split("\n"))) or not said:
        return reply, True
    first, line_break, rest = body[said.end() :].partition("\n")
    if re.search('"""|/\\*', said[0]) or not line_break or not fence_of(first):
        return reply, True
    if of.language == "python" or inside:
        lines = [line for line in said[0].split("\n") if line.strip()]
        capital = all(line[0].isalpha() and not "a" <= line[0] <= "z" for line in lines)
        near = len(reply) - len(rest) <= FENCE_LINE
        return (body[said.end() :], True) if capital and len(lines) <= 2 and near else (reply, False)
    of_text = fence_of(first)[1].lower().startswith(("markdown", "md", "text"))
    _, remarks, wrapped = unwrapped(body[said.end() :], "any")
    closed = wrapped and not remarks and unwrapped(f"{body[said.end() :]}\n.", "any")[1] == "."
    return reply, not (of_text and closed)


def deletes(of: EditPrompt, text: str) -> bool:
    return (
        of.strategy == "replace"
        and bool(of.selected)
        and len(text) <= FENCE_LINE
        and ("".join(text.lower().split()) == "<delete/>")
    )


def oracle(of: EditPrompt, reply: str, inside: bool) -> tuple[str, str, bool]:
    if begin := fence_of(of.selected.lstrip(" \t\r\n").split("\n")[0]):
        wrappers = len(begin[0])
    else:
        wrappers = "of text" if of.language == "markdown" and not inside else "any"
    reply, over = unthought(of, reply)
    reply, echoed, on_lines, told_apart = unmarked(of, reply)
    reply = re.sub("\r?\n", "\r\n", reply) if of.line_end == "\r\n" else reply
    reply, silent = untalked(of, reply, wrappers, inside)
    text, remarks, wrapped = unwrapped(reply, wrappers)
    text = "" if deletes(of, text) else text
    remarks = "\n\n".join(filter(None, (remarks.strip(), echoed.strip())))
    alone = over and told_apart and silent and not any(fence_of(line) for line in remarks.split("\n"))
    return ended(of, text, wrapped or on_lines), remarks, alone


def unmarked(of: EditPrompt, reply: str) -> tuple[str, str, bool, bool]:
    """The reply without tags, what follows them, whether they had lines of their own, and whether it can be told."""
    place, back, lines, alone, eat = "beginning", "", False, True, False
    said = {"beginning": "", "text": "", "selection": "", "remarks": ""}
    for piece in re.split(r"(</?(?:outline|before|selection|after|request)-1>)", reply):
        if not re.fullmatch(r"</?[a-z]+-1>", piece):
            rest = re.sub(r"\A\r?\n", "", piece) if eat else piece
            lines = lines or (rest != piece and place == "selection")
            eat = eat and not piece
            said[place] = said.get(place, "") + rest
            place = "text" if place == "beginning" and said[place].strip() else place
        elif place.startswith("<"):
            place, eat = back if piece == place else place, True
        elif piece[1:-3] == "selection":
            alone = alone and place == "beginning"
            eat = place != "beginning" or not re.match(r"\r?\n", of.selected)
            if place == "beginning":
                said["beginning"], place = "", "selection"
        elif piece == "</selection-1>":
            said["beginning"] = "" if place == "beginning" else said["beginning"]
            if lines and place == "selection":
                said["selection"] = re.sub(r"\r?\n\Z", "", said["selection"])
            place, eat = "remarks", True
        else:
            opens, eat = piece[1] != "/" and place != "remarks", True
            back, place = (place, f"</{piece[1:]}") if opens else (back, place)
    text = said["beginning"] + said["text"] + said["selection"]
    return text, said["remarks"], lines, alone and not place.startswith("<")


MARKS = ["`", "``", "```", "````", "~~~", "~~~~"]
FRAGMENTS = [
    *MARKS,
    "Here you go:\n",
    "done.\n",
    "py",
    "markdown",
    " ",
    "   ",
    "\t",
    "\n",
    "\n",
    "\r\n",
    "\r",
    "x = 1",
    "é😀",
    "```\n",
    "\n```",
    "a" * 250,
]
REPLIES = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)
WRAPPED = st.tuples(
    st.sampled_from(["", "\n", "  "]), st.sampled_from(["```py\n", "```\n", "~~~ md\r\n"]), REPLIES
).map("".join)
THOUGHT = st.tuples(
    st.sampled_from(["", "\n", " \r\n", " " * 249, " " * 250]),
    st.sampled_from(["<think>", "<THINKING>", "<think", "<thinking >"]),
    st.lists(st.sampled_from([*FRAGMENTS[:12], "</think>", "</thinking>", "</thin", "<", "hm"]), max_size=8).map(
        "".join
    ),
    st.sampled_from(["</think>", "</Thinking>", "</think>\n\n", "</thinking> \r\n\t\n", ""]),
    REPLIES | WRAPPED,
).map("".join)


MARKED = st.lists(
    st.sampled_from(
        [
            *("<selection-1>", "</selection-1>", "<selection-1>\n", "\n</selection-1>", "\r\n</selection-1>\n"),
            *("<before-1>", "</before-1>\n", "<after-1>", "</after-1>", "<selection-2>", "</sel", "<", "\n", "\r\n"),
            *("x", " ", "x = 1\n", "```\n", "\n```", "<delete/>", "<del", "ete/>", " <DELETE />\n"),
        ]
    ),
    max_size=9,
).map("".join)
DELETION = st.tuples(
    st.sampled_from(["", "\n ", "```\n", "<think>x</think>", "<selection-1>"]),
    st.sampled_from(["<delete/>", "<Delete />", "<delete/", "<delete/>x"]),
    st.sampled_from(["", " \n", "\n```", "\n```\n", "</selection-1>", "x"]),
).map("".join)


def cut(reply: str, places: list[int]) -> list[str]:
    ends = sorted({place % (len(reply) + 1) for place in places} | {len(reply)})
    return [reply[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@settings(max_examples=examples(600))
@given(
    st.sampled_from(PASSAGES),
    REPLIES | WRAPPED | THOUGHT | MARKED | DELETION,
    st.booleans(),
    st.lists(st.integers(0, 2000), max_size=8),
)
@example(CODE, "```py\nx\r\n```\r\nbye", False, [10, 11, 12])
@example(CODE, "```" + "a" * 252 + "\nx", False, [])
@example(CODE, "```" + "a" * 253 + "\nx", False, [256])
@example(CODE, "```py\n```\n\r```", False, [])
@example(ABOVE, "<selection-1>\nx\r\n</selection-1>\n", False, [15, 16])
def test_any_cut_gives_what_the_whole_reply_gives(of: EditPrompt, reply: str, inside: bool, places: list[int]) -> None:
    expected, whole = oracle(of, reply, inside), judged(of, reply, inside_fence=inside)
    assert whole[1:] == expected[1:]
    if reply.count("<selection-1>") < 2:  # of two such tags nobody can tell which begins the passage: it is not taken
        assert whole == expected
    assert judged(of, *cut(reply, places), inside_fence=inside) == whole
    assert judged(of, *reply, inside_fence=inside) == whole


# ------------------------------------------------------------------- fences


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("x = 1", "x = 1"),
        ("    return x", "    return x"),
        ("```python\nx = 1\n```", "x = 1"),
        ("```\nx = 1\n```\n", "x = 1"),
        ("~~~ py title='a'\nx = 1\n~~~", "x = 1"),
        ("\n  \n````py\nx\n````", "x"),
        ("  ```py\n  x\n  ```  ", "  x"),
        ("```py\r\nx\r\ny\r\n```\r\n", "x\r\ny"),
        ("```\n```", ""),
        ("```\n\nx\n\n```", "\nx"),
        ("`x`", "`x`"),
        ("``` x ```", "``` x ```"),
        ("```x``` is code\nand more", "```x``` is code\nand more"),
        ("x\n```\ny\n```", "x\n```\ny\n```"),
    ],
)
def test_a_fence_around_the_whole_reply_is_taken_off(reply: str, text: str) -> None:
    assert rewritten(CODE, reply) == (text, "")


@pytest.mark.parametrize(
    "inner",
    [
        "```py\nx\n```\nmore",
        "~~~\nx",
        "a ``` b\n``` c ```",
        '"""\n    ```\n    x\n    ```\n"""',
        "``\n~~",
        "~~~sh\n```sh\ny\n```\n~~~",
    ],
)
def test_fences_within_the_wrapper_are_kept(inner: str) -> None:
    assert rewritten(CODE, f"```\n{inner}\n```") == (inner, "")


def test_a_longer_wrapper_is_not_closed_by_shorter_fences() -> None:
    assert rewritten(CODE, "````md\n```\nx\n```\n````") == ("```\nx\n```", "")


@pytest.mark.parametrize(
    ("reply", "text"), [("```py\nx\n``", "x\n``"), ("```py\nx", "x"), ("```py\n~~~", "~~~"), ("```py", "```py")]
)
def test_of_a_wrapper_that_is_never_closed_the_rest_is_text(reply: str, text: str) -> None:
    assert rewritten(CODE, reply) == (text, "")


def test_a_selection_that_is_a_fence_gets_one() -> None:
    assert rewritten(passage("```py\nx\n```", "markdown"), "```\ny\n```") == ("```\ny\n```", "")
    assert rewritten(passage("\n  ~~~\nx\n~~~", ""), "```\ny\n```") == ("```\ny\n```", "")


@pytest.mark.parametrize("info", ["py", "mermaid", "sh -x"])
def test_in_markdown_a_block_of_another_language_is_text(info: str) -> None:
    reply = f"```{info}\ny\n```\n\nAnd so on."
    assert rewritten(MARKDOWN, reply) == (reply, "")
    assert rewritten(MARKDOWN, reply, inside_fence=True) == ("y", "And so on.")


@pytest.mark.parametrize(
    "reply",
    ["```\ny\n```\n\nAnd so on.", "\n```\ny\n```\n\n```\nz\n```\n\nEnd", "```\ny", "~~~\ny\n```", "```\n```py\n```"],
)
def test_in_markdown_a_bare_fence_that_does_not_wrap_the_whole_reply_is_text(reply: str) -> None:
    assert rewritten(MARKDOWN, reply) == rewritten(MARKDOWN, *reply) == (reply, "")


def test_in_markdown_a_bare_fence_is_held_back_to_the_end() -> None:
    edit = EditReply(MARKDOWN, inside_fence=False)
    assert [edit.feed(delta) for delta in ("```\n", "y\n", "```", "\n")] == [""] * 4
    assert (edit.finish(), edit.remarks) == ("y", "")


@pytest.mark.parametrize("info", ["", "markdown", " MD", "text"])
def test_in_markdown_a_block_of_markdown_is_a_wrapper(info: str) -> None:
    assert rewritten(MARKDOWN, f"```{info}\nIt *is*.\n\n```py\nx\n```\n```") == ("It *is*.\n\n```py\nx\n```", "")


def test_the_text_within_a_wrapper_streams() -> None:
    edit = EditReply(CODE, inside_fence=False)
    fed = ["`", "``p", "y\n", "x =", " 1", "\n", "y", "\n`", "`", "`", "\n", "bye"]
    assert [edit.feed(delta) for delta in fed] == ["", "", "", "x =", " 1", "", "\ny", "", "", "", "", ""]
    assert (edit.finish(), edit.remarks) == ("", "bye")


def test_a_wrapper_of_four_around_a_block_as_the_selected_one_is_taken_off() -> None:
    for wrapper in ("````", "````markdown", "~~~", "```md"):
        reply = f"{wrapper}\n```py\ny\n```\n{wrapper.rstrip('markdown')}\n"
        assert rewritten(BLOCK, reply) == rewritten(BLOCK, *reply) == ("```py\ny\n```\n", "")


@pytest.mark.parametrize(
    "reply", ["````\ny\n````", "```py\n```\n", "````py\n```\ny\n```\n````", "```\n```py\ny\n```\n```"]
)
def test_any_other_fence_around_what_replaces_a_block_is_text(reply: str) -> None:
    reply = f"{reply.rstrip()}\n"
    assert rewritten(BLOCK, reply) == rewritten(BLOCK, *reply) == (reply, "")


# ------------------------------------------------------------------- a preamble


@pytest.mark.parametrize(
    "said", ["Here you go:\n", "Sure!\n\nHere is `f`, now async:\n\n", "\nÉcco:\r\n", "以下は更新です.\n"]
)
def test_in_code_a_preamble_goes_with_the_wrapper(said: str) -> None:
    reply = f"{said}```python\nx = 1\n```\nThat is all."
    assert rewritten(CODE, reply) == rewritten(CODE, *reply) == ("x = 1", "That is all.")
    assert rewritten(MARKDOWN, reply, inside_fence=True) == ("x = 1", "That is all.")


@pytest.mark.parametrize(
    ("of", "reply"),
    [
        (CODE, "here you go:\n```python\nx\n```"),
        (CODE, "Well.\nWell.\nHere you go:\n```\nx\n```"),
        (MARKDOWN, "Here you go:\n\n```markdown\nx\n```\n"),
        (passage(language=""), "Here you go:\n```md\nx\n```"),
    ],
)
def test_what_may_be_a_preamble_or_text_means_that_it_is_not_the_passage_alone(of: EditPrompt, reply: str) -> None:
    assert judged(of, reply) == judged(of, *reply)
    assert judged(of, reply)[2] is False


@pytest.mark.parametrize(
    ("of", "reply"),
    [
        (CODE, '"""Do it.\n\nLike this:\n```\nx\n```\n"""'),
        (CODE, "Done = 1\n```\nx\n```"),
        (passage('"""Say:\n```\ny\n```\n"""'), "Say it:\n```\nx\n```\n"),
        (passage("Say:\nmore"), "Say:\n```\nx\n```"),
        (replace(CODE, before='def f():\n    """'), "Say it:\n```\nx\n```"),
        (passage(language="yaml"), "  Do it:\n  ```\n  x\n  ```"),
        (MARKDOWN, "Run this:\n```sh\nls\n```"),
        (MARKDOWN, "Run this:\n```\nls\n```"),
        (MARKDOWN, "Write this:\n```markdown\n# x\n```\nAnd so on."),
        (passage("a\n```markdown\nx\n```", "markdown"), "Write this:\n```markdown\n# x\n```"),
        (passage(language=""), "Run this:\n```\nls\n```"),
    ],
)
def test_sentences_before_a_fence_that_belong_to_the_document_stay(of: EditPrompt, reply: str) -> None:
    assert rewritten(of, reply) == rewritten(of, *reply) == (reply.rstrip("\n"), "")


def test_no_more_is_held_back_than_what_may_be_a_preamble() -> None:
    edit = EditReply(CODE, inside_fence=False)
    assert [edit.feed(delta) for delta in ("Foo", ".bar()", "\n", "x")] == ["", "", "Foo.bar()", "\nx"]
    edit = EditReply(CODE, inside_fence=False)
    assert [edit.feed(delta) for delta in ("de", "f f():", "\n")] == ["de", "f f():", ""]


ANNOUNCED = [
    "Sure! Here's the revised version:\n\n",
    "Here is the rewritten text:\n",
    "\nCertainly, here’s your paragraph, in simpler words:\n\n",
    "Of course. Here is a shorter version of the passage:\r\n\r\n",
]


@pytest.mark.parametrize("said", ANNOUNCED)
@pytest.mark.parametrize("of", [passage(language=""), MARKDOWN, CODE])
def test_a_sentence_that_announces_the_text_is_no_text(of: EditPrompt, said: str) -> None:
    assert rewritten(of, f"{said}ONE") == rewritten(of, *f"{said}ONE") == ("ONE", "")
    assert judged(of, said)[2] is False  # nothing follows it


def test_an_announced_text_may_have_a_fence_around_it() -> None:
    assert rewritten(MARKDOWN, f"{ANNOUNCED[0]}```markdown\n# x\n```\n") == ("# x", "")


@pytest.mark.parametrize(
    ("of", "reply"),
    [
        (passage("Here is the revised version:\n\nold", ""), f"{ANNOUNCED[0]}ONE"),
        (passage(language=""), "Here is the text:\n\nONE"),
        (passage(language=""), "Here are the rules:\n\nONE"),
        (passage(language=""), "Sure. Here is why:\n\nONE"),
        (passage(language=""), "Surely, here's the revised version\nof 1984: ONE"),
        (replace(passage(language=""), strategy="insert_after"), "Here is the translated text:\n\nONE"),
        (replace(CODE, before='def f():\n    """'), f"{ANNOUNCED[0]}ONE"),
    ],
)
def test_what_may_be_text_stays(of: EditPrompt, reply: str) -> None:
    assert rewritten(of, reply) == rewritten(of, *reply)
    assert rewritten(of, reply)[0].endswith(reply)


# ------------------------------------------------------------------- echoed tags


@pytest.mark.parametrize(
    ("of", "reply", "text"),
    [
        (LINE, "<selection-1>ONE\n</selection-1>", "ONE\n"),
        (LINE, "<selection-1>\nONE\n</selection-1>\n", "ONE\n"),
        (CODE, "\n<selection-1>\r\n  ONE\r\n</selection-1>", "  ONE"),
        (CODE, "ONE</selection-1>", "ONE"),
        (CODE, "<selection-1>ONE", "ONE"),
        (CODE, "<before-1>a\n</before-1>\n<selection-1>ONE</selection-1>\n<after-1>b</after-1>", "ONE"),
        (CODE, "<selection-1>\n```py\nONE\n```\n</selection-1>", "ONE"),
        (CODE, "<think>x</think><selection-1>ONE</selection-1>", "ONE"),
        (PLACE, "<selection-1>ONE\n\n</selection-1>", "ONE\n\n"),
        (ABOVE, "<selection-1>\nONE\n</selection-1>", "ONE\n"),
        (passage("\nold"), "<selection-1>\nONE</selection-1>", "\nONE"),
        (passage("<selection-1>"), "<selection-2>ONE</selection-2>", "ONE"),
        (passage("<selection-1>"), "<selection-1>ONE</selection-1>", "<selection-1>ONE</selection-1>"),
        (CODE, "<selection>ONE</selection>", "<selection>ONE</selection>"),
        (CODE, "<selection-1", "<selection-1"),
    ],
)
def test_tags_of_the_message_are_taken_off(of: EditPrompt, reply: str, text: str) -> None:
    assert rewritten(of, reply)[0] == rewritten(of, *reply)[0] == text


def test_what_follows_the_tags_is_kept_apart() -> None:
    reply = "<selection-1>\nx\n</selection-1>\nI made it short.\n"
    assert rewritten(CODE, reply) == rewritten(CODE, *reply) == ("x", "I made it short.")


@pytest.mark.parametrize(
    "reply",
    [
        "Here: <selection-1>x</selection-1>",
        "<selection-1>x</selection-1><selection-1>y</selection-1>",
        "<before-1>x",
        "<selection-1>x</selection-1>\nOr:\n```\ny\n```",
    ],
)
def test_tags_of_which_it_cannot_be_told_where_the_passage_is_mean_that_it_is_not_alone(reply: str) -> None:
    assert judged(CODE, reply) == judged(CODE, *reply)
    assert judged(CODE, reply)[2] is False


def test_the_text_within_the_tags_streams() -> None:
    edit = EditReply(CODE, inside_fence=False)
    fed = ["<sel", "ection-1>", "\n", "x =", " 1", " < 2", "\n", "y", "\n</", "selection-1>"]
    assert [edit.feed(delta) for delta in fed] == ["", "", "", "x =", " 1", " < 2", "", "\ny", "", ""]


# ------------------------------------------------------------------- remarks


def test_what_follows_the_wrapper_is_kept_apart() -> None:
    assert rewritten(LINE, "```py\nx\n```\n\nI made it *short*, `y` too.\n") == ("x\n", "I made it *short*, `y` too.")


@pytest.mark.parametrize("of", [LINE, MARKDOWN, BEFORE])
@pytest.mark.parametrize("more", ["Or:\n\n```py\ny\n```", "```\nz\n```", "  ~~~", "```"])
def test_a_fence_in_what_follows_means_that_it_is_not_the_passage_alone(of: EditPrompt, more: str) -> None:
    reply = f"```md\nx\n```\n\n{more}\n"
    _, remarks, alone = judged(of, reply)
    assert (remarks, alone) == (more.strip(), False)


def test_blanks_after_the_wrapper_are_no_remark() -> None:
    assert rewritten(CODE, "```py\nx\n```\n \n\t\n") == ("x", "")


# ------------------------------------------------------------------- the ends


@pytest.mark.parametrize(
    ("of", "reply", "text"),
    [
        (LINE, "x", "x\n"),
        (LINE, "x\n", "x\n"),
        (LINE, "x\n\n", "x\n\n"),
        (LINE, "x\r\n", "x\n"),
        (WINDOWS_LINE, "x", "x\r\n"),
        (WINDOWS_LINE, "x\ny\n", "x\ny\r\n"),
        (CODE, "x\n", "x"),
        (CODE, "x\n\r\n\n", "x"),
        (CODE, " \n", " "),
        (CODE, "\n x \n", "\n x "),
        (CODE, "x\r", "x\r"),
        (LINE, "```\nx\n```\n", "x\n"),
    ],
)
def test_a_replacement_ends_as_the_selection_did(of: EditPrompt, reply: str, text: str) -> None:
    assert rewritten(of, reply) == (text, "")


@pytest.mark.parametrize("of", [INSERT, PLACE, passage("x", "", "insert_before")])
@pytest.mark.parametrize("reply", ["x", "x\n", "\nx\n\n", "\n", " ", ""])
def test_what_is_inserted_stands_as_it_is(of: EditPrompt, reply: str) -> None:
    assert rewritten(of, reply) == (reply, "")


@pytest.mark.parametrize(
    ("before", "selected", "after", "strategy", "text"),
    [
        ("a\n", "def f():", "\n", "insert_before", "import x\n"),
        ("", "def f():", "\n", "insert_before", "import x\n"),
        ("a = ", "b", "\n", "insert_before", "import x"),
        ("a\n", "b\n", "c\n", "insert_after", "import x\n"),
        ("a\n", "b\n", "\nc", "insert_after", "import x"),
        ("a\n", "b", " c", "insert_after", "import x"),
        ("a\n", "", "b", "replace", "import x\n"),
        ("a\n", "", "", "replace", "import x"),
    ],
)
def test_an_unwrapped_insertion_does_not_join_the_line_behind_it(
    before: str, selected: str, after: str, strategy: str, text: str
) -> None:
    of = EditPrompt("a.py", "python", before, selected, after, "import x", strategy)
    for reply in ("```py\nimport x\n```", "```\nimport x\n```\n"):
        assert rewritten(of, reply) == rewritten(of, *reply) == (text, "")
    assert rewritten(of, "import x") == ("import x", "")


@pytest.mark.parametrize("of", [LINE, WINDOWS_LINE, CODE, passage("\n\n\n"), INSERT, PLACE, BEFORE])
@pytest.mark.parametrize(
    "reply", ["", "```\n```", "```py\n\n```\n", "<think>Away with it.</think>\n", "<selection-1></selection-1>\n"]
)
def test_a_reply_without_text_is_no_answer(of: EditPrompt, reply: str) -> None:
    assert emptied(of, reply) == emptied(of, *reply) == ("", True)


@pytest.mark.parametrize("of", [LINE, WINDOWS_LINE, CODE, MARKDOWN, BLOCK, passage("\n\n\n")])
@pytest.mark.parametrize(
    "reply",
    [
        "<delete/>",
        "\n <Delete />\n",
        "<think>Away with it.</think>\n<delete/>",
        "<selection-1><delete/></selection-1>",
    ],
)
def test_the_mark_alone_deletes_the_selection_whole(of: EditPrompt, reply: str) -> None:
    assert rewritten(of, reply) == rewritten(of, *reply) == ("", "")
    assert emptied(of, reply) == emptied(of, *reply) == ("", False)


def test_the_mark_in_a_wrapper_deletes_too() -> None:
    assert emptied(CODE, "```\n<delete/>\n```") == emptied(MARKDOWN, *"```md\n<delete/>\n```") == ("", False)


def test_the_mark_is_never_seen_wherever_it_is_cut() -> None:
    edit = EditReply(LINE, inside_fence=False)
    assert [edit.feed(delta) for delta in ("\n", "<", "del", "ete", "/", ">", "\n")] == [""] * 7
    assert (edit.finish(), edit.empty) == ("", False)


@pytest.mark.parametrize("reply", ["<delete/>x", "x <delete/>", "<delete>", "<del", "<deleted/>"])
def test_with_anything_beside_it_the_mark_is_text(reply: str) -> None:
    assert rewritten(CODE, reply) == rewritten(CODE, *reply) == (reply, "")


@pytest.mark.parametrize("of", [INSERT, PLACE, BEFORE, passage("<delete/>"), passage("old", after="<Delete file=''/>")])
def test_where_nothing_can_be_deleted_or_the_document_has_such_words_they_are_text(of: EditPrompt) -> None:
    text, empty = emptied(of, "<delete/>")
    assert (text.strip(), empty) == ("<delete/>", False)


def test_a_document_that_has_the_mark_gets_another_one() -> None:
    of = passage("<delete/>-1")
    assert of.deletion_mark == "<delete-2/>"
    assert emptied(of, "<delete-2/>") == ("", False)


@pytest.mark.parametrize(
    ("selected", "reply", "text"),
    [
        ("—", " ", " "),
        ("—", "\n", "\n"),
        ("—", "\r\n\n", "\r\n\n"),
        ("—", "```\n \n```", " "),
        ("\n\n\n", "\n\n", "\n\n"),
        ("\n\n\n", "\n", "\n"),
        ("\n\n\n", " ", " \n"),
        ("old\n", "\n", "\n"),
        ("old\r\n", "\t\n", "\t\r\n"),
    ],
)
def test_a_reply_of_blanks_is_text(selected: str, reply: str, text: str) -> None:
    assert rewritten(passage(selected), reply) == rewritten(passage(selected), *reply) == (text, "")


@pytest.mark.parametrize(
    ("of", "reply", "text"),
    [
        (CODE, "a\nb\r\nc", "a\r\nb\r\nc"),
        (WINDOWS_LINE, "a\n\nb\n", "a\r\n\r\nb\r\n"),
        (CODE, "a\rb", "a\rb"),
        (PLACE, "a\n", "a\r\n"),
        (BEFORE, "a", "a\r\n"),
        (AFTER, "a\nb\n", "\r\na\r\nb"),
        (ABOVE, "```\na\n```", "a\r\n"),
    ],
)
def test_where_all_lines_end_in_crlf_so_do_those_of_the_reply(of: EditPrompt, reply: str, text: str) -> None:
    of = replace(of, line_end="\r\n")
    assert rewritten(of, reply) == rewritten(of, *reply) == (text, "")


# ------------------------------------------------------------------- beside lines


@pytest.mark.parametrize(
    ("of", "reply", "text"),
    [
        (BEFORE, "new", "new\n"),
        (BEFORE, "new\n", "new\n"),
        (BEFORE, "new\r\n", "new\r\n"),
        (BEFORE, "\nnew\n\n", "\nnew\n\n"),
        (BEFORE, "```\nnew\n```", "new\n"),
        (AFTER, "new", "\nnew"),
        (AFTER, "new\n", "\nnew"),
        (AFTER, "\nnew\n", "\nnew"),
        (AFTER, "\r\nnew\r\n", "\r\nnew"),
        (AFTER, "\n\nnew\n\n", "\n\nnew\n"),
        (AFTER, "```\nnew\n```", "\nnew"),
        (AFTER, "\n", "\n"),
        (AFTER_LINE, "new", "new\n"),
        (AFTER_LINE, "new\n", "new\n"),
        (AFTER_LINE, "```md\nnew\n```", "new\n"),
        (passage("", strategy="insert_after", after="\nb", lines=True), "new\n", "\nnew"),
        (passage("", strategy="insert_before", after="\nb", lines=True), "new", "new\n"),
    ],
)
def test_what_is_inserted_beside_lines_stands_on_lines_of_its_own(of: EditPrompt, reply: str, text: str) -> None:
    assert rewritten(of, reply) == rewritten(of, *reply) == (text, "")


@pytest.mark.parametrize("of", [BEFORE, AFTER, AFTER_LINE, ABOVE, INSERT])
@pytest.mark.parametrize("reply", ["", "```\n```"])
def test_of_nothing_nothing_is_inserted(of: EditPrompt, reply: str) -> None:
    assert rewritten(of, reply) == ("", "")


def test_beside_a_word_whose_line_is_named_too_the_text_stands_as_it_is() -> None:
    before = EditPrompt("a", "", "a = [", "b", "]\n", "", "insert_before", selected_by_lines=True)
    after = replace(before, strategy="insert_after")
    assert rewritten(before, "x, ") == ("x, ", "")
    assert rewritten(after, ", x") == (", x", "")


# ------------------------------------------------------------------- thinking


@pytest.mark.parametrize("tag", ["think", "thinking", "THINK"])
@pytest.mark.parametrize("after", ["", "\n", "\n\n", "  \r\n \n"])
def test_thinking_at_the_beginning_is_no_text_and_no_remark(tag: str, after: str) -> None:
    reply = f"\n<{tag}>Is it </thin or\n```py\nx?\n```</{tag}>{after}"
    assert rewritten(CODE, f"{reply}y = 1") == rewritten(CODE, *reply, "y = 1") == ("y = 1", "")
    assert rewritten(CODE, f"{reply}```py\ny = 1\n```\nDone.") == ("y = 1", "Done.")


def test_after_thinking_the_indentation_of_the_text_stays() -> None:
    assert rewritten(CODE, "<think>Hm</think>\n\n    y = 1") == ("    y = 1", "")


@pytest.mark.parametrize("reply", ["<think>Hm", "<think>Hm</thinking> y", "<thinking>y</think", "<think>"])
def test_thinking_that_never_ends_is_not_the_passage_alone(reply: str) -> None:
    assert judged(CODE, reply) == judged(CODE, *reply) == ("", "", False)


@pytest.mark.parametrize(
    "reply", ["<thin", "<thinker>x</thinker>", "x <think>y</think>", "`<think>`", "<", " <b>x</b>"]
)
def test_no_other_tags_are_thinking(reply: str) -> None:
    assert rewritten(CODE, reply) == rewritten(CODE, *reply) == (reply, "")


@pytest.mark.parametrize("selected", ["<think>old</think>", "\n <thinking>\n", "<Think>"])
def test_a_selection_that_begins_with_such_a_tag_gets_one(selected: str) -> None:
    reply = "<think>new</think>"
    assert rewritten(passage(selected), reply)[0].strip() == reply


def test_the_text_after_the_thinking_streams() -> None:
    edit = EditReply(CODE, inside_fence=False)
    fed = ["<thi", "nk>Hm", "</think", ">", "\n", "\n  x", " = 1"]
    assert [edit.feed(delta) for delta in fed] == ["", "", "", "", "", "  x", " = 1"]


# ------------------------------------------------------------------- inside a fence


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("", False),
        ("a\n```py\n", True),
        ("a\n```py\nx\n```\n", False),
        ("~~~\n```\n~~~\n", False),
        ("````\n```\n", True),
        ("```\nx\n```py\n", True),
        ("- a\n\n    ```sh\n    x\n", True),
        ("a `b` ``` c\n", False),
        ("``` a ``` b\n", False),
        ("```py\r\nx\r\n```\r\n", False),
        ("```py\nx\n```\n" * 1000 + "```", True),
    ],
)
def test_the_fences_before_a_place_tell_whether_it_is_in_one(before: str, inside: bool) -> None:
    assert inside_fence(before) is inside
