"""The outline of a document: the lines that say what its parts are, with their numbers. Pure.

Rule 1: of Markdown its headings, outside of fenced blocks; of anything else the lines without indentation that define
        something, by key word (`def`, `class`, `function`…), whatever the language.
Rule 2: an outline has at most `BUDGET` characters. Of a longer one the entries nearest to the given line are left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from server.agent.fences import lines_outside
from server.agent.language import is_markdown

BUDGET: Final = 2_000
"""Characters of an outline."""

_WIDTH: Final = 100
"""Characters of a line that are shown."""

_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_DEFINITION: Final = re.compile(
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|sealed|async|pub(?:\([^)]*\))?|unsafe"
    r"|extern|data|open|override|inline|virtual|partial|create|CREATE(?: OR REPLACE)?)[ \t]+)*"
    r"(?:def|class|function|fn|func|fun|struct|enum|union|interface|trait|impl|type|module|namespace|object|record|protocol"
    r"|extension|macro_rules!|defmodule|package|TABLE|VIEW|FUNCTION|PROCEDURE|table|view)\b"
    r"|(?:export[ \t]+)?(?:const|let|var)[ \t]+\w+[ \t]*=[ \t]*(?:async[ \t]*)?(?:\(|function\b|class\b)"
)


def outline_of(text: str, language: str, line: int) -> str:
    """The outline of `text`, an entry a line, as "12: ## Setup"; empty if there is nothing to be told.

    Args:
        line: the number of the line that is looked at.
    """
    entries = list(_headings(text) if is_markdown(language) else _definitions(text))
    near, left = [], BUDGET
    for entry in sorted(entries, key=lambda entry: abs(entry[0] - line)):
        left -= len(_shown(*entry)) + 1
        if left < 0:
            break
        near.append(entry)
    return "\n".join(_shown(*entry) for entry in sorted(near))


def _shown(number: int, line: str) -> str:
    return f"{number}: {line.rstrip()[:_WIDTH]}"


def _definitions(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if _DEFINITION.match(line):
            yield number, line


def _headings(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in lines_outside(text) if _HEADING.match(line))
