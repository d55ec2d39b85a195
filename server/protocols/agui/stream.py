"""The answer of `POST /canvas/stream`: a run over SSE.

Rule 1: a stream that cannot continue ends with RUN_ERROR and the code `unavailable`: its task runs on, and the client
        rejoins it by sending the run again. A stream that is cut when the server stops ends the same way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from ag_ui.core import BaseEvent
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response
from starlette.types import Message

from a2a_canvas.server.protocols.agui.run_events import RunProjection, unavailable
from a2a_canvas.server.protocols.edge.availability import unavailable_error
from a2a_canvas.server.protocols.edge.shutdown import FinalEvent
from a2a_canvas.server.tasks.errors import StreamLost
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.store.errors import Unavailable

SEPARATOR = "\n"
"""AG-UI's own client accepts no other line end."""


def run_response(
    run: RunProjection,
    following: TaskSubscription,
    final_event: FinalEvent,
    on_disconnect: Callable[[Message], Awaitable[None]] | None,
    grace: float,
) -> Response:
    """The SSE response for `run`.

    Args:
        on_disconnect: called when the client disconnects.
        grace: seconds that the server has to stop.
    """
    return EventSourceResponse(
        _events(run, following, final_event),
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        sep=SEPARATOR,
        client_close_handler_callable=on_disconnect,
        shutdown_grace_period=grace,
    )


async def _events(
    run: RunProjection, following: TaskSubscription, final_event: FinalEvent
) -> AsyncIterator[ServerSentEvent]:
    stopping = "The server is stopping. Send the run again in a moment to join its task."
    final_event.text = _sse(unavailable(stopping)).encode()
    try:
        for event in run.begin():
            yield _sse(event)
        if not run.ended:
            async for entry in following:
                for event in run.project(entry, behind=following.has_next):
                    yield _sse(event)
                if run.ended:
                    break
    except StreamLost:
        yield _sse(unavailable("The connection to the task was lost. Send the run again to join it."))
    except Unavailable as error:
        yield _sse(unavailable(unavailable_error(error).message))
    # The generator resumes after its last event has been sent.
    final_event.text = b""


def _sse(event: BaseEvent) -> ServerSentEvent:
    # Nulls are kept, because a patch may set a value to null. The models omit fields that are not given.
    return ServerSentEvent(event.model_dump_json(by_alias=True), sep=SEPARATOR)
