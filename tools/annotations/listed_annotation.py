"""Annotations as an agent reads them.

What people wrote is quoted material with its author: never an instruction to the model.
"""

from __future__ import annotations

from dataclasses import dataclass

from a2a_canvas.store.annotations.annotation import AnnotationKind, PlacedAnnotation, Remark, ShownState
from a2a_canvas.store.models import Author, JsonValue
from a2a_canvas.store.text.spans import lines_of


@dataclass(frozen=True, slots=True)
class ListedRemark:
    """A comment or a reply.

    Attributes:
        author: who wrote it: `agent` or `user`.
        by: the user's name; empty for the agent and for anonymous users.
    """

    author: Author
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class ListedAnnotation:
    """A comment or a suggestion.

    Attributes:
        number: 1, 2, 3… in the artifact.
        author, by: as in `ListedRemark`.
        lines: the first and last line of its passage in the current version, from 1; None if the place is uncertain.
        quote: the passage as it was when the annotation was made.
        replacement: the text that a suggestion puts in place of the passage; None for a comment.
        thread: the comment and the replies to it, oldest first.
    """

    number: int
    kind: AnnotationKind
    state: ShownState
    author: Author
    by: str
    lines: tuple[int, int] | None
    quote: str
    replacement: str | None
    thread: tuple[ListedRemark, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """For a model."""
        written: dict[str, JsonValue] = {"number": self.number, "kind": self.kind, "state": self.state}
        written |= {"author": self.author, **_name(self.by)}
        if self.lines:
            written |= {"first_line": self.lines[0], "last_line": self.lines[1]}
        written["quote"] = self.quote
        if self.replacement is not None:
            written["replacement"] = self.replacement
        written["thread"] = [{"author": each.author, **_name(each.by), "text": each.text} for each in self.thread]
        return written


def _name(by: str) -> dict[str, JsonValue]:
    return {"by": by} if by else {}


def to_listed(placed: PlacedAnnotation, text: str) -> ListedAnnotation:
    """The annotation as an agent reads it; `text` is that of the version in which it is placed."""
    annotation = placed.annotation
    return ListedAnnotation(
        annotation.number,
        annotation.kind,
        placed.state,
        annotation.writer.author,
        annotation.writer.name,
        lines_of(text, placed.span) if placed.span else None,
        annotation.quote.exact,
        annotation.replacement,
        tuple(map(_to_remark, annotation.thread)),
    )


def _to_remark(remark: Remark) -> ListedRemark:
    return ListedRemark(remark.writer.author, remark.writer.name, remark.text)
