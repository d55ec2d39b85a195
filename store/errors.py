"""The errors of the store. They carry data; only the protocols turn them into codes.

StoreError
├── ArtifactNotFound      there is no such artifact in the context
├── ArtifactUnreadable    the stored artifact cannot be decoded
├── VersionNotFound       the artifact has no version of that number
│   └── VersionPruned     it had one, but its content was removed
├── ArtifactBusy          another task has a draft of it open
├── VersionConflict       the change was made for a version that is not current
├── MergeConflict         two changes to a version affect the same place
├── PassageLost           the passage of an edit cannot be found in the current version
├── AnnotationNotFound    the artifact has no such annotation
├── AnnotationClosed      it has been accepted, rejected or resolved
├── AnnotationStale       its passage is gone
├── NotItsAuthor          only its author, and the owner of the context, may withdraw it
├── WrongAnnotationKind   the step is one for comments, or for suggestions
├── RemarkTooLong         a comment of more bytes than one may have
├── ThreadFull            a thread of more remarks, or more bytes, than one may have
├── TooManyAnnotations    the artifact has as many open annotations as it may have
├── InvalidChange
│   ├── EmptyUpdate       an update without parts
│   ├── MediaTypeConflict texts of two media types cannot be joined
│   ├── OutsideText       a range outside the text
│   ├── TooManyParts      more parts than an artifact may have
│   ├── NothingToUndo     the current version is the first of its line
│   └── NothingToRedo     the current version is the last of its line
└── LimitReached
    └── ArtifactTooLarge  more bytes than an artifact may have

Unavailable               the database cannot be reached, or cannot write: the request itself is fine
"""

from __future__ import annotations

from collections.abc import Sequence

from a2a_canvas.store.merge import Conflict
from a2a_canvas.store.text.spans import Span, format_lines


class StoreError(Exception):
    """Root of the tree. `str()` of an error says what to do next."""


class ArtifactNotFound(StoreError):
    def __init__(self, artifact_id: str) -> None:
        super().__init__(f"There is no artifact {artifact_id!r} in this context. List the artifacts to see their ids.")
        self.artifact_id = artifact_id


class ArtifactUnreadable(StoreError):
    def __init__(self, artifact_id: str) -> None:
        super().__init__(
            f"The stored data of artifact {artifact_id!r} cannot be read. Nothing was changed; other artifacts are not "
            "affected. Tell the operator of this server; its log has the details."
        )
        self.artifact_id = artifact_id


class VersionNotFound(StoreError):
    def __init__(self, artifact_id: str, number: int, count: int) -> None:
        has = f"has the versions 1 to {count}" if count > 1 else "has version 1" if count else "has no versions yet"
        super().__init__(f"Artifact {artifact_id!r} has no version {number}; it {has}.")
        self.artifact_id = artifact_id
        self.number = number
        self.count = count


class VersionPruned(VersionNotFound):
    def __init__(self, artifact_id: str, number: int, count: int) -> None:
        super().__init__(artifact_id, number, count)
        self.args = (
            f"Version {number} of artifact {artifact_id!r} is no longer kept: it was removed because of its age. "
            "Use a newer version.",
        )


class ArtifactBusy(StoreError):
    def __init__(self, artifact_id: str, task_id: str) -> None:
        super().__init__(f"Artifact {artifact_id!r} is being written by another task. Try again when it is done.")
        self.artifact_id = artifact_id
        self.task_id = task_id


class VersionConflict(StoreError):
    def __init__(self, artifact_id: str, base: int, current: int) -> None:
        super().__init__(
            f"Artifact {artifact_id!r} has moved on: its current version is {current}, and the change was made for "
            f"version {base}. Read it again."
        )
        self.artifact_id = artifact_id
        self.base = base
        self.current = current


class MergeConflict(StoreError):
    """`text` is that of version `base`; `places` are those that both version `current` and the rejected text change."""

    def __init__(self, artifact_id: str, base: int, current: int, text: str, places: Sequence[Conflict]) -> None:
        first = places[0]
        line = format_lines(text, Span(first.start, first.start + len(first.base)))
        where = f"place, {line}" if len(places) == 1 else f"{len(places)} places, the first in {line}"
        super().__init__(
            f"Version {current} of artifact {artifact_id!r} and your text change the same {where} of version {base}. "
            f"Nothing was saved. Take over what you want of version {current}, and put the result on top of it."
        )
        self.artifact_id = artifact_id
        self.base = base
        self.current = current
        self.text = text
        self.places = places


class PassageLost(StoreError):
    """`base`: the version in which the passage was selected; None if unknown."""

    def __init__(self, artifact_id: str, base: int | None, current: int) -> None:
        moved_on = f"it has changed since version {base} and is now at version {current}"
        super().__init__(
            f"The selected passage cannot be found again in artifact {artifact_id!r}: "
            f"{moved_on if base else f'it is now at version {current}'}. "
            "Nothing was changed. Read it again and select the passage again."
        )
        self.artifact_id = artifact_id
        self.base = base
        self.current = current


