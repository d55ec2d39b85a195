"""One request to an MCP server, its answer, and the server's messages in between."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp import Client
from pydantic import TypeAdapter

from a2a_canvas.server.tool_sources.mcp_servers.questions import Questions
from a2a_canvas.tools.functions.results import ToolError

MAX_TIMEOUTS = 10
"""The limit of a call that reports progress, as a multiple of its time-out."""

Reply = types.ElicitResult | types.ErrorData

current_exchange: ContextVar[Exchange | None] = ContextVar("current_exchange", default=None)
"""The exchange of a message, if the transport knows it (HTTP)."""

_CALL_RESULT: TypeAdapter[Any] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
_READ_RESULT: TypeAdapter[Any] = TypeAdapter(types.ReadResourceResult | types.InputRequiredResult)


@dataclass(eq=False, slots=True)
class Exchange:
    """One request to a server, its answer, and the server's messages in between.

    Everything runs in the task of the call: messages that arrive in other tasks wait here for it.

    Attributes:
        asked: the user was asked a question during it.
    """

    name: str
    timeout: float
    label: str = ""
    asked: bool = False
    questions: list[tuple[Mapping[str, Any], asyncio.Future[Reply]]] = field(default_factory=list)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(
        self,
        client: Client,
        request: types.ClientRequest,
        questions: Questions,
    ) -> Any:
        shape = _READ_RESULT if isinstance(request, types.ReadResourceRequest) else _CALL_RESULT
        token = current_exchange.set(self)
        sending = asyncio.create_task(client.session.send_request(request, shape, progress_callback=self._on_progress))
        current_exchange.reset(token)
        sending.add_done_callback(lambda sent: sent.cancelled() or sent.exception())  # even if no one waits any longer
        clock = asyncio.get_running_loop().time
        latest, end = clock() + self.timeout, clock() + MAX_TIMEOUTS * self.timeout
        try:
            while not sending.done():
                if not await self._wait_for_signal(sending, min(latest, end) - clock()):
                    raise ToolError(self._timeout_message(clock() >= end))
                latest = clock() + self.timeout
                if self.label:
                    label, self.label = self.label, ""
                    await questions.canvas.progress(label)
                for question, reply in self.questions:
                    self.asked = True
                    reply.set_result(await questions.ask(question))
                self.questions.clear()
            return sending.result()
        finally:
            sending.cancel()
            await asyncio.wait((sending,), timeout=2)
            self._refuse()

    async def _wait_for_signal(self, sending: asyncio.Task[Any], within: float) -> bool:
        """Wait for the answer or a message; whether one arrived in time."""
        waking = asyncio.create_task(self.wake.wait())
        done, _ = await asyncio.wait((sending, waking), timeout=max(within, 0), return_when=asyncio.FIRST_COMPLETED)
        waking.cancel()
        self.wake.clear()
        return bool(done)

    def _timeout_message(self, at_all: bool) -> str:
        if at_all:
            return f"{self.name} took longer than {MAX_TIMEOUTS * self.timeout:g} seconds and was cancelled."
        return (
            f"{self.name} gave no sign of life for {self.timeout:g} seconds and was cancelled; whether it did "
            "something is unknown."
        )

    async def _on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.label = progress_label(self.name, progress, total, message)
        self.wake.set()

    async def ask(self, question: Mapping[str, Any]) -> Reply:
        """The reply to a question, asked by the task of the call."""
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.questions.append((question, reply))
        self.wake.set()
        return await reply

    def _refuse(self) -> None:
        for _, reply in self.questions:
            if not reply.done():
                reply.set_result(types.ErrorData(code=types.INVALID_REQUEST, message="The call has been cancelled."))


def progress_label(tool: str, progress: float, total: float | None, message: str | None) -> str:
    """A progress notification as one line."""
    share = f"{progress:g} of {total:g}" if total else ""
    return f"{message} ({share})" if message and share else message or f"{tool}: {share or f'{progress:g}'}"
