"""The address of a server as users type it."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette

from a2a_canvas.server.client.conversation.address import agent_addresses, server_url
from a2a_canvas.server.client.conversation.state_file import remember
from tests.loopback import serving_app
from tests.server.client.client_harness import Script, card, card_route, typed, unused_url, update


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


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("18431", "18431 is not an address. Did you mean http://127.0.0.1:18431?"),
        ("http://127.0.0.1:99999", "Port 99999 is invalid: 1 to 65535"),
        ("localhost:0", "Port 0 is invalid: 1 to 65535"),
        (
            "http://127.0.0.1:8000/#share=a2al_secret",
            "This is a link for a browser. In a terminal use --url http://127.0.0.1:8000, set A2A_CANVAS_TOKEN to "
            "what follows #share=, and give --context ID, which a2a-canvas contexts lists",
        ),
    ],
)
async def test_what_cannot_be_the_address_of_a_server_is_said_before_anything_is_sent(address: str, said: str) -> None:
    got = await typed("send", "hi", "--url", address)
    assert (got.code, got.out, got.err) == (2, "", f"a2a-canvas: {said}\n")


async def test_the_option_of_serve_is_told_with_the_one_of_clients() -> None:
    got = await typed("send", "hi", "--port", "9000")
    said = "--port is an option of serve; clients take --url http://127.0.0.1:PORT. See a2a-canvas send --help."
    assert (got.code, got.out, got.err) == (2, "", f"a2a-canvas: {said}\n")


@pytest.mark.parametrize("path", ["/", "/rest", "/rest/v1", "/v1/", "/canvas/stream", "/artifacts/c/doc"])
def test_an_agent_is_looked_for_above_the_path_of_a_binding_too(path: str) -> None:
    assert agent_addresses(f"http://h/writer{path}")[-1] == "http://h/writer"


@pytest.mark.parametrize("path", ["", "/", "/rest", "/v1", "/.well-known/agent-card.json"])
async def test_the_path_of_the_card_or_of_a_binding_is_understood_without_a_scheme(path: str) -> None:
    async with serving_app(Script([[update("COMPLETED", "Done.")]]).app) as url:
        got = await typed("send", "hi", "--url", url.removeprefix("http://") + path)
    assert (got.code, got.out) == (0, "Done.\ncontext   c1\ntask      t1\n")


async def test_without_a_server_the_advice_has_its_port_and_the_server_used_last() -> None:
    url = unused_url()
    got = (await typed("contexts", "--url", url)).err.splitlines()
    start = f"Start one with: a2a-canvas serve --port {url.rpartition(':')[2]}"
    assert got == [f"a2a-canvas: No server answers at {url}", start, "To use another: --url or $A2A_CANVAS_URL"]
    remember("http://127.0.0.1:9", "c1")
    got = (await typed("contexts", "--url", url)).err.splitlines()
    last = (
        "The last conversation is with http://127.0.0.1:9. To use that server: export A2A_CANVAS_URL=http://127.0.0.1:9"
    )
    assert got[1:] == [start, last]


async def test_a_server_without_tls_is_told_with_its_address() -> None:
    async with serving_app(Script([]).app) as url:
        got = await typed("contexts", "--url", url.replace("http", "https"))
    said = f"Something answers at {url.replace('http', 'https')}, but not with TLS: try {url}"
    assert (got.code, got.err) == (1, f"a2a-canvas: {said}\n")


async def test_an_agent_below_such_a_path_is_found_there() -> None:
    async with serving_app(lambda url: Starlette(routes=[card_route(card(url, "PIGEON"), path="/v1")])) as url:
        got = await typed("send", "hi", "--url", f"{url}/v1")
    assert "PIGEON" in got.err


async def test_the_environment_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving_app(Script([[update("INPUT_REQUIRED", "Which?")]]).app) as url:
        monkeypatch.setenv("A2A_CANVAS_URL", url)
        got = await typed("send", "hi")
    assert got.out.endswith("Answer with: a2a-canvas send --task t1 …\n")
