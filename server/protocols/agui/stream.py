"""The answer of `POST /canvas/stream`: a run over SSE.

Rule 1: a stream that cannot continue ends with RUN_ERROR and the code `unavailable`: its task is still running, and the
        client rejoins it by sending the run again. A stream that is cut when the server stops ends the same way, and so
        does one whose credential has ended: its client needs another credential.
Rule 2: a run that is refused after its stream has begun (edge/sse_response.py, rule 2) is one RUN_ERROR, with the code
        `rejected` unless it may be sent again. The stream of a guest whose share has ended ends with `rejected`, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from itertools import chain
from typing import TypeAlias

from ag_ui.core import BaseEvent

from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.a2a_v1.errors import to_a2a_error
from a2a_canvas.server.protocols.agui.run_events import RunProjection, refusal, unavailable
from a2a_canvas.server.protocols.edge.availability import UnavailableError, unavailable_error
from a2a_canvas.server.protocols.edge.encoded_events import EncodedEvents, identity_of
from a2a_canvas.server.protocols.edge.shutdown import FinalEvent
from a2a_canvas.server.protocols.edge.sse_response import SseResponse, sse_event
from a2a_canvas.server.protocols.pipeline.entrance import UnauthenticatedError
from a2a_canvas.server.tasks.errors import StreamLost, TaskNotFound
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.journal.round_robin import round_robin
from a2a_canvas.server.tasks.record import Entry
from a2a_canvas.store.errors import Unavailable

LINE_END = "\n"
"""AG-UI's own client accepts no other line end."""

OpenedRun: TypeAlias = tuple[RunProjection, TaskSubscription]


def run_response(
    opened: asyncio.Future[OpenedRun],
    final_event: FinalEvent,
    on_disconnect: Callable[[], Awaitable[None]] | None,
    metrics: Metrics,
    encoded: EncodedEvents,
) -> SseResponse:
    """The SSE response for a run, which may still be opening.

    Args:
        on_disconnect: called when the client disconnects.
        metrics: measure how late entries are sent.
        encoded: where events are kept that others get, too.
    """
    return SseResponse(_events(opened, final_event, metrics, encoded), line_end=LINE_END, on_disconnect=on_disconnect)


async def _events(
    opened: asyncio.Future[OpenedRun], final_event: FinalEvent, metrics: Metrics, encoded: EncodedEvents
) -> AsyncGenerator[bytes, None]:
    stopping = "The server is stopping. Send the run again in a moment to join its task."
    final_event.text = _sse(unavailable(stopping))
    try:
        run, following = await opened
    except Exception as error:
        yield _sse(_refusal(error))
    else:
        async for event in _run(run, following, metrics, encoded):
            yield event
            del event  # a stream that waits does not hold what it has sent
    # The generator resumes after its last event has been sent.
    final_event.text = b""


async def _run(
    run: RunProjection, following: TaskSubscription, metrics: Metrics, encoded: EncodedEvents
) -> AsyncGenerator[bytes, None]:
    await round_robin().next_slice()
    try:
        for event in run.begin():
            yield _sse(event)
        while not run.ended:
            first = await anext(following)
            if ready := _encode_ready(run, first, following, encoded):
                yield ready
            metrics.record_sent(first.at)
            del first, ready
    except StreamLost:
        yield _sse(unavailable("The connection to the task was lost. Send the run again to join it."))
    except TaskNotFound:
        yield _sse(refusal("This thread is no longer shared with you."))
    except UnauthenticatedError as error:
        yield _sse(unavailable(error.message))
    except Unavailable as error:
        yield _sse(unavailable(unavailable_error(error).message))


def _encode_ready(run: RunProjection, first: Entry, following: TaskSubscription, encoded: EncodedEvents) -> bytes:
    """The events of an entry and of those that are ready, up to the end of the run."""
    ready: list[bytes] = []
    for entry in chain((first,), following.ready()):
        of_entry = (run.view, *identity_of(entry))
        for name, make in run.pieces(entry, behind=following.has_next):
            ready.append(_sse(make()) if name is None else encoded.encode((of_entry, name), make, _sse))
        if run.ended:
            break
    return b"".join(ready)


def _refusal(error: Exception) -> BaseEvent:
    known = to_a2a_error(error)
    return unavailable(known.message) if isinstance(known, UnavailableError) else refusal(known.message)


def _sse(event: BaseEvent | None) -> bytes:
    if event is None:
        return b""
    # Nulls are kept, because a patch may set a value to null. The models omit fields that are not given.
    return sse_event(event.model_dump_json(by_alias=True).encode(), line_end=LINE_END)
