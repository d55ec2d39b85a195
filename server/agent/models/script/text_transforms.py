"""The transforms of a rule's `change`: of a whole document, a passage of it, or a selection. Pure.

Rule 1: a transform returns the new text, or None if it does not apply: nothing is changed then.
Rule 2: only prose is shortened or extended by sentences; other languages must stay valid.
Rule 3: line breaks at the end stay as they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from a2a_canvas.server.agent.models.script.passages import HEADING, ITEM, headings_of
from a2a_canvas.server.agent.models.script.placeholders import Groups, capital, fill, parse_number
from a2a_canvas.server.agent.text.file_language import is_prose
from a2a_canvas.server.agent.text.markdown_code import outside_fences
from a2a_canvas.store.text.spans import Span, splice


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to transform, without the line breaks at its end.

    Attributes:
        whole: whether it is a whole document.
        table: the texts of the rule's `with`, by patterns.
        around: the whole document, if the text is only a part of it.
    """

    text: str
    language: str
    whole: bool
    groups: Groups
    table: Mapping[str, str] = field(default_factory=dict)
    around: str = ""

    @property
    def choices(self) -> Iterator[str]:
        """Texts of the table, filled in, whose pattern is found in the text and that it does not contain yet."""
        facts = {**self.groups, **facts_of(self.around or self.text)}
        texts = (fill(text, facts).strip("\n") for key, text in self.table.items() if re.search(key, self.text))
        return (text for text in texts if text not in self.text)


def transform(change: str, passage: Passage) -> str | None:
    """The new text of a passage; None if the change does not apply or leaves it as it is."""
    new = TRANSFORMS[change](passage)
    return None if new == passage.text else new


def facts_of(text: str) -> dict[str, str]:
    """Facts about a document: its `title`, its `first` sentence, its `sections` and its number of `words`."""
    headings = [hit[0].lstrip("# ").strip() for hit in outside_fences(text, HEADING)] or [
        text.strip().partition("\n")[0][:60].rstrip(" ,.;:?!")
    ]
    prose = [block for block in _BLOCKS.split(text) if block.strip() and not _NO_PROSE.match(block)]
    sections = ", ".join(headings[1:]) or "all of the above"
    first = " ".join(_first_sentence(prose[0].strip()).split()) if prose else f"{headings[0]}."
    return {"title": headings[0], "first": first, "sections": sections, "words": str(len(text.split()))}


_BLOCKS: Final = re.compile(r"(\n[ \t]*\n\s*)")
_NO_PROSE: Final = re.compile(rf"\s*(?:#{{1,6}}[ \t]|[>|]|```|~~~|---|{ITEM.pattern})")
_FIRST: Final = re.compile(
    r"(?:[\[(][^\[\]()]*[\])]|[^\[(]|[\[(](?![^\[\]()]*[\])]))+?(?<=.{15})(?:[.!?…][\"”’')*]*(?=\s)|[。！？])",
    re.DOTALL,
)
"""One sentence, or more up to 16 characters; brackets stay whole."""


def _first_sentence(text: str) -> str:
    found = _FIRST.match(text)
    return found[0] if found else text


# ------------------------------------------------------------------ shorter and longer