class AnnotationNotFound(StoreError):
    def __init__(self, artifact_id: str, annotation_id: str) -> None:
        super().__init__(
            f"Artifact {artifact_id!r} has no annotation {annotation_id!r}. List its annotations to see their ids."
        )
        self.artifact_id = artifact_id
        self.annotation_id = annotation_id


class AnnotationClosed(StoreError):
    """`state`: `accepted`, `rejected` or `resolved`."""

    def __init__(self, annotation_id: str, state: str) -> None:
        super().__init__(f"Annotation {annotation_id!r} is {state} already. Nothing was changed.")
        self.annotation_id = annotation_id
        self.state = state


class AnnotationStale(StoreError):
    def __init__(self, annotation_id: str) -> None:
        super().__init__(
            f"The passage of annotation {annotation_id!r} is no longer in the text, so it cannot be accepted. "
            "Nothing was changed. Reject it, or make a new suggestion."
        )
        self.annotation_id = annotation_id


class NotItsAuthor(StoreError):
    def __init__(self, annotation_id: str) -> None:
        super().__init__(
            f"Annotation {annotation_id!r} is someone else's. Only its author and the owner of the conversation can "
            "withdraw it."
        )
        self.annotation_id = annotation_id


class WrongAnnotationKind(StoreError):
    """`kind`: what it is, `comment` or `suggestion`. `advice`: what to do with it."""

    def __init__(self, annotation_id: str, kind: str, advice: str) -> None:
        super().__init__(f"Annotation {annotation_id!r} is a {kind}. {advice}")
        self.annotation_id = annotation_id
        self.kind = kind


class RemarkTooLong(StoreError):
    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"The comment has {size} bytes; {limit} are allowed. Shorten it.")
        self.size = size
        self.limit = limit


class ThreadFull(StoreError):
    """`remarks`, `size`: the limits."""

    def __init__(self, remarks: int, size: int) -> None:
        super().__init__(f"A thread may have {remarks} remarks and {size} bytes. Nothing was changed. Start a new one.")
        self.remarks = remarks
        self.size = size


class TooManyAnnotations(StoreError):
    def __init__(self, artifact_id: str, limit: int) -> None:
        super().__init__(
            f"Artifact {artifact_id!r} has {limit} open comments and suggestions, which is the limit. "
            "Accept, reject or resolve some of them."
        )
        self.artifact_id = artifact_id
        self.limit = limit


class InvalidChange(StoreError):
    """The change contradicts the part rules."""


class EmptyUpdate(InvalidChange):
    def __init__(self) -> None:
        super().__init__("The update has no parts, so it would change nothing. Give at least one part.")


class MediaTypeConflict(InvalidChange):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(
            f"Text of type {first!r} and text of type {second!r} cannot be joined into one text part. "
            "Use one media type for all text of an artifact, or two artifacts."
        )
        self.first = first
        self.second = second


class OutsideText(InvalidChange):
    def __init__(self, start: int, end: int, length: int) -> None:
        super().__init__(f"The range {start} to {end} is not one of the text, which is 0 to {length}.")
        self.start = start
        self.end = end
        self.length = length


class NothingToUndo(InvalidChange):
    def __init__(self, artifact_id: str, current: int) -> None:
        super().__init__(f"There is nothing to undo: version {current} of artifact {artifact_id!r} is the first.")
        self.artifact_id = artifact_id
        self.current = current


class NothingToRedo(InvalidChange):
    def __init__(self, artifact_id: str, current: int) -> None:
        super().__init__(f"There is nothing to redo: version {current} of artifact {artifact_id!r} is the last.")
        self.artifact_id = artifact_id
        self.current = current


class PeopleDecide(InvalidChange):
    def __init__(self, artifact_id: str) -> None:
        super().__init__(
            f"In this conversation agents suggest and people decide, so only people undo changes of {artifact_id!r}. "
            "To suggest what an older version says, restore it by its number."
        )
        self.artifact_id = artifact_id


class TooManyParts(InvalidChange):
    def __init__(self, count: int, limit: int) -> None:
        super().__init__(
            f"The artifact would have {count} parts; {limit} are allowed. Put a collection inside one data part, or "
            "use several artifacts."
        )
        self.count = count
        self.limit = limit


class LimitReached(StoreError):
    """A limit set by the operator was reached."""


class ArtifactTooLarge(LimitReached):
    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"The artifact would have {size} bytes; {limit} are allowed. Split it into several artifacts.")
        self.size = size
        self.limit = limit


class Unavailable(Exception):
    """The database cannot be reached, or cannot write. Nothing was changed; another attempt may succeed.

    Args:
        reason: for an operator.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"The database cannot be used just now: {reason}. Try again in a moment.")
        self.reason = reason
