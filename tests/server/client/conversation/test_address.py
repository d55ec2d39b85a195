"""The address of a server as users type it."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette

from a2a_canvas.server.client.conversation.address import agent_addresses, server_url
from tests.server.client.client_harness import Script, card, card_route, serving, typed, update


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("localhost:8000", "http://localhost:8000"),
        ("127.0.0.1:8000/rest", "http://127.0.0.1:8000/rest"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("canvas", "http://canvas"),
        ("agents.example.com/writer", "https://agents.example.com/writer"),
        ("https://h:1/", "https://h:1/"),
        ("ftp://h", "ftp://h"),
    ],
)
def test_an_address_without_a_scheme_gets_one(typed: str, url: str) -> None:
    assert server_url(typed) == url


@pytest.mark.parametrize("path", ["/", "/rest", "/rest/v1", "/v1/", "/canvas/stream", "/artifacts/c/doc"])
def test_an_agent_is_looked_for_above_the_path_of_a_binding_too(path: str) -> None:
    assert agent_addresses(f"http://h/writer{path}")[-1] == "http://h/writer"


@pytest.mark.parametrize("path", ["", "/", "/rest", "/v1", "/.well-known/agent-card.json"])
async def test_the_path_of_the_card_or_of_a_binding_is_understood_without_a_scheme(path: str) -> None:
    async with serving(Script([[update("COMPLETED", "Done.")]]).app) as url:
        got = await typed("send", "hi", "--url", url.removeprefix("http://") + path)
    assert (got.code, got.out) == (0, "Done.\ncontext   c1\ntask      t1\n")


async def test_an_agent_below_such_a_path_is_found_there() -> None:
    async with serving(lambda url: Starlette(routes=[card_route(card(url, "PIGEON"), path="/v1")])) as url:
        got = await typed("send", "hi", "--url", f"{url}/v1")
    assert "PIGEON" in got.err


async def test_the_environment_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(Script([[update("INPUT_REQUIRED", "Which?")]]).app) as url:
        monkeypatch.setenv("A2A_CANVAS_URL", url)
        got = await typed("send", "hi")
    assert got.out.endswith("Answer with: a2a-canvas send --task t1 …\n")