def _shorten(passage: Passage) -> str | None:
    """Keep first sentences, and half of each list; if nothing shrinks, half of the last block. Rewrite a program."""
    if not is_prose(passage.language):
        return _rewrite(passage)
    blocks = _BLOCKS.split(passage.text)
    shorter = "".join(map(_shorten_block, blocks))
    if shorter == passage.text:
        lines = blocks[-1].split("\n")
        words = blocks[-1].split(" ")
        pieces, joint = (lines, "\n") if len(lines) > 1 else (words, " ")
        half = joint.join(pieces[: (len(pieces) + 1) // 2]).rstrip(" ,;:")
        end = passage.text.rstrip()[-1:]
        is_cut = pieces is words and end in ".!?…" and half[-1:].isalnum()
        shorter = "".join(blocks[:-1]) + half + (end if is_cut else "")
    return shorter.rstrip()


def _shorten_block(block: str) -> str:
    if block.startswith("|") or ITEM.match(block):
        lines, head = block.split("\n"), 2 if block.startswith("|") else 0
        return "\n".join(lines[: (len(lines) + head + 1) // 2])
    return block if _NO_PROSE.match(block) else _first_sentence(block)


def _extend(passage: Passage) -> str | None:
    """Append the first line of `with` that is missing."""
    if not is_prose(passage.language):
        return None
    lines = (line for text in passage.choices for line in text.splitlines() if line not in passage.text)
    line = next(lines, None)
    return line and f"{passage.text}{'' if line[0] in ',:;' else ' '}{line}"


def _add(passage: Passage) -> str | None:
    """Add the first missing text of `with` that fits the language, as a block at the end or at `place`."""
    new = next((text for text in passage.choices if _fits(text, passage.language)), None)
    if new is None:
        return None
    if (place := passage.groups.get("place", "").casefold()) and is_prose(passage.language):
        at = _place(passage.text, place)
        return splice(passage.text, Span(at, at), f"\n\n{new}" if at == len(passage.text) else f"{new}\n\n")
    if is_prose(passage.language):
        blank = "\n\n" if passage.whole or "\n" in new else " "
    else:
        last = passage.text.rpartition("\n")[2]
        blank = "\n\n\n" if passage.whole else "\n" + last[: len(last) - len(last.lstrip())]
    return f"{passage.text}{blank}{new}" if passage.text else new


def _place(text: str, place: str) -> int:
    """The offset of a new block: `before` or `after` the text, else before its first section."""
    if place in ("before", "after"):
        return len(text) if place == "after" else 0
    headings, top = headings_of(text)
    return next((hit.start() for hit, level in headings if level == top and hit.start()), len(text))


def _fits(text: str, language: str) -> bool:
    """Whether a text may be added: Markdown to prose, Python to a Python program."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return is_prose(language) or (language == "python" and bool(ast.parse(text)))
    return False


def _begin(passage: Passage) -> str | None:
    """Add the first missing text of `with` below the title; a title goes on top, if there is none."""
    new = next(passage.choices, None)
    title = re.match(HEADING, passage.text, re.MULTILINE)
    if new is None or not is_prose(passage.language) or (title and new.startswith("# ")):
        return None
    blocks = (title[0], new, passage.text[title.end() :].lstrip("\n")) if title else (new, passage.text)
    return "\n\n".join(blocks)


def _items(passage: Passage) -> str | None:
    """Add `count` lines of `with`, in the form of the last list; none if there are fewer."""
    lines = passage.text.split("\n")
    found = [at for at, line in enumerate(lines) if ITEM.match(line)]
    last = found[-1] if found else -1
    mark = ITEM.match(lines[last]) if last >= 0 else None
    if mark is None:
        return None
    texts = [line for text in passage.choices for line in text.splitlines() if line not in passage.text]
    if passage.groups.get("place"):
        last, mark = found[0] - 1, ITEM.match(lines[found[0]]) or mark
    count = parse_number(passage.groups.get("count", ""))
    if len(texts) < count:
        return None
    new = [_mark_item(mark, step, text) for step, text in enumerate(texts[:count], 1)]
    return "\n".join([*lines[: last + 1], *new, *lines[last + 1 :]])


def _mark_item(mark: re.Match[str], step: int, text: str) -> str:
    number = mark["number"]
    form = mark[0].replace(number, str(int(number) + step), 1) if number else mark[0]
    return re.sub(r"\[[xX]\]", "[ ]", form) + text


# ------------------------------------------------------------------------------- words


def _replace(passage: Passage) -> str | None:
    """Replace every `old` by `new`, ignoring case but keeping an initial capital; or words by `with`."""
    if template := passage.table.get(""):
        return _rewrite(replace(passage, table={rf"\b{re.escape(passage.groups['old'])}\b": template}))
    new = passage.groups.get("new", "").replace("\\", r"\\")
    return _rewrite(replace(passage, table={f"(?i){re.escape(passage.groups['old'])}": new}))


def _rewrite(passage: Passage) -> str | None:
    """Replace every pattern of `with` by its text; literal texts keep an initial capital."""
    text = passage.text
    for pattern, new in passage.table.items():

        def put(found: re.Match[str], new: str = new) -> str:
            filled = fill(found.expand(new), {**passage.groups, **found.groupdict("")})
            return capital(filled) if found[0][:1].isupper() and "{" not in new else filled

        text = re.sub(pattern, put, text)
    return text


def _sort(passage: Passage) -> str | None:
    """Sort lines; in a whole document those of its lists."""
    lines = rf"(?m)(?:^{ITEM.pattern}.*\n)+" if passage.whole else r"(?s).+"
    backwards = bool(passage.groups.get("reverse"))

    def in_order(hit: re.Match[str]) -> str:
        return "".join(sorted(hit[0].splitlines(True), key=str.casefold, reverse=backwards))

    text = re.sub(lines, in_order, f"{passage.text}\n")
    return text.rstrip("\n")


# ---------------------------------------------------------------------------- headings


def _title(passage: Passage) -> str | None:
    if not is_prose(passage.language):
        return None
    new = capital(passage.groups["new"])
    first = next(outside_fences(passage.text, HEADING), None)
    if first is None:
        return f"# {new}\n\n{passage.text}"
    level = "#" * (len(first[0]) - len(first[0].lstrip("#")))
    return f"{passage.text[: first.start()]}{level} {new}{passage.text[first.end() :]}"


def _number_headings(passage: Passage) -> str | None:
    """Number headings as "2.1. Sizes", except a title, which is the only one of its level."""
    headings, top = headings_of(passage.text) if is_prose(passage.language) else ([], 0)
    counts, text, at = [0] * 7, "", 0
    for hit, level in headings:
        if level >= top:
            counts = [*counts[:level], counts[level] + 1, *[0] * (6 - level)]
            number = ".".join(map(str, counts[top : level + 1]))
            bare = re.sub(r"^[\d.]+[.)]\s+", "", hit[0][level:].strip())
            text, at = f"{text}{passage.text[at : hit.start()]}{'#' * level} {number}. {bare}", hit.end()
    return text + passage.text[at:]


TRANSFORMS: Final[Mapping[str, Callable[[Passage], str | None]]] = {
    "shorter": _shorten,
    "extend": _extend,
    "add": _add,
    "begin": _begin,
    "items": _items,
    "replace": _replace,
    "rewrite": lambda passage: _rewrite(passage) if is_prose(passage.language) else None,
    "code": lambda passage: None if is_prose(passage.language) else _rewrite(passage),
    "put": lambda passage: None if passage.whole else passage.groups["new"],
    "delete": lambda passage: None if passage.whole else "",
    "sort": _sort,
    "title": _title,
    "number": _number_headings,
}
OF_PASSAGES: Final = TRANSFORMS.keys() - {"add", "begin", "items", "title", "number"}
"""Changes that a selection limits to itself."""
STEPS: Final = ("undo", "redo", "restore", "compare", "tell")
CHANGES: Final = (*TRANSFORMS, *STEPS)
"""The values of `change` in a rule."""
NEEDED_GROUPS: Final = {"replace": "old", "put": "new", "title": "new", "restore": "version"}
