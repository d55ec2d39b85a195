"""The reply of the open round, in pieces: which step has shown them, and which of them are recorded.

Rule 1: what is recorded with a step is what was shown in it, and what was shown outside of steps since the last record.
Rule 2: of steps that run at the same time, one shows text at a time. What another one says waits until that step ends.
Rule 3: the round shows what is recorded first, in the order of the records, because a rerun begins with that. A step
        that ends before the one that shows its text therefore restarts the round. So does one that fails: what it has
        shown is taken back. A round with calls of tools cannot restart, so it has the text of one step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from typing import Literal

from a2a_canvas.server.agent.loops.reply_stream import ReplyStream
from a2a_canvas.server.agent.model import StopReason, Usage
from a2a_canvas.tools.tool import to_json

PieceKind = Literal["text", "thinking", "end"]
Piece = tuple[PieceKind, str]
"""A piece of a block, or the end of the block."""
OUTSIDE = ""
"""The name of the step, for what is shown outside of steps."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """What was shown since the last record."""

    pieces: tuple[Piece, ...] = ()
    usage: Usage = field(default_factory=Usage)

    def to_json(self) -> str:
        """For `ToolStep.value`."""
        return to_json([[list(piece) for piece in self.pieces], list(astuple(self.usage))])

    def followed_by(self, value: str) -> ShownText:
        """With what another record shows: a value of `to_json`."""
        pieces, usage = json.loads(value)
        return ShownText(tuple(join((*self.pieces, *map(tuple, pieces)))), self.usage + Usage(*usage))


def join(pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces of one block as one piece."""
    joined: list[Piece] = []
    for kind, text in pieces:
        if kind != "end" and joined and joined[-1][0] == kind:
            joined[-1] = kind, joined[-1][1] + text
        elif kind != "end" or joined[-1:] != [(kind, text)]:
            joined.append((kind, text))
    return joined


class ReplyPieces:
    """Shows what a function says, and keeps what a record of it needs."""

    def __init__(self, reply: ReplyStream) -> None:
        self._reply = reply
        self._recorded: list[Piece] = []
        self._live: list[tuple[str, Piece]] = []
        self._waiting: dict[str, list[Piece]] = {}
        self._usage: dict[str, Usage] = {}
        self._speaker = OUTSIDE

    async def begin(self, shown: ShownText) -> None:
        """The round begins with what is recorded of it."""
        self._recorded = list(shown.pieces)
        self._reply.use(shown.usage)
        await self._show(self._recorded)

    def use(self, step: str, usage: Usage) -> None:
        """Count tokens that were used in a step."""
        self._usage[step] = self._usage.get(step, Usage()) + usage
        self._reply.use(usage)

    async def add(self, step: str, kind: PieceKind, text: str = "") -> None:
        """Show a piece, now or when it may be shown (rule 2)."""
        if self._speaker in (OUTSIDE, step):
            self._speaker = step or self._speaker
            self._live.append((step, (kind, text)))
            await self._show([(kind, text)])
        else:
            self._waiting.setdefault(step, []).append((kind, text))

    def claim(self, step: str) -> bool:
        """Have what others say wait for the end of this step, if it may show something now (rule 2)."""
        if self._speaker not in (OUTSIDE, step):
            return False
        self._speaker = step
        return True

    async def end(self, step: str) -> None:
        """A step has ended, and is recorded."""
        await self._hand_over(step)

    async def record(self, step: str) -> ShownText:
        """What the record of a step contains that ends now."""
        usage = self._usage.pop(OUTSIDE, Usage()) + self._usage.pop(step, Usage())
        mine = [piece for owner, piece in self._live if owner in (OUTSIDE, step)]
        rest = [each for each in self._live if each[0] not in (OUTSIDE, step)]
        waited = [*self._waiting.pop(OUTSIDE, ()), *self._waiting.pop(step, ())]
        mine, self._live = join((*mine, *waited)), rest
        self._recorded += mine
        if rest and mine and not self._reply.has_calls:
            await self._restart()
        else:
            await self._show(waited)
        if step != self._speaker:  # else `end`, once its round has ended
            await self._hand_over(step)
        return ShownText(tuple(mine), usage)

    async def drop(self, step: str, *, restart: bool = False) -> None:
        """Take back what a step has shown since the last record.

        Args:
            restart: end the round even if it contains nothing of the step, or calls of others.
        """
        self._waiting.pop(step, None)
        if usage := self._usage.pop(step, None):
            self._usage[OUTSIDE] = self._usage.get(OUTSIDE, Usage()) + usage
        kept = [each for each in self._live if each[0] != step]
        shown, self._live = len(self._live) > len(kept), kept
        if restart or (shown and not self._reply.has_calls):
            await self._restart()
        await self._hand_over(step)

    async def set_aside(self, step: str) -> None:
        """The round is about to end: what another running step has shown of its text is shown in the next one."""
        if self._speaker in (OUTSIDE, step):
            return
        if rest := [piece for owner, piece in self._live if owner == self._speaker]:
            self._waiting = {self._speaker: rest, **self._waiting}
            self._live = [each for each in self._live if each[0] != self._speaker]
            self._speaker = OUTSIDE
            if not self._reply.has_calls:
                await self._restart()

    async def settle(self, reason: StopReason) -> str:
        """End the round; returns its text."""
        text = await self._reply.end_round(reason)
        self._recorded.clear()
        self._live.clear()
        self._usage.clear()
        return text

    async def resume(self) -> None:
        """A round has ended: show what was set aside."""
        await self._hand_over(self._speaker)

    async def show_waiting(self) -> None:
        """Show all that waits: no step runs."""
        while self._waiting:
            await self._hand_over(self._speaker)

    async def _hand_over(self, step: str) -> None:
        """Show what waits for the end of a step (rule 2)."""
        if step == self._speaker:
            self._speaker = OUTSIDE
        while self._waiting and self._speaker == OUTSIDE:
            self._speaker = next(iter(self._waiting))
            pieces = self._waiting.pop(self._speaker)
            self._live += [(self._speaker, piece) for piece in pieces]
            await self._show(pieces)

    async def _restart(self) -> None:
        await self._reply.abort()
        await self._show([*self._recorded, *(piece for _, piece in self._live)])

    async def _show(self, pieces: Iterable[Piece]) -> None:
        for kind, text in pieces:
            if kind == "end":
                await self._reply.end_block()
            else:
                await self._reply.add(kind, text)
