"""Sanitises and truncates text from a server, and formats sizes and times. Pure."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from rich.cells import cell_len, set_cell_size

# C0, DEL and C1; the line and paragraph separators; the bidirectional overrides, embeddings and isolates. The marks
# U+200E, U+200F and U+061C stay: Hebrew and Arabic need them, and they cannot reorder other text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


MAX_REQUEST: Final = 200
"""Cells of a request in a table, as `/artifacts` has it."""


def clean(text: str) -> str:
    """Text without control characters, except newline and tab, and without bidirectional overrides."""
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """Text cleaned, every run of white space made one space."""
    return clean(" ".join(text.split()))


def fit(text: str, columns: int) -> str:
    """Text truncated to at most `columns` cells of a terminal, with `…` at the end."""
    return text if cell_len(text) <= columns else f"{set_cell_size(text, columns - 1).rstrip()}…"


def excerpt(text: str) -> str:
    """The beginning of a request, on one line, for a table."""
    return fit(one_line(text), MAX_REQUEST)


def short(id_: str) -> str:
    """The beginning of an id made by a server, which is enough to name it; an id chosen by a person unchanged."""
    return id_[:8] if len(id_) >= 32 else id_


def size_of(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    return f"{size / 1024:.0f} KB" if size < 1024**2 else f"{size / 1024**2:.1f} MB"


def local_time(stamp: str) -> str:
    """A time stamp for users: the time if today, else with the day; empty if unreadable."""
    try:
        at = datetime.fromisoformat(stamp.replace("Z", "+00:00")).astimezone()
    except ValueError:
        return ""
    now = datetime.now(at.tzinfo)
    return (
        f"{at:%H:%M}" if at.date() == now.date() else f"{at:%d %b %H:%M}" if at.year == now.year else f"{at:%d %b %Y}"
    )
