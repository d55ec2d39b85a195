"""The changes of one artifact, for readers who come back: each names the place up to which it has read.

Rule 1: a place is a position in the context, and the context's incarnation. From a place the changes continue exactly,
        or are refused (`ChangesGone`): then the reader begins again with the whole artifact.
Rule 2: a reading has only what is committed, so that no crash takes back what a cache has stored.
Rule 3: a reading is bounded. If more has been committed, it is not complete, and its place is where the next begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.tasks.journal.context_log import ContextArtifact, ContextEntry, ContextSubscription


class Place(NamedTuple):
    """After which change of a context a reader has read."""

    incarnation: int
    position: int


After = Place | Literal["beginning", "now"]
"""What a reader has: everything up to a place, nothing, or all that there is now."""


@dataclass(frozen=True, slots=True)
class ArtifactReading:
    """What a reader gets at once.

    Attributes:
        whole: the artifact, for a reader that has nothing; None for others.
        changes: those of the artifact after the reader's place.
        place: the reader's next one.
        complete: whether nothing has been committed after `place`.
        following: if complete, the changes of the context after `place`, of all artifacts.
    """

    whole: ContextArtifact | None
    changes: tuple[ContextEntry, ...]
    place: Place
    complete: bool
    following: ContextSubscription


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """The end of a task. `position`: of its last change in the context; 0 if that is not known, or there is none."""

    position: int


def changes_artifact(entry: ContextEntry, artifact_id: str) -> bool:
    """Whether a change of the context is one of this artifact."""
    event = entry.entry.event
    return isinstance(event, ArtifactChanged) and event.artifact_id == artifact_id
