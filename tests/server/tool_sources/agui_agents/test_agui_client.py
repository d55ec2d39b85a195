"""The connection to an AG-UI agent: what it refuses to read, and where it does not connect."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.outbound.answers import MAX_MESSAGE
from a2a_canvas.server.tool_sources.agui_agents.agui_client import AguiClient
from tests.loopback import serving_app
from tests.server.tool_sources.agui_agents.agui_server import STARTED, agui_server

STREAM = "text/event-stream"
COMPRESSED = {"Content-Encoding": "gzip"}


async def fault(url: str, **options) -> str:
    with pytest.raises(AgentFault) as raised:
        [event async for event in AguiClient(url, **options).events({})]
    return str(raised.value)


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (lambda: Response("{}", media_type="application/json"), "not AG-UI"),
        (lambda: Response("data: {\n\n", media_type=STREAM), "not AG-UI"),
        (lambda: Response(b"data: \xff\n\n", media_type=STREAM), "not AG-UI"),
        (lambda: Response("data: " + "[" * 100_000 + "\n\n", media_type=STREAM), "not AG-UI"),
        (lambda: Response("x", media_type=STREAM, headers=COMPRESSED), "compresses"),
        (lambda: Response(b"x" * (MAX_MESSAGE + 1), media_type=STREAM), "more than 16 MB"),
        (lambda: Response(status_code=307, headers={"Location": "http://10.0.0.1/"}), "redirects"),
        (lambda: Response(status_code=403), "refuses access"),
    ],
)
async def test_an_answer_that_is_not_read_is_a_fault(response, why: str) -> None:
    async def answer(request) -> Response:
        return response()

    app = Starlette(routes=[Route("/", answer, methods=["POST"])])
    async with serving_app(lambda url: app) as url:
        assert why in await fault(f"{url}/")


async def test_an_agent_that_is_silent_is_given_up() -> None:
    never = asyncio.Event()
    async with agui_server([STARTED, never]) as server:
        assert await fault(server.url, silence=0.05) == "it does not answer"
        never.set()


async def test_nothing_listens() -> None:
    async with agui_server([]) as server:
        url = server.url
    assert "the connection to it was lost" in await fault(url)


async def test_an_agent_on_the_internet_cannot_move_into_a_private_network() -> None:
    addresses = iter([["93.184.216.34"], ["10.0.0.1"]])

    async def lookup(host: str, port: int) -> list[str]:
        return next(addresses)

    assert "private network" in await fault("http://agent.example.com/", lookup=lookup)
