"""The progress of a turn: its rounds, its model calls, and the indices of its blocks (docs/turn.md). Pure.

Rule 1: every start takes the next index of the turn: 0, 1, 2…, whatever number the provider gives.
Rule 2: a delta or a stop belongs to the newest block of its `llm_index` that is still open in this call.
Rule 3: one for a block that never started, or that has stopped, is an error.
Rule 4: a new model call forgets the provider's numbers; the turn's indices continue.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from a2a_canvas.server.agent.model import ModelError
from a2a_canvas.server.agent.phases import Phase


class BlockError(ModelError):
    """A model's stream names a block that is not open.

    Args:
        llm_index: the provider's number of the block.
        what: the problem, as the end of a sentence.
    """

    def __init__(self, llm_index: int, what: str) -> None:
        reason = "The model's answer was not understood; the operator's log has the details."
        super().__init__(reason, retryable=True)
        self.llm_index = llm_index
        self.what = what

    def __str__(self) -> str:
        return f"The model's stream is broken: its block {self.llm_index} {self.what}."


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of one turn so far.

    Attributes:
        count: of the blocks started in the turn.
        open: the pairs (llm_index, index) of this call's open blocks, oldest first.
        started: every llm_index that this call has used.
    """

    count: int = 0
    open: tuple[tuple[int, int], ...] = ()
    started: frozenset[int] = frozenset()

    def start(self, llm_index: int) -> tuple[Blocks, int]:
        """Start a block; it gets the turn's next index, even if its number was used before."""
        index = self.count
        return Blocks(index + 1, (*self.open, (llm_index, index)), self.started | {llm_index}), index

    def index_of(self, llm_index: int) -> int:
        """The turn's index of the open block with this number.

        Raises:
            BlockError: no block of that number is open in this call.
        """
        for number, index in reversed(self.open):
            if number == llm_index:
                return index
        raise BlockError(llm_index, "has already stopped" if llm_index in self.started else "never started")

    def stop(self, llm_index: int) -> tuple[Blocks, int]:
        """Stop a block; returns its index too.

        Raises:
            BlockError: no block of that number is open in this call.
        """
        index = self.index_of(llm_index)
        return replace(self, open=tuple(pair for pair in self.open if pair[1] != index)), index

    def next_call(self) -> Blocks:
        """The blocks when the next model call begins (rule 4)."""
        return Blocks(self.count)


@dataclass(frozen=True, slots=True)
class Progress:
    """The counters of a turn, across its model calls: a restarted turn continues from them.

    Attributes:
        thinking: the indices of the blocks of thinking, in order.
    """

    blocks: Blocks = field(default_factory=Blocks)
    round: int = 0
    call: int = 0
    phase: Phase = Phase.WORKING
    thinking: tuple[int, ...] = ()

    def next_round(self) -> Progress:
        return replace(self, round=self.round + 1)

    def next_call(self) -> Progress:
        return replace(self, call=self.call + 1, blocks=self.blocks.next_call())
