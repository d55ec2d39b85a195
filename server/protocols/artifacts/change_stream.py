"""The changes of one artifact for caches: `GET /artifacts/{context}/{artifact}/stream`.

It is the read half of the Durable Streams protocol, in its JSON mode; the forms are in change_forms.py.

Rule 1: folding the messages from offset -1 on gives the artifact. Only what is committed is sent, so the answer for an
        offset continues exactly what every other reader of that offset has.
Rule 2: an answer after an offset that this server gave may be stored by a shared cache, for `MAX_AGE` seconds, if the
        caller has a link and no account. All others are `private, no-store`, and so are those for -1 and `now`.
Rule 3: `Stream-Closed` is only for a request that names a task: when that has ended, the stream ends after its last
        change. What others change later is not sent.
Rule 4: a long poll is answered with what the context had at a tick (change_forms.py, rule 3), so that all readers soon
        ask for the same URL, however far apart they begin.
Rule 5: a stream ends with the credential, the share or the context. The reader asks again, and gets the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from time import time
from typing import Any, Final, Self

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from a2a_canvas.server.protocols.artifacts.change_forms import (
    BEGINNING,
    NOW,
    Live,
    TickEnds,
    change_json,
    format_offset,
    last_tick_of_poll,
    next_cursor,
    parse_cursor,
    parse_live,
    parse_offset,
    seconds_to_tick,
    tick_at,
    whole_json,
)
from a2a_canvas.server.protocols.artifacts.raw_content import JSON
from a2a_canvas.server.protocols.artifacts.refusals import invalid_value
from a2a_canvas.server.protocols.edge.encoded_events import EncodedEvents
from a2a_canvas.server.protocols.edge.http_requests import (
    caller_of,
    end_with_credential,
    is_not_modified,
    while_connected,
)
from a2a_canvas.server.protocols.edge.sse_response import SseResponse, sse_event
from a2a_canvas.server.protocols.pipeline.entrance import UnauthenticatedError
from a2a_canvas.server.tasks.contexts import Context
from a2a_canvas.server.tasks.errors import ChangesGone, StreamLost, TaskNotFound
from a2a_canvas.server.tasks.journal.artifact_readings import (
    After,
    Place,
    changes_artifact,
)
from a2a_canvas.server.tasks.journal.context_log import ContextEntry, ContextSubscription
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.store.errors import ArtifactNotFound, Unavailable
from a2a_canvas.store.text.unicode import valid_id

MAX_AGE: Final = 5
"""Seconds. A revoked share is believed for up to 2 seconds more, so what it has shown is gone after 7."""

SSE_SECONDS: Final = 60.0
"""After so long a stream ends; its client continues with another."""

MESSAGES_PER_STEP: Final = 50
"""What is encoded before others run: half a millisecond, if the messages are short."""

PRIVATE: Final = {"Cache-Control": "private, no-store"}
EVENTS: Final = {"Cache-Control": "private, no-store, no-cache", "Content-Type": "text/event-stream"}
"""As the protocol's clients compare them."""
PUBLIC: Final = {"Cache-Control": f"public, max-age={MAX_AGE}", "Vary": "Authorization"}

_ENDINGS = (ArtifactNotFound, ChangesGone, StreamLost, TaskNotFound, UnauthenticatedError, Unavailable)
"""What ends a stream (rule 5): also the context may be removed between two readings."""


@dataclass(frozen=True, slots=True)
class StreamQuery:
    """What a reader asks for.

    Attributes:
        cursor: the one that it returns; -1 for none.
        task: with whose end the stream ends; empty for none.
    """

    after: After
    live: Live
    cursor: int
    task: str


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """Messages, and what the reader has with them.

    Attributes:
        messages: as JSON.
        complete: there is nothing after `place` yet.
        closed: there will be nothing after `place`.
        tick: at which a reader who waits is answered.
    """

    messages: Sequence[bytes]
    place: Place
    complete: bool
    closed: bool
    tick: int | None = None

    @property
    def body(self) -> bytes:
        return b"[%b]" % b",".join(self.messages)


def stream_query(request: Request) -> StreamQuery:
    """Raises `ResourceError` if a parameter is wrong."""
    query = request.query_params
    offsets = query.getlist("offset")
    if len(offsets) > 1:
        raise invalid_value("offset", "must be given once")
    live, task = parse_live(query.get("live", "")), query.get("task", "")
    if live and not offsets:
        raise invalid_value("offset", "is required with live; -1 is the beginning")
    try:
        valid_id(task)
    except ValueError as error:
        raise invalid_value("task", str(error)) from None
    after = parse_offset(offsets[0] if offsets else BEGINNING)
    return StreamQuery(after, live, parse_cursor(query.get("cursor", "")), task)


