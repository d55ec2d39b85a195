"""The forms of the stream of an artifact's changes: offsets, cursors and messages. Pure.

Rule 1: an offset is `{incarnation}-{position}`, both padded with zeros, so that offsets of one stream sort as texts.
Rule 2: a message is one change. Its `type` says what a reader does with the artifact that it has: `replace` it by the
        whole, `append` parts, `edit` its text, `rollback` to an earlier content, which is sent whole, or nothing
        (`close`). `closed` says that `version` is complete.
Rule 3: time is divided into ticks of `TICK_SECONDS`, counted from 1970; a cursor is the number of a tick. Long polls
        see a context as it was when the first of them asked at the tick. So readers with different offsets get the
        same next offset and the same cursor, and from there on ask for the same URL.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, assert_never

from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.protocols.a2a_v1.projection.parts import to_artifact, to_part
from a2a_canvas.server.protocols.artifacts.refusals import invalid_value
from a2a_canvas.server.tasks.journal.artifact_readings import After, Place
from a2a_canvas.server.tasks.journal.context_log import ContextArtifact, ContextEntry
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Content, TextPart
from a2a_canvas.store.text.wording import format_value

BEGINNING: Final = "-1"
NOW: Final = "now"
_OFFSET = re.compile("([0-9]{19})-([0-9]{18})", re.ASCII)
_CURSOR = re.compile("[0-9]{1,18}", re.ASCII)

Live = Literal["", "long-poll", "sse"]

TICK_SECONDS: Final = 0.5
POLL_TICKS: Final = 40
"""A long poll without a change ends at a multiple of so many ticks, 10 to 30 seconds after it began."""


def parse_offset(text: str) -> After:
    """The place that an offset names.

    Raises:
        ResourceError: it is no offset.
    """
    if text == BEGINNING:
        return "beginning"
    if text == NOW:
        return "now"
    if found := _OFFSET.fullmatch(text):
        return Place(int(found[1]), int(found[2]))
    reason = f"is {format_value(text)} and must be -1, now, or the Stream-Next-Offset of an earlier response"
    raise invalid_value("offset", reason)


def format_offset(after: After) -> str:
    """The offset of a place."""
    match after:
        case "beginning":
            return BEGINNING
        case "now":
            return NOW
        case Place(incarnation, position):
            return f"{incarnation:019}-{position:018}"
        case _:
            assert_never(after)


def parse_live(text: str) -> Live:
    """Raises `ResourceError` if it is no mode."""
    match text:
        case "" | "long-poll" | "sse":
            return text
        case _:
            raise invalid_value("live", f"is {format_value(text)} and must be long-poll or sse")


def parse_cursor(text: str) -> int:
    """The cursor that a reader returns; -1 for none. Raises `ResourceError` if it is no cursor."""
    if text and not _CURSOR.fullmatch(text):
        raise invalid_value("cursor", f"is {format_value(text)} and must be a Stream-Cursor: 1 to 18 digits")
    return int(text or -1)


def tick_at(now: float) -> int:
    """The tick at a time, in seconds since 1970."""
    return int(now / TICK_SECONDS)


def next_cursor(tick: int, returned: int) -> int:
    """The cursor of a response: greater than the one that the reader returned."""
    return max(tick, returned + 1)


def seconds_to_tick(now: float, tick: int) -> float:
    """How long it takes until a tick."""
    return max(0.0, tick * TICK_SECONDS - now)


def last_tick_of_poll(now: float) -> int:
    """The tick at which a long poll without a change ends."""
    return (int(now / TICK_SECONDS / POLL_TICKS + 0.5) + 1) * POLL_TICKS


class TickEnds:
    """Up to which position long polls see each context at a tick: as it was when the first of them asked (rule 3)."""

    def __init__(self) -> None:
        self._ends: dict[tuple[ContextKey, int], tuple[int, int]] = {}  # the oldest tick first

    def end(self, tick: int, context_id: ContextKey, newest: Place) -> tuple[int, int]:
        """The position at a tick of the context whose newest change is at `newest`, after that tick.

        If others have asked at the next tick meanwhile, it is that tick and its position. A tick after the next one is
        from before the clock was set back: until it came again, nobody would see a change.
        """
        key = context_id, newest.incarnation
        known, end = self._ends.pop(key, (-1, 0))
        if not tick <= known <= tick + 1:
            known, end = tick, newest.position
        self._ends[key] = known, end
        while not tick - 1 <= next(iter(self._ends.values()))[0] <= tick + 1:
            del self._ends[next(iter(self._ends))]
        return known, end


def whole_json(artifact: ContextArtifact) -> dict[str, Any]:
    """The message for a reader that has nothing."""
    content, version, author = artifact.artifact.content, artifact.artifact.version, artifact.artifact.author
    common = {"taskId": artifact.task_id, "version": version, "author": author, "closed": artifact.closed}
    return {"type": "replace", "artifact": _artifact_json(artifact.artifact.artifact_id, content), **common}


def change_json(change: ContextEntry) -> dict[str, Any]:
    """The message of a change of the artifact."""
    event = change.entry.event
    assert isinstance(event, ArtifactChanged)
    common = {"taskId": change.task_id, "version": event.version, "author": event.author, "closed": event.last_chunk}
    if event.append and event.last_chunk and all(isinstance(part, TextPart) and not part.text for part in event.parts):
        return {"type": "close", **common}
    if event.append:
        return {"type": "append", "parts": [MessageToDict(to_part(part)) for part in event.parts], **common}
    if event.splice:
        return {
            "type": "edit",
            "start": event.splice.start,
            "end": event.splice.end,
            "text": event.splice.text,
            **common,
        }
    content = Content(event.name, event.description, event.parts)
    kind = "rollback" if event.rolled_back else "replace"
    return {"type": kind, "artifact": _artifact_json(event.artifact_id, content), **common}


def _artifact_json(artifact_id: str, content: Content) -> dict[str, Any]:
    return MessageToDict(to_artifact(artifact_id, content))
