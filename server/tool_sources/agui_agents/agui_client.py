"""The connection to one AG-UI agent: a run is a POST, whose answer streams events.

Rule 1: every failure is an `AgentFault`.
Rule 2: tokens, limits of size and address rules are those of other A2A agents (`remote_agents/agent_client.py`).
Rule 3: an agent ends a run whose stream is closed; nothing else cancels it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

import httpx

from a2a_canvas.server.a2a_client.agent_fault import AgentFault, fault_of
from a2a_canvas.server.agent.models.sse_decoder import EventStreamDecoder
from a2a_canvas.server.outbound.addresses import Lookup, SystemLookup
from a2a_canvas.server.outbound.answers import MAX_MESSAGE
from a2a_canvas.server.outbound.over_httpx import checked_transport, client
from a2a_canvas.server.outbound.token_origin import TokenOrigin, token_for
from a2a_canvas.server.tool_sources.remote_agents.agent_card import host_of
from a2a_canvas.server.tool_sources.remote_agents.agent_client import SILENCE, TOKENS
from a2a_canvas.server.tool_sources.remote_agents.agent_network import AgentNetwork

logger = logging.getLogger(__name__)

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

    async def events(self, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """The events of a run, as JSON.

        Raises:
            AgentFault: the agent cannot be reached, refuses, or answers what is not AG-UI.
        """
        with _httpx_faults():
            await self._network.confine()
            timeout = httpx.Timeout(CONNECT, read=self._silence)
            transport = checked_transport(self._network.addresses)
            async with (
                client(MAX_MESSAGE, timeout=timeout, transport=transport) as http,
                http.stream("POST", self._url, json=body, headers=self._headers()) as response,
            ):
                self._check(response)
                async with aclosing(_events(response)) as events:
                    async for event in events:
                        yield event

    def _headers(self) -> Mapping[str, str]:
        authorization = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return {"Accept": EVENTS, **authorization}

    def _check(self, response: httpx.Response) -> None:
        if response.status_code in (401, 403):
            where, given = (
                TokenOrigin.parse(self._url).authority,
                "the token that it was sent" if self._token else "no token",
            )
            form = "The agent at %s refuses access (HTTP %d) with %s: set %s=%s=TOKEN"
            logger.warning(form, where, response.status_code, given, TOKENS, where)
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
        raise fault_of(wrapper) from error


async def _events(response: httpx.Response) -> AsyncGenerator[Any, None]:
    decoder = EventStreamDecoder()
    async for chunk in response.aiter_bytes():
        try:
            for event in decoder.feed(chunk):
                yield json.loads(event.data)
        except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
            raise AgentFault(NOT_AGUI) from None
