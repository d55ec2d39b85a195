"""A stream whose credential was revoked ends: no later than `CHECK_SECONDS` after requests with it are refused.

Rule 1: over HTTP it ends as if the client had hung up, so that whatever a route does then is done, and the answer is
        complete. It is looked at when the request was read, so short answers cost nothing.
Rule 2: over gRPC it is looked at before each message that is sent.
Rule 3: while nobody can say whether it is in force, it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_canvas.store.errors import Unavailable

CHECK_SECONDS: Final = 0.8

InForce = Callable[[], Awaitable[bool]]


async def while_in_force(app: ASGIApp, scope: Scope, receive: Receive, send: Send, in_force: InForce) -> None:
    """Run an application on a request until its credential is revoked (rule 1)."""
    request = _Request(receive, send, in_force)
    await app(scope, request.receive, request.send)
    if request.revoked and not request.answered:
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Request:
    """What the application receives and sends."""

    def __init__(self, receive: Receive, send: Send, in_force: InForce) -> None:
        self._receive = receive
        self._send = send
        self._in_force = in_force
        self._read = False
        self.revoked = False
        self.answered = False

    async def send(self, message: Message) -> None:
        self.answered = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def receive(self) -> Message:
        if self._read:
            return await self._until_revoked()
        message = await self._receive()
        self._read = not message.get("more_body", False)
        return message

    async def _until_revoked(self) -> Message:
        message = asyncio.ensure_future(self._receive())
        try:
            while not (await asyncio.wait((message,), timeout=CHECK_SECONDS))[0]:
                if not await is_in_force(self._in_force):
                    self.revoked = True
                    return {"type": "http.disconnect"}
            return message.result()
        finally:
            message.cancel()


async def is_in_force(in_force: InForce) -> bool:
    """Whether a credential still is (rule 3)."""
    try:
        return await in_force()
    except Unavailable:
        return True
