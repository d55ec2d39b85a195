"""The pages for users and contributors, and how their tests read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1:8000"
"""The server's, as the pages write it."""

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        ROOT / "SECURITY.md",
        *sorted(ROOT.glob("docs/*.md")),
    )
}
"""The text of each page, by its path."""

README = PAGES["README.md"]


def page(name: str) -> str:
    """The text of `docs/NAME.md`."""
    return PAGES[f"docs/{name}.md"]


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    """The text without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def section(text: str, heading: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    level, fenced, lines = 0, False, []
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        found = None if fenced else re.match("(#+) (.*)\n", line)
        if level and found and len(found[1]) <= level:
            break
        if level:
            lines.append(line)
        elif found and found[2] == heading:
            level = len(found[1])
    assert level, heading
    return "".join(lines)


def rows(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without the table's own heading."""
    table = re.search(r"(?:^\|.*\|\n)+", section(text, heading), re.MULTILINE)
    assert table
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    lines = re.findall("^#+(.*)", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-") for line in lines}


def assert_has(value: Any, expected: Any) -> None:
    """`value` has all that `expected` has, ids apart."""
    if isinstance(expected, dict):
        for key in expected.keys() - {"id"}:
            assert_has(value[key], expected[key])
    elif isinstance(expected, list):
        for each, one in zip(value, expected, strict=True):
            assert_has(each, one)
    else:
        assert value == expected
