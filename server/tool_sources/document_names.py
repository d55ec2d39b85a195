"""File names of documents that an agent left without one. Pure."""

from __future__ import annotations

import re

MAX_NAME = 80
"""Characters of a name."""


def document_name(text: str, agent: str) -> str:
    """The file name of a text: by its first heading, else by the agent."""
    return heading_name(text) or f"{_words(agent) or 'answer'}.md"


def heading_name(text: str) -> str:
    """The file name of a text by its first heading; empty without one."""
    found = re.search(r"^ {0,3}#{1,6}[ \t]+(\S.*)$", text, re.MULTILINE)
    words = _words(found[1]) if found else ""
    return f"{words}.md" if words else ""


def _words(text: str) -> str:
    return "-".join(re.findall(r"\w+", text.lower()))[:MAX_NAME].strip("-")
