"""What a message may ask for, as values; `intent.py` reads them from a message."""

from __future__ import annotations

from dataclasses import dataclass

from a2a_canvas.store.changes import Redo, Restore, Undo
from a2a_canvas.store.edits import Strategy
from a2a_canvas.store.text.spans import Unit


class InvalidOperation(Exception):
    """A message's operation cannot be done as it is asked for; nothing has changed.

    Args:
        field: the field that is wrong, as the sender names it.
        reason: what it must be.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}.")
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SelectionRequest:
    """A selection as the sender gave it: offsets, lines, or both; `text` is what it says.

    Attributes:
        fields: what the sender calls the offsets.
    """

    start: int | None = None
    end: int | None = None
    unit: Unit = "utf16"
    text: str | None = None
    line_start: int | None = None
    line_end: int | None = None
    fields: tuple[str, str] = ("selection.start", "selection.end")


@dataclass(frozen=True, slots=True)
class SelectionEdit:
    """Have a passage rewritten by the model."""

    artifact_id: str
    selection: SelectionRequest
    strategy: Strategy
    instruction: str
    base_version: int | None


@dataclass(frozen=True, slots=True)
class VersionStep:
    """Go through the versions."""

    artifact_id: str
    change: Undo | Redo | Restore


@dataclass(frozen=True, slots=True)
class Put:
    """A person's own edit: the whole new text."""

    artifact_id: str
    text: str
    base_version: int | None


@dataclass(frozen=True, slots=True)
class Focus:
    """What the user is looking at, and has selected there."""

    artifact_id: str
    base_version: int | None = None
    selection: SelectionRequest | None = None


@dataclass(frozen=True, slots=True)
class Converse:
    """Talk to the model."""

    focus: Focus | None = None


Operation = SelectionEdit | VersionStep | Put
Intent = Operation | Converse
