"""The events of an edit while it is being written (docs/canvas.md), as a closed union.

An edit is announced (`EditStarted`), grows (`EditChunk`) and ends in exactly one of three ways: `EditCompleted`, which
the change of the artifact follows at once; `EditSuggested`, which the suggestion precedes at once; or `EditAborted`.
The latter two leave the artifact unchanged.

Invariant: `old[:start] + updated_content + old[end:]` is the new text, whatever the strategy. Under `replace` the
chunks, joined, are `updated_content`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from a2a_canvas.store.text.spans import Unit

Strategy = Literal["replace", "insert_before", "insert_after"]
EditMode = Literal["apply", "suggest"]
"""Whether an edit becomes a version or a suggestion."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A range of an artifact's text, `end` exclusive, counted in `unit`s from 0."""

    start: int
    end: int
    unit: Unit = "utf16"


@dataclass(frozen=True, slots=True)
class _EditEventBase:
    edit_id: str
    """Unique in the task."""
    artifact_id: str
    selection: Selection


@dataclass(frozen=True, slots=True)
class EditStarted(_EditEventBase):
    """An edit begins.

    Attributes:
        version: the version whose text `selection` is a range of.
    """

    strategy: Strategy
    version: int
    mode: EditMode = "apply"


@dataclass(frozen=True, slots=True)
class EditChunk(_EditEventBase):
    """The next piece of the new text. Under `insert_after` the text goes to the selection's end, else to its start."""

    chunk: str


@dataclass(frozen=True, slots=True)
class EditCompleted(_EditEventBase):
    """The edit is complete.

    Attributes:
        selection: where it was applied, which differs from its start if others changed the artifact in between.
        version: the version whose text `selection` is a range of: the parent of the new version.
        updated_content: the whole new text of the selected range.
        written: the range of the new text that the chunks occupy.
    """

    updated_content: str
    written: Selection
    strategy: Strategy
    version: int


@dataclass(frozen=True, slots=True)
class EditSuggested(_EditEventBase):
    """The edit is complete, and has become a suggestion; the artifact is unchanged."""

    annotation_id: str


@dataclass(frozen=True, slots=True)
class EditAborted(_EditEventBase):
    """The edit was abandoned; the artifact is unchanged."""


EditEvent = EditStarted | EditChunk | EditCompleted | EditSuggested | EditAborted
