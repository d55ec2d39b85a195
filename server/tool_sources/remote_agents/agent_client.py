"""The connection to one agent, 1.0 or 0.3, over JSON-RPC or HTTP+JSON: its card, its tokens, and limits.

Rule 1: every failure is an `AgentFault`, which says whether another try may succeed.
Rule 2: redirects are not followed; `token_for` decides where a token is sent; an agent on the internet cannot send us
        to a private network.
Rule 3: answers and events of streams are limited to `MAX_MESSAGE` bytes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import AgentCardResolutionError
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.a2a_client.agent_connection import AgentConnection
from a2a_canvas.server.a2a_client.agent_fault import AgentFault, agent_faults
from a2a_canvas.server.a2a_client.timestamps import add_zones_to_answer
from a2a_canvas.server.outbound.addresses import Lookup, SystemLookup
from a2a_canvas.server.outbound.answers import MAX_MESSAGE
from a2a_canvas.server.outbound.over_httpx import checked_transport, client
from a2a_canvas.server.outbound.token_origin import TokenOrigin, is_downgrade, token_for
from a2a_canvas.server.tool_sources.remote_agents.agent_card import (
    BINDINGS,
    host_of,
    needs_credentials,
    token_header,
    usable_interfaces,
    without_downgrades,
)
from a2a_canvas.server.tool_sources.remote_agents.agent_network import AgentNetwork, into_private_network

logger = logging.getLogger(__name__)
logging.getLogger("a2a.client").setLevel(logging.CRITICAL)  # it logs what others send; what matters is logged here

SILENCE = 60.0
"""Seconds without a byte after which a connection counts as broken; also the time-out of answers without a stream."""
CARD_TIMEOUT = 10.0
TOKENS = "A2A_CANVAS_AGENT_TOKENS"
OLDER_CARD = "/.well-known/agent.json"


class AgentClient(AgentConnection):
    """An agent at an address.

    Args:
        url: its address, or that of its card.
        tokens: by origin (`token_for`).
        network: where it may lead, known from before.
    """

    def __init__(
        self,
        url: str,
        tokens: Mapping[str, str] | None = None,
        silence: float = SILENCE,
        lookup: Lookup | None = None,
        network: AgentNetwork | None = None,
    ) -> None:
        super().__init__(silence=silence)
        self._url = url.rstrip("/")
        self._tokens = tokens or {}
        self._header = ("Authorization", "Bearer ")
        self._network = network or AgentNetwork(host_of(url), lookup or SystemLookup())
        self._http = client(
            MAX_MESSAGE,
            timeout=httpx.Timeout(CARD_TIMEOUT, read=silence),
            transport=checked_transport(self._network.addresses),
        )
        self._http.event_hooks["request"].append(self._authorize)
        self._http.event_hooks["response"] += [self._note_refusal, add_zones_to_answer]

    async def read_card(self) -> pb.AgentCard:
        """Read the agent's card, which the other calls need."""
        with agent_faults():
            async with asyncio.timeout(CARD_TIMEOUT):
                card = await self._card()
                card = await self._check_card(card)
            self._note_tokens(card)
            self._header = token_header(card)
            config = ClientConfig(httpx_client=self._http, supported_protocol_bindings=list(BINDINGS), polling=True)
            self._client = ClientFactory(config).create(card)
            self.streams = card.capabilities.streaming
        return card

    async def _card(self) -> pb.AgentCard:
        if self._url.endswith(".json"):
            return await A2ACardResolver(self._http, self._url, "").get_agent_card()
        try:
            return await A2ACardResolver(self._http, self._url).get_agent_card()
        except AgentCardResolutionError as error:
            if error.status_code != 404:
                raise
        return await A2ACardResolver(self._http, self._url, OLDER_CARD).get_agent_card()

    async def _check_card(self, card: pb.AgentCard) -> pb.AgentCard:
        """The card with only the interfaces that may be used."""
        if not card.name.strip():
            raise AgentFault("its card has no name")
        if not (interfaces := usable_interfaces(card)):
            raise AgentFault(f"its card offers neither of {' and '.join(BINDINGS)}")
        await self._network.confine()
        allowed = [each for each in interfaces if await self._network.allows(each.url)]
        if not allowed:
            raise AgentFault(into_private_network(host_of(interfaces[0].url)))
        checked = pb.AgentCard()
        checked.CopyFrom(card)
        del checked.supported_interfaces[:]
        checked.supported_interfaces.extend(without_downgrades(allowed, self._url))
        return checked

    def _note_tokens(self, card: pb.AgentCard) -> None:
        """Log a missing token, or one that is not sent to the address in the card."""
        urls = [each.url for each in card.supported_interfaces]
        if not needs_credentials(card) or any(token_for(url, self._url, self._tokens) for url in urls):
            return
        needed = TokenOrigin.parse(urls[0]).authority
        if is_downgrade(urls[0], self._url):
            logger.warning("The agent at %s has an address without TLS in its card: no token is sent there", needed)
        else:
            logger.warning("The agent at %s requires credentials: set %s=%s=TOKEN", needed, TOKENS, needed)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _authorize(self, request: httpx.Request) -> None:
        if token := token_for(str(request.url), self._url, self._tokens):
            name, before = self._header
            request.headers[name] = before + token

    async def _note_refusal(self, response: httpx.Response) -> None:
        log_refusal(response, has_token=self._header[0] in response.request.headers)


def log_refusal(response: httpx.Response, *, has_token: bool) -> None:
    """Log that an agent refuses access, if it does, and the setting to change."""
    if response.status_code in (401, 403):
        where = TokenOrigin.parse(str(response.request.url)).authority
        given = "the token that it was sent" if has_token else "no token"
        form = "The agent at %s refuses access (HTTP %d) with %s: set %s=%s=TOKEN"
        logger.warning(form, where, response.status_code, given, TOKENS, where)
