"""A receiver of push notifications on loopback, which remembers what it got."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

WITHIN = 30
"""Seconds after which a test says what it got in place of what it waits for."""


@dataclass(frozen=True)
class Notification:
    headers: dict[str, str]
    body: bytes
    path: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """A receiver.

    Attributes:
        url: where it listens.
        got: what it got, in order.
        answer: makes its answer.
    """

    def __init__(self) -> None:
        self.url = ""
        self.port = 0
        self.got: list[Notification] = []
        self.answer: Callable[[Notification], Awaitable[web.Response]] = accept
        self._news = asyncio.Condition()

    async def handle(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        notification = Notification(headers, await request.read(), request.path_qs)
        async with self._news:
            self.got.append(notification)
            self._news.notify_all()
        return await self.answer(notification)

    async def until(self, enough: Callable[[list[Notification]], bool]) -> list[Notification]:
        """What it got, once it is enough."""
        try:
            async with asyncio.timeout(WITHIN), self._news:
                await self._news.wait_for(lambda: enough(self.got))
        except TimeoutError:
            raise AssertionError(f"it got {[each.body[:500] for each in self.got]}") from None
        return self.got

    async def until_state(self, state: str) -> list[Notification]:
        """What it got up to the status update of 1.0 with this state."""
        return await self.until(lambda got: any(state_of(each) == state for each in got))


async def accept(notification: Notification) -> web.Response:
    return web.Response()


def state_of(notification: Notification) -> str:
    """The state that a status update of 1.0, or a task of 0.3, has; empty for a version."""
    told = notification.json
    found: str = told.get("statusUpdate", told).get("status", {}).get("state", "")
    return found


@asynccontextmanager
async def receiving(encrypted: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=encrypted)
    await site.start()
    receiver.port = runner.addresses[0][1]
    receiver.url = f"http://127.0.0.1:{receiver.port}/hook"
    try:
        yield receiver
    finally:
        await runner.cleanup()
