"""The outline of a document: its headings or definitions, with line numbers. Pure.

Rule 1: the outline of prose is its Markdown headings outside of fenced blocks; that of any other text is its lines
        without indentation that begin with a defining key word (`def`, `class`, `function`…) of any language.
Rule 2: an outline has at most `MAX_OUTLINE` characters; the entries nearest to the given line are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from a2a_canvas.server.agent.text.file_language import is_prose
from a2a_canvas.server.agent.text.markdown_code import outside_fences

MAX_OUTLINE: Final = 2_000
"""Characters of an outline."""

_MAX_LINE: Final = 100
"""Characters of a line that are shown."""

_HEADINGS: Final = r"^ {0,3}#{1,6}(?:[ \t].*|\r?$)"
_DEFINITIONS: Final = re.compile(
    r"^(?:(?:(?:export|default|public|private|protected|internal|static|final|abstract|sealed|async|pub(?:\([^)\n]*\))?|unsafe"
    r"|extern|data|open|override|inline|virtual|partial|create|CREATE(?: OR REPLACE)?)[ \t]+)*"
    r"(?:def|class|function|fn|func|fun|struct|enum|union|interface|trait|impl|type|module|namespace|object|record|protocol"
    r"|extension|macro_rules!|defmodule|package|TABLE|VIEW|FUNCTION|PROCEDURE|table|view)\b"
    r"|(?:export[ \t]+)?(?:const|let|var)[ \t]+\w+[ \t]*=[ \t]*(?:async[ \t]*)?(?:\(|function\b|class\b)).*",
    re.MULTILINE,
)


def outline_of(text: str, language: str, line: int) -> str:
    """The outline of `text`, an entry a line, as "12: ## Setup"; empty if there are no entries.

    Args:
        line: the line around which entries are kept.
    """
    lines = outside_fences(text, _HEADINGS) if is_prose(language) else _DEFINITIONS.finditer(text)
    near, left = [], MAX_OUTLINE
    for number, entry in sorted(_number_lines(text, lines), key=lambda each: abs(each[0] - line)):
        left -= len(entry) + 1
        if left < 0:
            break
        near.append((number, entry))
    return "\n".join(entry for _, entry in sorted(near))


def _number_lines(text: str, lines: Iterable[re.Match[str]]) -> Iterator[tuple[int, str]]:
    number, at = 1, 0
    for line in lines:
        number, at = number + text.count("\n", at, line.start()), line.start()
        yield number, f"{number}: {line[0].rstrip()[:_MAX_LINE]}"
