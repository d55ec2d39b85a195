"""Calls of other agents on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.tool_sources.remote_agents.agents_source import RemoteAgents
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import FakeLLM, answer, text
from tests.fakes import tool as call
from tests.server.agent.turn.turn_harness import TurnHarness
from tests.server.agent.turn.turn_life import Life
from tests.server.agent.turn.turn_scripts import START


@asynccontextmanager
async def asking(*urls: str, tokens: dict[str, str] | None = None, seconds: float = 60) -> AsyncIterator[RemoteAgents]:
    """The agents at these addresses as tools."""
    source = RemoteAgents(urls, tokens, seconds)
    await source.start()
    try:
        yield source
    finally:
        await source.stop()


def only(source: RemoteAgents, binding: str, version: str) -> None:
    """From now on, cards are read as if they offered this interface alone."""
    for client in source._clients.values():
        read = client._card

        async def card(read: Any = read) -> pb.AgentCard:
            found = await read()
            kept = [
                each
                for each in found.supported_interfaces
                if (each.protocol_binding, each.protocol_version) == (binding, version)
            ]
            assert kept
            del found.supported_interfaces[:]
            found.supported_interfaces.extend(kept)
            return found

        client._card = card  # type: ignore[method-assign]


def calls(source: RemoteAgents, message: str, **given: Any) -> list[Any]:
    [tool] = source.tools()
    return [answer(call("T1", tool.name, {"message": message, **given})), answer(text("Done."))]


async def asked(source: RemoteAgents, message: str, **given: Any) -> TurnHarness:
    """A turn in which the model asks the only agent."""
    turn = TurnHarness(*calls(source, message, **given), tools=(*TOOLS, *source.tools()))
    await turn.run()
    return turn


def life(source: RemoteAgents, message: str) -> Life:
    return Life(FakeLLM(calls(source, message)), START, tools=(*TOOLS, *source.tools()))


def result(turn: TurnHarness) -> str:
    [one] = turn.results()
    return ("ERROR " if one.is_error else "") + one.content


async def texts(turn: TurnHarness) -> dict[str, str]:
    return {each.artifact_id: each.text for each in await turn.store.list("context")}
