"""The passage of a text that a user selects. Pure, no A2A.

Rule 1: a match is searched in the version that the user saw, and must occur there exactly once. It is sent with its
        range, its text and that version, so that the server finds it again after concurrent changes.
        Its line breaks match those of the text, because on a screen "\\r\\n" and "\\n" are the same.
Rule 2: lines are sent as lines, of the current version unless the user names one.
"""

from __future__ import annotations

import re
from typing import Any

from a2a_canvas.server.client.conversation.errors import CannotBeDone
from a2a_canvas.server.client.screen.display import fit, one_line

MAX_LINES_NAMED = 10
"""The most places that a message about an ambiguous match lists."""
MAX_QUOTE_CELLS = 60


def match_selection(match: str, text: str, version: int) -> dict[str, Any]:
    """The selection of the place where `match` occurs in `text`, which is that of `version`.

    Raises:
        CannotBeDone: it occurs there more than once or not at all.
    """
    start, end = _find(match, text, f"version {version}")
    return {"start": start, "end": end, "unit": "codepoint", "text": text[start:end]}


def _find(match: str, text: str, name: str) -> tuple[int, int]:
    needle = match if match in text else re.sub("\r?\n", "\r\n", match)
    # A lookahead finds overlapping occurrences, too.
    starts = [found.start() for found in re.finditer(f"(?={re.escape(needle)})", text)]
    if len(starts) == 1:
        return starts[0], starts[0] + len(needle)
    if not starts:
        raise CannotBeDone(f"{_quote(match)} does not occur in {name}. Copy it from what show prints, or give --lines")
    lines = dict.fromkeys(text.count("\n", 0, start) + 1 for start in starts[:MAX_LINES_NAMED])
    named = ", ".join(map(str, lines)) + (", …" if len(starts) > MAX_LINES_NAMED else "")
    where = f"on line{'s' if len(lines) > 1 else ''} {named}"
    times = f"{_quote(match)} occurs {len(starts)} times in {name}"
    raise CannotBeDone(f"{times}, {where}. Match more of the text, or give --lines")


def _quote(text: str) -> str:
    return f'"{fit(one_line(text), MAX_QUOTE_CELLS)}"' if text.strip() else repr(text)
