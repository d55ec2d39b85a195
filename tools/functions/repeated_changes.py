"""The changes of a call that is run again: how many of them are saved, and whether the call repeats these. Pure.

Rule: a call repeats its saved changes of an artifact in order. They are not made again, but compared by digest, one for
      all that were saved together: so what is recorded does not grow with the text. A change that failed fails again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from a2a_canvas.store.changes import AppendParts, ReplaceParts
from a2a_canvas.store.models import DataPart, FilePart, Part, TextPart
from a2a_canvas.tools.tool import to_json

ChangeKey = tuple[str, str]
"""The name of a step, or an empty text outside of any, and the id of an artifact."""


class ChangesDiffer(Exception):
    """A change differs from the saved one that it should repeat."""


@dataclass(frozen=True, slots=True)
class SavedChanges:
    """The saved changes of one artifact, made in one step, or outside of any.

    Attributes:
        count: their number, with those that failed.
        digests: of the changes up to a number, since the one before it.
        failures: why a change failed, by its number.
    """

    count: int = 0
    digests: Mapping[int, str] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)

    def after(self, count: int, digest: str, failures: Mapping[str, str]) -> SavedChanges:
        """With more that were saved together."""
        failed = {int(number): reason for number, reason in failures.items()}
        return SavedChanges(count, {**self.digests, count: digest}, {**self.failures, **failed})


def with_saved(changes: Mapping[ChangeKey, SavedChanges], step: str, value: str) -> dict[ChangeKey, SavedChanges]:
    """The saved changes after one more record of the kind `changed`; `value` is that of `ToolStep`."""
    more = {(step, artifact_id): saved for artifact_id, saved in json.loads(value).items()}
    return {**changes, **{key: changes.get(key, SavedChanges()).after(*saved) for key, saved in more.items()}}


class RepeatedChanges:
    """Counts the changes of one artifact in a run: first those that are saved, then new ones."""

    def __init__(self, saved: SavedChanges) -> None:
        self.saved = saved
        self.count = 0
        self._failures: dict[str, str] = {}
        self._digest = hashlib.blake2b(digest_size=8)

    @property
    def is_complete(self) -> bool:
        """Whether all saved changes were repeated."""
        return self.count >= self.saved.count

    def add(self, content: Iterator[bytes]) -> str | None:
        """Count a change. None: it is new; otherwise why the saved one failed, an empty text if it did not.

        Raises:
            ChangesDiffer: it, or one since the last comparison, differs from the saved one.
        """
        self.count += 1
        for piece in content:
            self._digest.update(len(piece).to_bytes(8))
            self._digest.update(piece)
        if self.count > self.saved.count:
            return None
        if self.count in self.saved.digests and self.saved.digests[self.count] != self._take_digest():
            raise ChangesDiffer
        return self.saved.failures.get(self.count, "")

    def fail(self, reason: str) -> None:
        """The change that was added last has failed."""
        self._failures[str(self.count)] = reason

    def save(self) -> tuple[int, str, Mapping[str, str]]:
        """The changes since the last record, as one."""
        failures, self._failures = self._failures, {}
        saved = self.count, self._take_digest(), failures
        self.saved = self.saved.after(*saved)
        return saved

    def skip(self) -> None:
        """Count all saved changes as repeated."""
        self.count = max(self.count, self.saved.count)

    def _take_digest(self) -> str:
        digest, self._digest = self._digest.hexdigest(), hashlib.blake2b(digest_size=8)
        return digest


def content_of(change: AppendParts | ReplaceParts) -> Iterator[bytes]:
    """What tells a change of parts from another."""
    yield f"{type(change).__name__} {change.name}".encode(errors="replace")
    for part in change.parts:
        yield from _content_of_part(part)


def _content_of_part(part: Part) -> Iterator[bytes]:
    match part:
        case TextPart(text=text, media_type=media_type):
            yield f"text {media_type}".encode(errors="replace")
            yield text.encode(errors="replace")
        case FilePart(content=content, url=url, name=name, media_type=media_type):
            yield f"file {url} {name} {media_type}".encode(errors="replace")
            yield content or b""
        case DataPart(data=data):
            yield to_json(data).encode(errors="replace")
