"""The token limits of a model, as far as known: providers report smaller ones in errors."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from a2a_canvas.server.agent.models.provider_errors import tokens_in, window_in

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class TokenLimits:
    """The limits of one model.

    Attributes:
        max_output: the most that one call may generate, thinking included.
        context_window: the most tokens of a request and its answer together; the answer has at most half of it.
    """

    max_output: int
    context_window: int

    @property
    def request(self) -> int:
        """The limit of tokens in a request."""
        return self.context_window - self.answer

    @property
    def answer(self) -> int:
        """The limit of tokens in an answer."""
        return min(self.max_output, self.context_window // 2)

    def narrow(self, message: str) -> bool:
        """Record a smaller window reported in a message; whether the request fits into it with a shorter answer."""
        most, counted = window_in(message), tokens_in(message)
        if most is None or most >= self.context_window:
            return False
        logger.warning("The model has a window of %d tokens: set --context-window", most)
        self.context_window = most
        return counted is not None and counted <= self.request
