"""The bodies of requests: how large one may be, and how much of them there may be at once.

Rules:
1. A body is read to its end before anything looks at it, never beyond the limit of one, and replayed.
2. What has come of all bodies together has a bound, `BodyBudget`, over all connections and bindings, counted as it
   comes; whoever would go beyond it is refused with "try again", nothing of it is kept, and the others go on.
3. A body counts until its answer begins: until then the server may hold it in several forms.
4. Small bodies do not count. Their number is that of the connections, and a cancel must pass when all is full.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from a2a_canvas.server.protocols.edge.unavailable import OverloadedError
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal, too_large

SMALL_BODY_BYTES: Final = 64 * 1024
"""Bytes of a body that does not count."""

TOO_MANY_BODIES: Final = Refusal(
    OverloadedError, "The server has too many large requests at once. This one was not accepted: send it again."
)


class BodyBudget:
    """Bytes of request bodies that are under way.

    Args:
        limit: how many there may be.

    Attributes:
        used: how many there are.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    @contextmanager
    def reserve(self) -> Iterator[BodyReservation]:
        """One body's share, which ends with the context."""
        share = BodyReservation(self)
        try:
            yield share
        finally:
            share.release()


class BodyReservation:
    """What one body takes of a budget.

    Attributes:
        size: the bytes that count.
    """

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.size = 0

    def fits(self, size: int) -> bool:
        """Whether there is room for a body that has `size` bytes in all."""
        return size <= SMALL_BODY_BYTES or self._budget.used - self.size + size <= self._budget.limit

    def grow(self, size: int) -> bool:
        """The body has `size` bytes by now; whether there was room for them."""
        fits = self.fits(size)
        if fits and size > SMALL_BODY_BYTES:
            self._budget.used += size - self.size
            self.size = size
        return fits

    def release(self) -> None:
        self._budget.used -= self.size
        self.size = 0

    def release_when_answered(self, send: Send) -> Send:
        """`send` that ends the share when the answer begins."""
        if not self.size:
            return send

        async def send_and_release(message: Message) -> None:
            self.release()
            await send(message)

        return send_and_release


async def read_body(
    scope: Scope, receive: Receive, limits: BodyLimits, share: BodyReservation
) -> bytes | Refusal | None:
    """The body; a refusal as soon as it is known to be too large, or one too many; None if the client left."""
    declared = Headers(scope=scope).get("content-length", "")
    if re.fullmatch("[0-9]{1,20}", declared):
        if int(declared) > limits.max_body_bytes:
            return too_large(limits)
        if not share.fits(int(declared)):
            return TOO_MANY_BODIES
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limits.max_body_bytes:
            return too_large(limits)
        if not share.grow(len(body)):
            return TOO_MANY_BODIES
    return bytes(body)


def replay_body(body: bytes | Refusal, receive: Receive) -> Receive:
    """`receive` that begins with the body again."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
