"""What can go wrong with an artifact. Errors carry data; only the edge turns them into codes.

StoreError
├── ArtifactNotFound      there is no such artifact in the context
├── ArtifactBusy          another task has a draft of it open
├── InvalidChange
│   ├── EmptyUpdate       an update without parts
│   └── MediaTypeConflict two texts of different media types cannot be one
└── LimitReached
    ├── ArtifactTooLarge  more bytes than an artifact may have
    └── TooManyParts      more parts than an artifact may have
"""

from __future__ import annotations


class StoreError(Exception):
    """Root of the tree. `str()` of each one says what to do next."""


class ArtifactNotFound(StoreError):
    def __init__(self, artifact_id: str) -> None:
        super().__init__(f"There is no artifact {artifact_id!r} in this context. List the artifacts to see their ids.")
        self.artifact_id = artifact_id


class ArtifactBusy(StoreError):
    def __init__(self, artifact_id: str, task_id: str) -> None:
        super().__init__(f"Artifact {artifact_id!r} is being written by another task. Try again when it is done.")
        self.artifact_id = artifact_id
        self.task_id = task_id


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


class LimitReached(StoreError):
    """A bound set by the operator was reached."""


class ArtifactTooLarge(LimitReached):
    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"The artifact would have {size} bytes; {limit} are allowed. Split it into several artifacts.")
        self.size = size
        self.limit = limit


class TooManyParts(LimitReached):
    def __init__(self, count: int, limit: int) -> None:
        super().__init__(f"The artifact would have {count} parts; {limit} are allowed. Use several artifacts.")
        self.count = count
        self.limit = limit
