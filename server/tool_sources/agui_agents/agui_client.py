"""The connection to one AG-UI agent: a run is a POST, whose answer streams events.

Rule 1: every failure is an `AgentFault`.
Rule 2: tokens, limits of size and address rules are those of other A2A agents (`remote_agents/agent_client.py`).
Rule 3: an agent ends a run whose stream is closed; nothing else cancels it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

import httpx

from a2a_canvas.server.a2a_client.agent_fault import AgentFault, fault_of
from a2a_canvas.server.agent.models.sse_decoder import EventStreamDecoder
from a2a_canvas.server.outbound.addresses import Lookup, SystemLookup
from a2a_canvas.server.outbound.answers import MAX_MESSAGE
from a2a_canvas.server.outbound.over_httpx import checked_transport, client
from a2a_canvas.server.outbound.token_origin import token_for
from a2a_canvas.server.tool_sources.remote_agents.agent_card import host_of
from a2a_canvas.server.tool_sources.remote_agents.agent_client import SILENCE, log_refusal
from a2a_canvas.server.tool_sources.remote_agents.agent_network import AgentNetwork
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import without_secrets

CONNECT = 10.0
"""Seconds that a connection may take."""
EVENTS = "text/event-stream"
NOT_AGUI = "it answers what is not AG-UI"


class AguiClient:
    """An agent at an address.

    Args:
        tokens: by origin (`token_for`).
        silence: seconds without a byte after which a run counts as broken.
    """

    def __init__(
        self, url: str, tokens: Mapping[str, str] | None = None, silence: float = SILENCE, lookup: Lookup | None = None
    ) -> None:
        self._url = url
        self._token = token_for(url, url, tokens or {})
        self._silence = silence
        self._network = AgentNetwork(host_of(url), lookup or SystemLookup())

    @property
    def address(self) -> str:
        """For the log."""
        return without_secrets(self._url)

    async def probe(self) -> None:
        """Connect to the agent. Any answer will do: its address may be for `POST` only.

        Raises:
            AgentFault: it cannot be reached.
        """
        with _httpx_faults():
            async with client(MAX_MESSAGE, **await self._options()) as http:
                await http.head(self._url, headers=self._headers())

    async def events(self, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """The events of a run, as JSON.

        Raises:
            AgentFault: the agent cannot be reached, refuses, or answers what is not AG-UI. It is retryable only if the
                run has not begun.
        """
        with _httpx_faults():
            async with (
                client(MAX_MESSAGE, **await self._options()) as http,
                http.stream("POST", self._url, json=body, headers=self._headers()) as response,
            ):
                self._check(response)
                async with aclosing(_events(response)) as events:
                    async for event in events:
                        yield event

    async def _options(self) -> dict[str, Any]:
        await self._network.confine()
        timeout = httpx.Timeout(CONNECT, read=self._silence)
        return {"timeout": timeout, "transport": checked_transport(self._network.addresses)}

    def _headers(self) -> Mapping[str, str]:
        authorization = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return {"Accept": EVENTS, **authorization}

    def _check(self, response: httpx.Response) -> None:
        log_refusal(response, has_token=bool(self._token))
        response.raise_for_status()
        if not response.headers.get("content-type", "").lower().startswith(EVENTS):
            raise AgentFault(NOT_AGUI)


@contextmanager
def _httpx_faults() -> Iterator[None]:
    """Raises an `AgentFault` for an error of httpx."""
    try:
        yield
    except (httpx.HTTPError, OSError) as error:
        wrapper = OSError()  # as the SDK's client has it: `fault_of` reads the cause
        wrapper.__cause__ = error
        fault = fault_of(wrapper)
        fault.retryable = _is_refused(error)
        raise fault from error


def _is_refused(error: Exception) -> bool:
    """Whether no run has begun, and one may later."""
    match error:
        case httpx.HTTPStatusError(response=response):
            return response.status_code in (429, 503)
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return True
        case _:
            return isinstance(error, OSError)  # its name was not found


async def _events(response: httpx.Response) -> AsyncGenerator[Any, None]:
    decoder = EventStreamDecoder()
    async for chunk in response.aiter_bytes():
        try:
            for event in decoder.feed(chunk):
                yield json.loads(event.data)
        except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
            raise AgentFault(NOT_AGUI) from None
