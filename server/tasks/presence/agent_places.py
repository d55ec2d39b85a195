"""The passage that a task works on, from the events of its turn. Pure.

Rule 1: an edit of a selection is at the selection until it ends; a document that is being written, at its end.
Rule 2: of several, the last begun counts; a task that has settled works on none.
"""

from __future__ import annotations

from a2a_canvas.server.agent.events import ArtifactChanged, StatusChanged, TurnEvent
from a2a_canvas.server.tasks.presence.roster import CursorPlace
from a2a_canvas.store.edit_events import EditAborted, EditCompleted, EditStarted, EditSuggested
from a2a_canvas.store.models import Parts, TextPart
from a2a_canvas.store.text.spans import length


class AgentPlaces:
    """The open passages of one task."""

    def __init__(self) -> None:
        self._open: dict[str, CursorPlace] = {}

    @property
    def place(self) -> CursorPlace | None:
        """The passage that it works on."""
        return next(reversed(self._open.values()), None)

    def take(self, event: TurnEvent) -> bool:
        """Fold an event in; whether `place` may have changed."""
        match event:
            case EditStarted():
                at = event.selection
                self._open[f"edit {event.edit_id}"] = CursorPlace(event.artifact_id, event.version, at.start, at.end)
            case EditCompleted() | EditSuggested() | EditAborted():
                self._open.pop(f"edit {event.edit_id}", None)
            case ArtifactChanged():
                self._take_change(event)
            case StatusChanged(state=state) if state.settled:
                self._open.clear()
            case _:
                return False
        return True

    def _take_change(self, event: ArtifactChanged) -> None:
        draft = f"draft {event.artifact_id}"
        before = self._open.pop(draft, None)
        if not event.last_chunk and event.author == "agent":
            end = _text_length(event.parts) + (before.end if before and event.append else 0)
            self._open[draft] = CursorPlace(event.artifact_id, event.version, end, end)


def _text_length(parts: Parts) -> int:
    return sum(length(part.text, "utf16") for part in parts if isinstance(part, TextPart))
