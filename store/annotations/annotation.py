"""A comment or a suggestion on a passage of an artifact, as a frozen value. Pure.

Rule 1: an annotation names a range of one version, and quotes it. Its place in a later version is computed when it is
        read (`annotation_places.py`), so a change of an artifact writes no annotation.
Rule 2: the stored state is what people decided. What follows from the versions is computed, too: `accepted` counts
        while the version that it made is the current one or an ancestor of it, otherwise the suggestion is open again;
        an open annotation whose passage is gone is `stale`.
Rule 3: the selectors are those of the W3C Web Annotation Data Model: a position, and a quote with what surrounds it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from a2a_canvas.store.models import Author
from a2a_canvas.store.text.spans import QUOTE_CONTEXT, Span

AnnotationKind = Literal["comment", "suggestion"]
AnnotationState = Literal["open", "accepted", "rejected", "resolved"]
ShownState = AnnotationState | Literal["stale"]

MAX_OPEN = 10_000
"""Open annotations of an artifact."""
MAX_REMARK_BYTES = 20_000
"""UTF-8 bytes of a comment or a reply."""
MAX_THREAD_BYTES = 100_000
"""UTF-8 bytes of all remarks of a thread: each change of an annotation writes it whole."""
MAX_REMARKS = 200
"""Remarks of a thread."""
MAX_ACCEPTED = 1_000
"""Suggestions that are accepted at once."""


@dataclass(frozen=True, slots=True)
class Quote:
    """The text of a passage, with up to `QUOTE_CONTEXT` characters before and after it."""

    exact: str
    prefix: str = ""
    suffix: str = ""

    @staticmethod
    def from_text(text: str, span: Span) -> Quote:
        before, after = text[max(0, span.start - QUOTE_CONTEXT) : span.start], text[span.end : span.end + QUOTE_CONTEXT]
        return Quote(span.extract(text), before, after)


@dataclass(frozen=True, slots=True)
class Writer:
    """Who wrote something.

    Attributes:
        name: as others see it; empty for the agent and for anonymous users. All users of a link are `guest`.
        account: who it is: the sender of the message. It is never shown.
    """

    author: Author
    name: str = ""
    account: str = ""

    @property
    def shown_name(self) -> str:
        """`agent`, or the name of the user."""
        return "agent" if self.author == "agent" else self.name

    def is_called(self, name: str) -> bool:
        """Whether annotations by this author are meant: `agent` and `guest` are no names of users."""
        is_guest = self.author == "user" and self.name != self.account
        if name in ("agent", "guest"):
            return self.author == "agent" if name == "agent" else is_guest
        return self.author == "user" and not is_guest and self.name == name


AGENT = Writer("agent")


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment, or a reply to one.

    Attributes:
        task_id: the task that wrote it.
    """

    writer: Writer
    at: datetime
    text: str
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Who accepted, rejected or resolved an annotation, and when.

    Attributes:
        version: the version that an acceptance made; 0 for other decisions.
    """

    writer: Writer
    at: datetime
    version: int = 0


@dataclass(frozen=True, slots=True)
class Annotation:
    """A comment or a suggestion.

    Attributes:
        number: 1, 2, 3… in the artifact, in the order in which they were made.
        version, span: the passage: a range of that version's text.
        task_id: the task that made it.
        thread: the comment and the replies to it, oldest first; a suggestion may have none.
        replacement: the text that a suggestion puts in place of the passage; None for a comment.
    """

    annotation_id: str
    artifact_id: str
    number: int
    version: int
    span: Span
    quote: Quote
    writer: Writer
    at: datetime
    task_id: str
    thread: tuple[Remark, ...] = ()
    replacement: str | None = None
    state: AnnotationState = "open"
    decision: Decision | None = None

    @property
    def kind(self) -> AnnotationKind:
        return "comment" if self.replacement is None else "suggestion"

    @property
    def accepted_into(self) -> int | None:
        """The version that its acceptance made; None if it was not accepted."""
        return self.decision.version if self.state == "accepted" and self.decision else None


@dataclass(frozen=True, slots=True)
class AnnotationsChanged:
    """Annotations of an artifact were made or changed: each as it is now.

    Attributes:
        removed: the ids of those that were withdrawn.
    """

    artifact_id: str
    changed: tuple[Annotation, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedAnnotation:
    """An annotation as a reader of one version sees it.

    Attributes:
        span: its place in that version; None if it is not certain.
        state: by rule 2.
    """

    annotation: Annotation
    span: Span | None
    state: ShownState


def shown_state(annotation: Annotation, line: Collection[int], span: Span | None) -> ShownState:
    """The state by rule 2.

    Args:
        line: the version that is read, and its ancestors.
        span: the place of the passage in it.
    """
    state = annotation.state
    if state == "accepted" and not (annotation.decision and annotation.decision.version in line):
        state = "open"
    return "stale" if state == "open" and span is None else state