async def read_stream(
    request: Request, context: Context, artifact_id: str, query: StreamQuery, ends: TickEnds, encoded: EncodedEvents
) -> ASGIApp:
    """The answer to a reader. A long poll takes up to 30 seconds, a stream of events 60.

    Args:
        ends: of all long polls of this server.
        encoded: where messages are kept that others get, too.

    Raises:
        ArtifactNotFound, TaskNotFound, ChangesGone, StreamLost, Unavailable, UnauthenticatedError.
    """
    reader = _ArtifactReader(request, context, artifact_id, query.task, ends, encoded)
    if request.method == "HEAD":
        tail = await reader.read("now")
        return Response(headers={**_headers(tail), **PRIVATE, "Content-Type": JSON})
    match query.live:
        case "":
            return _response(request, query, await reader.read(query.after))
        case "long-poll":
            answer = await while_connected(request, _poll(reader, query.after, query.cursor))
            return Response(status_code=204) if answer is None else _response(request, query, answer)
        case "sse":
            first = await reader.read(query.after)
            return SseResponse(_events(reader, first, query.cursor), headers=EVENTS)


class _ArtifactReader:
    """Reads an artifact for one request.

    Attributes:
        following: the changes after the last reading.
        behind: there were more changes at the last reading than were taken at its tick.
    """

    following: ContextSubscription
    behind = False

    def __init__(
        self,
        request: Request,
        context: Context,
        artifact_id: str,
        task: str,
        ends: TickEnds,
        encoded: EncodedEvents,
    ) -> None:
        self._ends = ends
        self._encoded = encoded
        self._scope = request.scope
        self._context = context
        self._artifact_id = artifact_id
        self._task = task
        self._end: asyncio.Future[None] | None = None

    async def read(self, after: After, tick: int | None = None) -> StreamAnswer:
        """What there is after a place; for a reader who waits, what there is at a tick."""
        # In this order: what the task has changed before its end is read then.
        end = await self._context.task_end(self._task) if self._task else None
        reading = await self._context.read_artifact(self._artifact_id, after)
        end_with_credential(reading.following, self._scope)
        await reading.following.check()
        self.following = reading.following
        if not isinstance(after, Place):
            whole = [to_json(whole_json(reading.whole))] if reading.whole else []
            return StreamAnswer(whole, reading.place, complete=True, closed=end is not None, tick=tick)
        newest = last = reading.place.position
        if tick is not None and reading.complete:
            tick, end_of_tick = self._ends.end(tick, self._context.key, reading.place)
            last = max(after.position, end_of_tick)
        if end:
            last = min(last, max(after.position, end.position))
        place = reading.place._replace(position=min(last, newest))
        closed = end is not None and place.position >= end.position
        self.behind = place.position < newest
        messages = []
        for number, each in enumerate(takewhile(lambda each: each.position <= last, reading.changes)):
            if number and number % MESSAGES_PER_STEP == 0:
                await asyncio.sleep(0)
            messages.append(self._message(each))
        return StreamAnswer(messages, place, reading.complete or closed, closed, tick)

    async def wait(self, seconds: float) -> bool:
        """Whether there is a further change, or the end of the task, before so many seconds have passed."""
        async with _Waiting(self.following, await self._end_of_task()) as waiting:
            return await waiting.wait(asyncio.get_running_loop().time() + seconds)

    async def changes(self, place: Place, until: float) -> AsyncGenerator[StreamAnswer, None]:
        """What comes after a complete answer, as it is committed, until a time of the event loop."""
        async with _Waiting(self.following, await self._end_of_task()) as waiting:
            while await waiting.wait(until):
                entries = waiting.take()
                if waiting.ended:
                    yield await self.read(place)
                    return
                place = place._replace(position=entries[-1].position)
                found = (each for each in entries if changes_artifact(each, self._artifact_id))
                yield StreamAnswer([*map(self._message, found)], place, complete=True, closed=False)

    async def close(self) -> None:
        """Stop waiting for the end of the task."""
        if self._end:
            self._end.cancel()
            await asyncio.wait((self._end,))

    def _message(self, change: ContextEntry) -> bytes:
        key = ("stream", self._context.key, change.incarnation, change.position)
        return self._encoded.encode(key, partial(change_json, change), to_json)

    async def _end_of_task(self) -> asyncio.Future[None] | None:
        if self._task and not self._end:
            self._end = asyncio.ensure_future(_wait_for_end(await self._context.follow_task(self._task)))
        return self._end


