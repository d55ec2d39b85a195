"""The event stream of a context: `GET /artifacts/{context}/events`, every change of any of its artifacts.

Rule 1: each event's data is an A2A 1.0 stream response `{"artifactUpdate": …}`; its `metadata` has, under our
        extension's URI, the artifact version that it is part of, and its author. Its `id` is
        `{incarnation}-{position}`: the change's position in the context, and a number that distinguishes the context
        from a removed one with the same id.
Rule 2: a stream begins with the artifacts that changed after `Last-Event-ID`, whole, in the order in which they last
        changed; without that header it begins with all of them. Then it has every change as it happens, so that a
        client that folds it (replace, or extend the parts) has what the context has.
Rule 3: an id that cannot be parsed, is from a removed context, or is newer than the context, is ignored.
Rule 4: in between, it has the activity of the context as soon as it is known and whenever it changes: events named
        `activity` without an `id`, which a client that listens to messages does not get. They delay no change.
Rule 5: beside it, it has who is present, in events named `presence` without an `id`: at most one in a second.
Rule 6: a change of annotations is an event named `annotations`, with an `id`. A stream does not repeat those that its
        client has missed: it reads the annotations when a stream begins.
Rule 7: it does not end by itself: `:` comments keep it alive. It ends when the server stops (edge/shutdown.py), when
        the journal can no longer be read, for example because the context was removed, and when its credential ends.
        The client reconnects with the last id that it has.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict
from pydantic_core import to_json

from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.a2a_v1.projection.annotation_json import changes_json
from a2a_canvas.server.protocols.a2a_v1.projection.parts import to_artifact, to_update
from a2a_canvas.server.protocols.artifacts.presence_forms import roster_json
from a2a_canvas.server.protocols.edge.encoded_events import EncodedEvents
from a2a_canvas.server.protocols.edge.sse_response import SseResponse, sse_event
from a2a_canvas.server.protocols.edge.wire_times import timestamp
from a2a_canvas.server.protocols.pipeline.entrance import UnauthenticatedError
from a2a_canvas.server.tasks.errors import StreamLost
from a2a_canvas.server.tasks.journal.activity import Activity
from a2a_canvas.server.tasks.journal.context_log import (
    ContextArtifact,
    ContextEntry,
    ContextSnapshot,
    ContextSubscription,
)
from a2a_canvas.server.tasks.journal.round_robin import round_robin
from a2a_canvas.server.tasks.presence.roster import Roster
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.annotations.annotation import AnnotationsChanged
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Author

T = TypeVar("T")


def event_stream(
    context_id: str,
    context_key: ContextKey,
    opening: asyncio.Future[ContextSubscription],
    activity: AsyncGenerator[Activity, None],
    presence: AsyncGenerator[Roster, None],
    last_event_id: str | None,
    metrics: Metrics,
    encoded: EncodedEvents,
) -> SseResponse:
    """The response to a client that has everything up to `last_event_id`.

    Args:
        context_id, context_key: the id as the client has it, and the key.
        opening: the subscription, which may still be opening, or be refused.
        activity, presence: of the context; they are not started before the subscription is open.
        metrics: measure how late changes are sent.
        encoded: where changes are kept that others get, too.
    """
    events = _events(context_id, context_key, opening, last_event_id, metrics, encoded)
    beside = (
        _beside(opening, activity, "activity", activity_json),
        _beside(opening, presence, "presence", roster_json),
    )
    return SseResponse(events, beside=beside)


async def _beside(
    opening: asyncio.Future[ContextSubscription],
    values: AsyncGenerator[T, None],
    name: str,
    form: Callable[[T], dict[str, Any]],
) -> AsyncGenerator[bytes, None]:
    await asyncio.wait((opening,))
    opened = not opening.cancelled() and opening.exception() is None
    del opening
    if opened:
        async with aclosing(values):
            async for value in values:
                yield sse_event(to_json(form(value)), name=name)


async def _events(
    context_id: str,
    context_key: ContextKey,
    opening: asyncio.Future[ContextSubscription],
    last_event_id: str | None,
    metrics: Metrics,
    encoded: EncodedEvents,
) -> AsyncGenerator[bytes, None]:
    try:
        following = await opening
    except Exception:
        return  # the client reconnects and gets the reason
    await round_robin().next_slice()
    begin, changes = _begin(following.snapshot, last_event_id), aiter(following)
    del following, opening  # a stream that waits must not hold what it has sent
    for event_id, artifact in begin:
        yield _sse(event_id, snapshot_json(context_id, artifact))
        del artifact
    with suppress(StreamLost, UnauthenticatedError, Unavailable):
        async for change in changes:
            at = change.entry.at
            together = chain((change,), changes.ready())
            yield b"".join(_encode(context_id, context_key, each, encoded) for each in together)
            del change, together
            metrics.record_sent(at)


def activity_json(activity: Activity) -> dict[str, Any]:
    """The watchers and tasks of a context; `tasks` and `updatedAt` change with every task that begins or settles."""
    return {
        "watchers": activity.watchers,
        "working": activity.working,
        "tasks": activity.tasks,
        "updatedAt": activity.updated_at and timestamp(activity.updated_at),
    }


def _begin(snapshot: ContextSnapshot, last_event_id: str | None) -> Iterator[tuple[str, ContextArtifact]]:
    return ((_id(snapshot.incarnation, each.position), each) for each in changed_since(snapshot, last_event_id))


def changed_since(snapshot: ContextSnapshot, last_event_id: str | None) -> Iterator[ContextArtifact]:
    """The artifacts that changed after `last_event_id` (rules 2 and 3)."""
    parsed = re.fullmatch("([0-9]{1,19})-([0-9]{1,18})", last_event_id or "")
    incarnation, seen = (int(parsed[1]), int(parsed[2])) if parsed else (None, 0)
    since = seen if incarnation == snapshot.incarnation and seen <= snapshot.position else 0
    return (artifact for artifact in snapshot.artifacts.values() if artifact.position > since)


def snapshot_json(context_id: str, changed: ContextArtifact) -> dict[str, Any]:
    """The whole artifact, as an event that replaces it."""
    artifact = changed.artifact
    update = pb.TaskArtifactUpdateEvent(task_id=changed.task_id, context_id=context_id, last_chunk=changed.closed)
    update.artifact.CopyFrom(to_artifact(artifact.artifact_id, artifact.content))
    return _json(update, artifact.version, artifact.author)


def _encode(context_id: str, context_key: ContextKey, change: ContextEntry, encoded: EncodedEvents) -> bytes:
    # Contexts of several owners may have the same id.
    key = ("context", context_key, context_id, change.incarnation, change.position)
    return encoded.encode(key, partial(_change, context_id, change), bytes)


def _change(context_id: str, change: ContextEntry) -> bytes:
    event_id, event = _id(change.incarnation, change.position), change.entry.event
    match event:
        case ArtifactChanged():
            return _sse(event_id, change_json(event, change.task_id, context_id))
        case AnnotationsChanged():
            data = {"taskId": change.task_id, **changes_json(event)}
            return sse_event(to_json(data), event_id=event_id, name="annotations")
        case _:
            raise TypeError(f"{type(event).__name__} is no change of a context")


def change_json(event: ArtifactChanged, task_id: str, context_id: str) -> dict[str, Any]:
    """A change: the new parts, or the whole artifact."""
    return _json(to_update(event, task_id, context_id), event.version, event.author)


def _json(update: pb.TaskArtifactUpdateEvent, version: int, author: Author) -> dict[str, Any]:
    # Not as protobuf metadata, where a number is a float.
    metadata = {CANVAS: {"artifactVersion": version, "author": author}}
    return {"artifactUpdate": {**MessageToDict(update), "metadata": metadata}}


def _id(incarnation: int | None, position: int) -> str:
    return f"{incarnation}-{position}"


def _sse(event_id: str, data: dict[str, Any]) -> bytes:
    return sse_event(to_json(data), event_id=event_id)
