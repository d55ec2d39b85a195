"""Where httpx connects to, and how much it reads."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from a2a_canvas.server.outbound.over_httpx import CheckedTransport, UnreadableAnswer, checked_transport, client, json_of
from tests.certificates import issue


@asynccontextmanager
async def web_server(
    head: str, body: bytes = b"", tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, list[str]]]:
    """The port of a server that gives one answer to everything, and the heads of requests that it got."""
    heads: list[str] = []

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(reply, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1], heads


async def test_a_host_is_connected_to_at_the_addresses_of_the_check_in_turn() -> None:
    asked = []

    async def addresses(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["127.0.0.2", "127.0.0.1"]  # nobody listens at the first

    async with web_server("200 OK") as (port, heads), httpx.AsyncClient(transport=CheckedTransport(addresses)) as http:
        response = await http.get(f"http://a.example:{port}/x")
    assert response.status_code == 200
    assert asked == [("a.example", port)]
    assert heads[0].startswith("GET /x HTTP/1.1\r\n")
    assert f"host: a.example:{port}" in heads[0].lower()


@pytest.mark.parametrize("found", [[], OSError("unknown")])
async def test_a_host_without_addresses_is_not_connected_to(found: list[str] | OSError) -> None:
    async def addresses(host: str, port: int) -> list[str]:
        if isinstance(found, OSError):
            raise found
        return found

    async with httpx.AsyncClient(transport=CheckedTransport(addresses)) as http:
        with pytest.raises(httpx.ConnectError, match=r"a\.example has no address"):
            await http.get("http://a.example/")


async def test_the_certificate_must_be_that_of_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def addresses(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    certificate, served_with = issue("a.example", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with (
        web_server("200 OK", tls=served_with) as (port, _),
        httpx.AsyncClient(transport=CheckedTransport(addresses)) as http,
    ):
        assert (await http.get(f"https://a.example:{port}/")).status_code == 200
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await http.get(f"https://b.example:{port}/")


async def test_a_proxy_of_the_environment_makes_the_connection_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async def addresses(host: str, port: int) -> list[str]:
        raise AssertionError

    monkeypatch.delenv("NO_PROXY", raising=False)
    for variable in ("HTTP_PROXY", "ALL_PROXY"):
        with monkeypatch.context() as proxy:
            async with web_server("200 OK") as (port, heads):
                proxy.setenv(variable, f"http://127.0.0.1:{port}")
                async with client(transport=checked_transport(addresses)) as http:
                    await http.get("http://a.example/")
            assert heads[0].startswith("GET http://a.example/ HTTP/1.1")


@pytest.mark.parametrize("proxy", ["HTTP_PROXY", "ALL_PROXY", None])
@pytest.mark.parametrize("past", ["metadata.example", "127.0.0.1", ".example,127.0.0.1", "*", "127.0.0.1:{port}"])
async def test_a_host_that_no_proxy_is_asked_for_is_connected_to_at_checked_addresses(
    monkeypatch: pytest.MonkeyPatch, proxy: str | None, past: str
) -> None:
    async def addresses(host: str, port: int) -> list[str]:
        raise UnreadableAnswer(f"{host} may not be connected to")

    host = "127.0.0.1" if "127" in past else "metadata.example"
    async with web_server("200 OK") as (port, heads):
        for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.delenv(variable, raising=False)
        if proxy:
            monkeypatch.setenv(proxy, f"http://127.0.0.1:{port}")
        monkeypatch.setenv("NO_PROXY", past.format(port=port))
        async with client(transport=checked_transport(addresses)) as http:
            with pytest.raises(UnreadableAnswer, match="may not be connected to"):
                await http.get(f"http://{host}:{port}/")
    assert heads == []


@pytest.mark.parametrize(
    ("head", "body", "why"),
    [
        ("200 OK", b"x" * 101, "it sends more than 0 MB at once"),
        ("404 Not Found", b"x" * 101, "it sends more than 0 MB at once"),
        ("200 OK\r\nContent-Encoding: gzip", b"", "it compresses its answers although it was asked not to"),
    ],
)
async def test_an_answer_beyond_its_limit_is_not_read(head: str, body: bytes, why: str) -> None:
    async with web_server(head, body) as (port, heads), client(most=100, trust_env=False) as http:
        with pytest.raises(UnreadableAnswer, match=why):
            await http.get(f"http://127.0.0.1:{port}/")
    assert "accept-encoding: identity" in heads[0].lower()


async def test_no_redirect_is_followed() -> None:
    async with web_server("302 Found\r\nLocation: http://127.0.0.1:9/") as (port, _), client(trust_env=False) as http:
        assert (await http.get(f"http://127.0.0.1:{port}/")).status_code == 302


@pytest.mark.parametrize("text", ["[" * 200_000, "{", ""])
def test_what_is_no_json_cannot_be_read(text: str) -> None:
    with pytest.raises(UnreadableAnswer, match="is not JSON"):
        json_of(httpx.Response(200, text=text))
