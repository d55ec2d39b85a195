"""The events of a task as they are sent: projected and encoded once for all readers who see the same of it.

Rule: of an entry, all readers with the same binding, version, extensions and view of thinking get the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from a2a_canvas.server.protocols.a2a_v1.projection.projection import TaskProjection
from a2a_canvas.server.protocols.edge.encoded_events import EncodedEvents, identity_of
from a2a_canvas.server.tasks.record import Entry

EVENT_FORM: Final = "a2a_canvas.event_form"
"""The key in the state of a call's context that says in which `EventForm` its events go out; they are not encoded
without it."""


@dataclass(frozen=True, slots=True, eq=False)
class EventForm:
    """How a binding writes an event in one version of A2A; each has only one.

    Attributes:
        as_json: it takes a `JsonUpdate`, too.
    """

    write: Callable[[Any], bytes]
    as_json: bool = False


class TaskEncoder:
    """Encodes the entries of one task for one reader."""

    def __init__(self, encoded: EncodedEvents, projection: TaskProjection, form: EventForm) -> None:
        self._encoded = encoded
        self._projection = projection
        self._form = form
        self._view = (projection.view, form)

    def encode(self, entry: Entry, *, behind: bool) -> Iterator[bytes]:
        """The events of an entry (`TaskProjection.project`)."""
        of_entry = (self._view, *identity_of(entry))
        for name, make in self._projection.pieces(entry, behind=behind):
            if encoded := self._encoded.encode((of_entry, name), make, self._write):
                yield encoded

    def _write(self, event: Any) -> bytes:
        return b"" if event is None else self._form.write(event)
