"""What metadata says of a user's message, as the model is told it in words. Pure."""

from __future__ import annotations

from typing import assert_never

from a2a_canvas.server.agent.operations import (
    Converse,
    Focus,
    Intent,
    Put,
    SelectionEdit,
    SelectionRequest,
    VersionStep,
)
from a2a_canvas.store.changes import Redo, Restore, Undo
from a2a_canvas.tools.artifact_read import to_json

MAX_EXCERPT = 500
"""Characters of a selection that are shown."""


def note_of(intent: Intent) -> str:
    """A note in square brackets; empty if there is nothing to tell."""
    match intent:
        case Converse():
            return _focus(intent.focus) if intent.focus else ""
        case SelectionEdit():
            return f"[Of a passage selected in artifact {to_json(intent.artifact_id)}{_where(intent.selection)}]"
        case VersionStep():
            return f"[The user's own step in artifact {to_json(intent.artifact_id)}: {_step(intent)}]"
        case Put():
            return f"[The user has edited artifact {to_json(intent.artifact_id)} with their own hands]"
        case _:
            assert_never(intent)


def _focus(focus: Focus) -> str:
    version = f", version {focus.base_version}" if focus.base_version else ""
    selection = f"; selected there{_where(focus.selection)}" if focus.selection else ""
    return f"[The user is looking at artifact {to_json(focus.artifact_id)}{version}{selection}]"


def _where(selection: SelectionRequest) -> str:
    if selection.line_start is not None:
        place = f", lines {selection.line_start}-{selection.line_end}"
    else:
        place = f", {selection.unit} offsets {selection.start}-{selection.end}"
    if not selection.text:
        return place
    excerpt = selection.text if len(selection.text) <= MAX_EXCERPT else f"{selection.text[:MAX_EXCERPT]}…"
    return f"{place}: {to_json(excerpt)}"


def _step(go: VersionStep) -> str:
    match go.change:
        case Undo(group=group):
            return "undo of all that one task did" if group else "undo"
        case Redo(group=group):
            return "redo of all that one task did" if group else "redo"
        case Restore(version=version):
            return f"version {version} restored"
        case _:
            assert_never(go.change)
