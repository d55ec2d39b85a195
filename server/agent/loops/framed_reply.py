"""Joins the pieces of an agent's reply that come within one frame, as `FramedLLM` does for models.

Rule 1: a piece outside a frame is shown at once and begins one. The pieces that follow it are joined, and shown when
        the frame ends, or with whatever else is shown.
Rule 2: only text and the input of a call are joined. The start of an input (`UNJOINED_CHARACTERS`) is not: an artifact
        begins in it.
Rule 3: pieces are shown in their order, and a failure to show them is raised by what the function says or does next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from a2a_canvas.server.agent.blocks import Progress
from a2a_canvas.server.agent.loops.reply_stream import BlockKind, ReplyStream, Show, show_nothing
from a2a_canvas.server.agent.model import StopReason
from a2a_canvas.server.agent.models.wrappers import UNJOINED_CHARACTERS
from a2a_canvas.server.agent.turn.call import TurnOutput
from a2a_canvas.server.agent.turn.pending_calls import FunctionCall
from a2a_canvas.tools.tool import Workspace


class FramedReply(ReplyStream):
    """A reply whose pieces are joined.

    Args:
        frame: seconds; 0 joins nothing.
    """

    def __init__(
        self, progress: Progress, workspace: Workspace, output: TurnOutput, caller: Callable[[], str], frame: float
    ) -> None:
        super().__init__(progress, workspace, output, caller)
        self._frame = frame
        self._frame_end = 0.0
        self._key: object = None
        self._length = 0
        self._pieces: list[str] = []
        self._show: Show = show_nothing
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._lock = asyncio.Lock()

    async def add(self, kind: BlockKind, delta: str) -> None:
        if kind == "text":
            await self._join(kind, delta, partial(ReplyStream.add, self, kind), 0)
        else:
            await self.flush()
            await super().add(kind, delta)

    async def add_input(self, call_id: str, piece: str, then: Show = show_nothing) -> None:
        await self._join((call_id,), piece, partial(self._add_input, call_id, then), UNJOINED_CHARACTERS)

    async def end_block(self) -> None:
        await self.flush()
        await super().end_block()

    async def begin_call(self, call_id: str, name: str, *, carried_out: bool = False) -> None:
        await self.flush()
        await super().begin_call(call_id, name, carried_out=carried_out)

    async def end_call(self, call_id: str) -> FunctionCall | None:
        await self.flush()
        return await super().end_call(call_id)

    async def end_round(self, reason: StopReason = "end_turn") -> str:
        if reason == "error":  # the turn fails for a reason of its own
            self._failure = None
        await self.flush()
        return await super().end_round(reason)

    async def abort(self) -> None:
        self._pieces.clear()
        self._stop_timer()
        async with self._lock:
            self._failure = None
            await super().abort()

    async def flush(self) -> None:
        """Show what has been joined.

        Raises:
            Exception: it could not be shown, now or when its frame ended.
        """
        async with self._lock:
            if failure := self._failure:
                self._failure = None
                raise failure
            await self._show_pieces()

    async def _join(self, key: object, piece: str, show: Show, unjoined: int) -> None:
        if not self._frame:
            await show(piece)
            return
        while self._failure or (self._pieces and key != self._key):  # another task may add while this one waits
            await self.flush()
        if key != self._key:
            self._key, self._length = key, 0
        self._length += len(piece)
        now = asyncio.get_running_loop().time()
        self._pieces.append(piece)
        self._show = show
        if now >= self._frame_end or self._length <= unjoined:
            await self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self._frame_end, self._end_frame)

    async def _add_input(self, call_id: str, then: Show, piece: str) -> None:
        await ReplyStream.add_input(self, call_id, piece, then)

    def _end_frame(self) -> None:
        self._timer = None
        self._flushing = asyncio.create_task(self._flush_at_end())

    async def _flush_at_end(self) -> None:
        async with self._lock:
            try:
                await self._show_pieces()
            except Exception as error:
                self._failure = error

    async def _show_pieces(self) -> None:
        self._stop_timer()
        if self._pieces:
            text = "".join(self._pieces)
            self._pieces.clear()
            self._frame_end = asyncio.get_running_loop().time() + self._frame
            await self._show(text)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
