"""Thinking is delta-only: whatever an adapter sends, only the newest piece goes on (docs/extensions.md).

Rule 1: `delta` adapters send what is new; it goes on as it is (ha, ha -> ha, ha).
Rule 2: `accumulated` adapters send everything so far. What begins with the previous content loses that prefix
        (A, AB, ABC -> A, B, C), so a repeat gives nothing; anything else goes on whole.
Rule 3: previous is the block's own: it is forgotten when a block begins.
"""

from __future__ import annotations

from typing import Literal


class ThinkingDeltas:
    """Turns what an adapter sends as thinking into its newest pieces.

    Args:
        mode: what the adapter declares (`LLM.thinking`).
    """

    __slots__ = ("_mode", "_previous")

    def __init__(self, mode: Literal["delta", "accumulated"]) -> None:
        self._mode = mode
        self._previous = ""

    def begin_block(self) -> None:
        """A thinking block begins: what the last one said no longer counts."""
        self._previous = ""

    def feed(self, content: str) -> str:
        """The newest piece in `content`; empty if there is nothing to emit."""
        if self._mode == "delta" or not content:
            # Empty content says nothing; taken for the previous content, it would double all that follows.
            return content
        piece = content.removeprefix(self._previous)
        self._previous = content
        return piece
