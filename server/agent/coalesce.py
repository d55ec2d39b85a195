"""Joins what comes within one frame, so that a fast model does not cost an event per token.

Rule 1: a joinable event that finds no frame running goes at once and begins one. What follows within it is held
        and joined; the end of the frame sends it and begins the next, until a frame passes with nothing to send.
Rule 2: any other event flushes what is held first, so nothing is ever overtaken by it.
Rule 3: what is joined says the same as its pieces did, one after the other (`join`). Pieces of thinking are not
        joined: readers show only the newest (DESIGN, section 6).
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import cast

from server.agent.events import ArtifactChanged, Emit, TextAdded, ToolInputAdded, TurnEvent
from store.changes import group

Joinable = TextAdded | ToolInputAdded | ArtifactChanged


def stream_of(event: TurnEvent) -> Hashable | None:
    """What `event` can be joined with: events of the same stream. None if it must go alone."""
    match event:
        case TextAdded(place=place):
            return ("text", place.index)
        case ToolInputAdded(place=place):
            return ("input", place.index)
        case ArtifactChanged(append=True, artifact_id=artifact_id):
            return ("artifact", artifact_id)
        case _:
            return None


def join(events: Sequence[TurnEvent]) -> TurnEvent:
    """One event that says what `events`, all of one stream, say."""
    if len(events) == 1:
        return events[0]
    match last := cast(Joinable, events[-1]):
        case TextAdded():
            return replace(last, text="".join(cast(TextAdded, event).text for event in events))
        case ToolInputAdded():
            return replace(last, partial_json="".join(cast(ToolInputAdded, event).partial_json for event in events))
        case ArtifactChanged():
            return replace(last, parts=group(part for event in events for part in cast(ArtifactChanged, event).parts))


class Coalesce:
    """An `Emit` around another one.

    Args:
        frame: seconds; 0 sends everything as it comes.
    """

    def __init__(self, emit: Emit, frame: float) -> None:
        self._emit = emit
        self._frame = frame
        self._held: dict[Hashable, list[TurnEvent]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._sender: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()

    async def __call__(self, event: TurnEvent) -> None:
        stream = stream_of(event) if self._frame else None
        if stream is not None and self._timer is not None:
            self._held.setdefault(stream, []).append(event)
            return
        await self._send(event)
        if stream is not None and self._timer is None:
            self._begin_frame()

    async def flush(self) -> None:
        """Send what is held and stop the clock: nothing is left behind when a turn ends."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        await self._send()

    def _begin_frame(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._frame, self._end_frame)

    def _end_frame(self) -> None:
        self._timer = None
        if self._held:
            self._sender = asyncio.create_task(self._send())
            self._begin_frame()

    async def _send(self, *events: TurnEvent) -> None:
        sender = self._sender
        if sender and sender.done():
            self._sender = None
            sender.result()  # what the end of a frame could not send fails the turn
        async with self._sending:
            held, self._held = self._held, {}
            for joinable in held.values():
                await self._emit(join(joinable))
            for event in events:
                await self._emit(event)
