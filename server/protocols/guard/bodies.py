"""Request bodies: the limit of each, and the limit of all bodies in memory.

Rules:
1. A body is read to its end before it is checked, never beyond its limit, and replayed to the application. A compressed
   one is not read.
2. `BodyBudget` limits the bytes of all bodies, over all connections and bindings, as they arrive. A body beyond it is
   refused with "try again" and discarded; the others are not affected. No user can use all of it: apart from a single
   body, a user's bytes may not exceed what is left for others. That body is the user's first, so it is a second one
   that is refused. Anonymous callers may use all of it until a named user sends a request: they are one account, and
   until then the only one.
3. A body counts until its answer begins: until then the server may hold it in several forms.
4. Small bodies do not count. The limit of connections bounds them, and a cancel must pass when the budget is used up.
5. Only bodies with messages and files may be large: A2A's requests, AG-UI's runs and MCP's calls. Elsewhere a body that
   is not small is refused before it is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from a2a_canvas.server.protocols.edge.availability import OverloadedError
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal, check_content_encoding, too_large
from a2a_canvas.server.protocols.guard.parsing import SMALL_BODY_BYTES
from a2a_canvas.server.wire import AGUI_PATH, BELOW_REST, MCP_PATH

TOO_MANY_BODIES: Final = Refusal(
    OverloadedError,
    "The server has too many large requests at once. This one was not accepted: send it again.",
    http_status=503,
)


class BodyBudget:
    """The bytes of request bodies in memory.

    Args:
        limit: how many bytes there may be.

    Attributes:
        used: how many bytes there are.
    """

    @classmethod
    def for_limits(cls, limits: BodyLimits, workers: int = 1) -> BodyBudget:
        """The budget of one of so many workers; it has room for at least one body of the largest size."""
        return cls(max(limits.max_bodies_bytes // workers, limits.max_body_bytes))

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._of_users = Counter[str]()
        self._first: dict[str, BodyReservation] = {}
        self._has_named_users = False

    def fits(self, body: BodyReservation, more: int) -> bool:
        """Whether there is room for more bytes of a body (rule 2)."""
        left, has = self.limit - self.used - more, self._of_users[body.account]
        first = self._first.get(body.account, body)
        counted = has - first.size if body is first else has + more
        only_account = not (body.account or self._has_named_users)
        return left >= 0 and (only_account or counted <= left)

    def take(self, body: BodyReservation, more: int) -> None:
        """Count more bytes of a body."""
        self.used += more
        self._of_users[body.account] += more
        self._first.setdefault(body.account, body)

    def give_back(self, body: BodyReservation) -> None:
        """Stop counting a body."""
        self.used -= body.size
        self._of_users[body.account] -= body.size
        if not self._of_users[body.account]:
            del self._of_users[body.account]
        if self._first.get(body.account) is body:
            del self._first[body.account]

    @contextmanager
    def reserve(self, account: str) -> Iterator[BodyReservation]:
        """One body's reservation, released at the end of the context.

        Args:
            account: of the user who sends the body.
        """
        self._has_named_users |= bool(account)
        reservation = BodyReservation(self, account)
        try:
            yield reservation
        finally:
            reservation.release()


class BodyReservation:
    """The part of a budget that one body takes. `size`: its bytes that count."""

    def __init__(self, budget: BodyBudget, account: str) -> None:
        self._budget = budget
        self.account = account
        self.size = 0

    def fits(self, size: int) -> bool:
        """Whether there is room for a body that has `size` bytes in all."""
        return size <= SMALL_BODY_BYTES or self._budget.fits(self, size - self.size)

    def grow(self, size: int) -> bool:
        """Reserve `size` bytes in all. Returns whether there was room for them."""
        fits = self.fits(size)
        if fits and size > SMALL_BODY_BYTES:
            self._budget.take(self, size - self.size)
            self.size = size
        return fits

    def release(self) -> None:
        self._budget.give_back(self)
        self.size = 0

    def release_when_answered(self, send: Send) -> Send:
        """`send` that releases the reservation when the answer begins."""
        if not self.size:
            return send

        async def send_and_release(message: Message) -> None:
            self.release()
            await send(message)

        return send_and_release


def takes_messages(method: str, path: str) -> bool:
    """Whether bodies at a path may be large (rule 5)."""
    return method == "POST" and (path in ("/", AGUI_PATH, MCP_PATH) or path.startswith(BELOW_REST))


async def read_body(scope: Scope, receive: Receive, most: int, reservation: BodyReservation) -> bytes | Refusal | None:
    """The body; a refusal as soon as it is known to exceed a limit; None if the client disconnected.

    Args:
        most: the most bytes that it may have.
    """
    headers = Headers(scope=scope)
    if scope["method"] in ("POST", "PATCH") and (refusal := check_content_encoding(headers.get("content-encoding"))):
        return refusal
    declared = headers.get("content-length", "")
    if re.fullmatch("[0-9]{1,20}", declared):
        if int(declared) > most:
            return too_large(most)
        if not reservation.fits(int(declared)):
            return TOO_MANY_BODIES
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            return too_large(most)
        if not reservation.grow(len(body)):
            return TOO_MANY_BODIES
    return bytes(body)


def replay_body(body: bytes | Refusal, receive: Receive) -> Receive:
    """`receive` that returns the body first."""
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_body_first() -> Message:
        return pending.pop() if pending else await receive()

    return receive_body_first
