"""Where a turn stands. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from a2a_canvas.server.agent.blocks import Blocks
from a2a_canvas.server.agent.phases import Phase


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a turn stands: what is counted through all of its calls."""

    blocks: Blocks = field(default_factory=Blocks)
    round: int = 0
    call: int = 0
    phase: Phase = Phase.WORKING

    def next_round(self) -> Progress:
        return replace(self, round=self.round + 1)

    def next_call(self) -> Progress:
        return replace(self, call=self.call + 1, blocks=self.blocks.next_call())
