"""A run of AG-UI on its way to one client, over SSE.

Rule 1: a stream that cannot be gone on with ends with RUN_ERROR and the code `unavailable`: its task goes on, and the
        client joins it when it sends the run again. So does one that the server's stop cuts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from ag_ui.core import BaseEvent
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response
from starlette.types import Message

from a2a_canvas.server.protocols.agui.run_events import RunProjection, lost
from a2a_canvas.server.protocols.edge.shutdown import FinalEvent
from a2a_canvas.server.protocols.edge.unavailable import unavailable_error
from a2a_canvas.server.tasks.errors import StreamLost
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.store.errors import Unavailable

SEPARATOR = "\n"
"""AG-UI's own client knows no other end of a line."""

ELSEWHERE = "The connection to the task was lost. Send the run again to join it."
STOPPING = "The server is stopping. Send the run again in a moment to join its task."


def run_stream(
    run: RunProjection,
    following: TaskSubscription,
    final_event: FinalEvent,
    left: Callable[[Message], Awaitable[None]] | None,
    grace: float,
) -> Response:
    """The answer to whoever has asked for `run`.

    Args:
        left: called when the client goes away.
        grace: seconds that the server has to stop.
    """
    return EventSourceResponse(
        _events(run, following, final_event),
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        sep=SEPARATOR,
        client_close_handler_callable=left,
        shutdown_grace_period=grace,
    )


async def _events(
    run: RunProjection, following: TaskSubscription, final_event: FinalEvent
) -> AsyncIterator[ServerSentEvent]:
    final_event.text = _sse(lost(STOPPING)).encode()
    try:
        for event in run.begin():
            yield _sse(event)
        if not run.over:
            async for entry in following:
                for event in run.project(entry, behind=following.has_next):
                    yield _sse(event)
                if run.over:
                    break
    except StreamLost:
        yield _sse(lost(ELSEWHERE))
    except Unavailable as error:
        yield _sse(lost(unavailable_error(error).message))
    # What was yielded last has been sent by now.
    final_event.text = b""


def _sse(event: BaseEvent) -> ServerSentEvent:
    # Not without what is null: a patch may set a value to it. The models leave out by themselves what is not given.
    return ServerSentEvent(event.model_dump_json(by_alias=True), sep=SEPARATOR)
