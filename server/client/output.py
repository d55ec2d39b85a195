"""What is written past the screen: JSON, and text for a program that reads it, which must be exact."""

from __future__ import annotations

import json
from typing import Any, TextIO


def json_line(out: TextIO, value: Any) -> None:
    """One line of JSON, seen at once."""
    out.write(json.dumps(value) + "\n")
    out.flush()


def exact(out: TextIO, content: str | bytes) -> None:
    """Content byte for byte, text as UTF-8 whatever the locale is, where `out` has bytes below."""
    buffer = getattr(out, "buffer", None)
    if buffer is None:
        out.write(content if isinstance(content, str) else content.decode(errors="replace"))
        return
    out.flush()
    buffer.write(content.encode() if isinstance(content, str) else content)
    buffer.flush()
