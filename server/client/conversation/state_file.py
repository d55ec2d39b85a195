"""The last conversation with each server, remembered between commands in the user's state directory.

Rule: a missing, broken or read-only file never makes a command fail.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path


def last_context(url: str) -> str:
    """The conversation of the newest message to a server; empty if unknown."""
    return _read_contexts().get(url, "")


def last_server() -> str:
    """The server of the newest message; empty if unknown."""
    return next(reversed(_read_contexts()), "")


def remember(url: str, context_id: str) -> None:
    """Remember the conversation of a message."""
    known = _read_contexts()
    if context_id and [*known.items()][-1:] != [(url, context_id)]:
        known.pop(url, None)  # the newest is the last
        with suppress(OSError, RuntimeError):
            file = state_file("contexts.json")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({**known, url: context_id}))


def state_file(name: str) -> Path:
    """A file in the user's state directory, as in the XDG specification."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "a2a-canvas" / name


def _read_contexts() -> dict[str, str]:
    with suppress(OSError, ValueError, AttributeError, RuntimeError):
        known = json.loads(state_file("contexts.json").read_text())
        return {url: context for url, context in known.items() if isinstance(context, str)}
    return {}