class _Waiting:
    """Waits for the next change of a context, and for `end`, the end of a task, if there is one."""

    def __init__(self, following: ContextSubscription, end: asyncio.Future[None] | None) -> None:
        self._changes = aiter(following)
        self._next = asyncio.ensure_future(anext(self._changes))
        self._end = end

    @property
    def ended(self) -> bool:
        """Whether the task has ended."""
        return self._end is not None and self._end.done()

    async def wait(self, until: float) -> bool:
        """Whether something has come before a time of the event loop. Raises what ends the subscription."""
        waits: list[asyncio.Future[Any]] = [self._next, self._end] if self._end else [self._next]
        left = max(0.0, until - asyncio.get_running_loop().time())
        done, _ = await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
        return bool(done)

    def take(self) -> list[ContextEntry]:
        """The changes that have come."""
        if not self._next.done():
            return []
        entries = [self._next.result(), *self._changes.ready()]
        self._next = asyncio.ensure_future(anext(self._changes))
        return entries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._next.cancel()
        await asyncio.wait((self._next,))


async def _wait_for_end(task: TaskSubscription) -> None:
    async for _ in task:
        pass


async def _poll(reader: _ArtifactReader, after: After, returned: int) -> StreamAnswer:
    """What there is at this tick, or what comes first; without messages if nothing comes.

    A reader who has been answered at this tick waits for the next one: its cursor must not run ahead of the others'.
    """
    last = last_tick_of_poll(time())
    try:
        if tick_at(time()) <= returned <= tick_at(time()) + 1:
            await asyncio.sleep(seconds_to_tick(time(), returned + 1))
        while True:
            tick = tick_at(time())
            answer = await reader.read(after, min(tick, last))
            after = answer.place
            if answer.messages or answer.closed or (answer.complete and tick >= last):
                return answer
            if answer.complete:
                if not reader.behind:
                    await reader.wait(seconds_to_tick(time(), last))
                await asyncio.sleep(seconds_to_tick(time(), tick + 1))
    finally:
        await reader.close()


async def _events(reader: _ArtifactReader, answer: StreamAnswer, cursor: int) -> AsyncGenerator[bytes, None]:
    until = asyncio.get_running_loop().time() + SSE_SECONDS
    try:
        yield _event(answer, cursor := next_cursor(tick_at(time()), cursor))
        while not answer.complete:
            if asyncio.get_running_loop().time() >= until:
                return
            answer = await reader.read(answer.place)
            yield _event(answer, cursor := next_cursor(tick_at(time()), cursor))
        if answer.closed:
            return
        async with aclosing(reader.changes(answer.place, until)) as changes:
            async for answer in changes:
                if answer.messages or answer.closed:
                    yield _event(answer, cursor := next_cursor(tick_at(time()), cursor))
    except _ENDINGS:
        return  # the client asks again, and gets the reason
    finally:
        await reader.close()


def _event(answer: StreamAnswer, cursor: int) -> bytes:
    """The messages, if any, and the control event after them."""
    control: dict[str, Any] = {"streamNextOffset": format_offset(answer.place)}
    control |= {"streamClosed": True} if answer.closed else {"streamCursor": str(cursor)}
    if answer.complete:
        control["upToDate"] = True
    data = sse_event(answer.body, name="data") if answer.messages else b""
    return data + sse_event(to_json(control), name="control")


def _response(request: Request, query: StreamQuery, answer: StreamAnswer) -> Response:
    """The answer to a request that does not stream; 304 for a reader that has it."""
    headers = _headers(answer)
    if answer.tick is not None:
        headers["Stream-Cursor"] = str(next_cursor(answer.tick, query.cursor))
    is_shared = bool(caller_of(request).link) and isinstance(query.after, Place)
    headers |= PUBLIC if is_shared else PRIVATE
    if query.live and not answer.messages:
        return Response(status_code=204, headers=headers)
    if query.after != NOW:
        end = "-closed" if answer.closed else ""
        tag = f'"{format_offset(query.after)}-{format_offset(answer.place)}{end}"'
        headers["ETag"] = tag
        if is_not_modified(request, tag):
            return Response(status_code=304, headers=headers)
    return Response(answer.body, headers={**headers, "Content-Type": JSON})


def _headers(answer: StreamAnswer) -> dict[str, str]:
    headers = {"Stream-Next-Offset": format_offset(answer.place)}
    if answer.complete:
        headers["Stream-Up-To-Date"] = "true"
    if answer.closed:
        headers["Stream-Closed"] = "true"
    return headers
