"""What a model that stands around another one says of itself: what the other one says."""

from __future__ import annotations

from typing import Literal

from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.agent.turn.window import window_of


class LLMWrapper:
    """An `LLM` around another one, but for its `stream`."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def name(self) -> str:
        return self._llm.name

    @property
    def thinking(self) -> Literal["delta", "accumulated"]:
        return self._llm.thinking

    @property
    def window(self) -> int | None:
        return window_of(self._llm)
