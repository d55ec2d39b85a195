"""The networks that an agent may send us to: from the internet not to a private one, even if its DNS name moves there.

Rule: addresses are checked at each connection, against those that the agent had when its card was read.
"""

from __future__ import annotations

from collections.abc import Sequence

from a2a_canvas.server.outbound.addresses import Lookup, literal_address
from a2a_canvas.server.outbound.over_httpx import UnreadableAnswer
from a2a_canvas.server.outbound.token_origin import TokenOrigin
from a2a_canvas.server.tool_sources.remote_agents.agent_card import may_lead


class AgentNetwork:
    """The addresses of one agent, and of the hosts in its card."""

    def __init__(self, host: str, lookup: Lookup) -> None:
        self._host = host
        self._lookup = lookup
        self._own: Sequence[str] = ()
        self._confined = False

    async def confine(self) -> None:
        """From now on allow only what the agent's current addresses allow."""
        if not self._confined:
            self._own = self._own or await self.addresses(self._host, 0)
            self._confined = True

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses to connect to; raises `UnreadableAnswer`."""
        literal = literal_address(host)
        found = (literal,) if literal else await self._lookup(host, port)
        if self._confined and not may_lead(self._own, found):
            raise UnreadableAnswer(into_private_network(host))
        if host == self._host and not self._confined:
            self._own = found
        return found

    async def allows(self, url: str) -> bool:
        """Whether the agent may send us there."""
        to = TokenOrigin.parse(url)
        try:
            return to.host == self._host or bool(await self.addresses(to.host, to.port))
        except UnreadableAnswer:
            return False


def into_private_network(host: str) -> str:
    return f"it leads to {host}, which is in a private network"
