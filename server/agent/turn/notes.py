"""What metadata says of a user's message, as the model is told it in words. Pure."""

from __future__ import annotations

from typing import assert_never

from a2a_canvas.server.agent.operations import Converse, Edit, Focus, Go, Intent, Marked, Put
from a2a_canvas.store.changes import Redo, Restore, Undo
from a2a_canvas.tools.artifact_read import to_json

EXCERPT = 500
"""Characters of a selection that are shown."""


def note_of(intent: Intent) -> str:
    """A note in square brackets; empty if there is nothing to tell."""
    match intent:
        case Converse():
            return _focus(intent.focus) if intent.focus else ""
        case Edit():
            return f"[Of a passage selected in artifact {to_json(intent.artifact_id)}{_where(intent.marked)}]"
        case Go():
            return f"[The user's own step in artifact {to_json(intent.artifact_id)}: {_step(intent)}]"
        case Put():
            return f"[The user has edited artifact {to_json(intent.artifact_id)} with their own hands]"
        case _:
            assert_never(intent)


def _focus(focus: Focus) -> str:
    version = f", version {focus.base_version}" if focus.base_version else ""
    marked = f"; selected there{_where(focus.marked)}" if focus.marked else ""
    return f"[The user is looking at artifact {to_json(focus.artifact_id)}{version}{marked}]"


def _where(marked: Marked) -> str:
    if marked.line_start is not None:
        place = f", lines {marked.line_start}-{marked.line_end}"
    else:
        place = f", {marked.unit} offsets {marked.start}-{marked.end}"
    if not marked.text:
        return place
    excerpt = marked.text if len(marked.text) <= EXCERPT else f"{marked.text[:EXCERPT]}…"
    return f"{place}: {to_json(excerpt)}"


def _step(go: Go) -> str:
    match go.change:
        case Undo(group=group):
            return "undo of all that one task did" if group else "undo"
        case Redo(group=group):
            return "redo of all that one task did" if group else "redo"
        case Restore(version=version):
            return f"version {version} restored"
        case _:
            assert_never(go.change)
