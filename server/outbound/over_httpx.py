"""The rules of `outbound/__init__.py` for httpx."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx

from a2a_canvas.server.outbound.answers import MAX_MESSAGE, UNCOMPRESSED, AnswerMeter

Addresses = Callable[[str, int], Awaitable[Sequence[str]]]
"""The allowed addresses of a host; raises `UnreadableAnswer`, or `OSError` if there are none."""


class UnreadableAnswer(httpx.RequestError):
    """An answer is too large, compressed or not JSON, or its address is not allowed; `str()` says why."""


def make_limit_hook(most: int = MAX_MESSAGE) -> Callable[[httpx.Response], Awaitable[None]]:
    """A hook that limits the answers of a client with the headers `UNCOMPRESSED`."""

    async def limit(response: httpx.Response) -> None:
        response.stream = _HttpxBody(response.stream, AnswerMeter.for_response(response, most))

    return limit


class _HttpxBody(httpx.AsyncByteStream):
    """A body that breaks off at its limit."""

    def __init__(self, stream: Any, meter: AnswerMeter) -> None:
        self._stream, self._meter = stream, meter

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._meter.read(self._stream, UnreadableAnswer)

    async def aclose(self) -> None:
        await self._stream.aclose()


def client(most: int = MAX_MESSAGE, **options: Any) -> httpx.AsyncClient:
    """A client for addresses chosen by the operator: it limits answers and follows no redirects."""
    return httpx.AsyncClient(headers=UNCOMPRESSED, event_hooks={"response": [make_limit_hook(most)]}, **options)


def json_of(response: httpx.Response) -> Any:
    """The JSON of an answer; raises `UnreadableAnswer`."""
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        raise UnreadableAnswer("its answer is not JSON") from None


def checked_transport(addresses: Addresses) -> httpx.AsyncBaseTransport:
    """A transport that connects only to checked addresses, except through the proxies of the environment.

    A proxy resolves names itself; hosts in `NO_PROXY` are reached directly, at checked addresses.
    """
    return ProxiedTransport(CheckedTransport(addresses), getproxies())


class ProxiedTransport(httpx.AsyncBaseTransport):
    """Sends a request through the proxy of its scheme; without one, or to a host in `NO_PROXY`, through `direct`.

    httpx's own proxy support would not use `direct` for those hosts.

    Args:
        proxies: addresses by scheme, or by `all`.
    """

    def __init__(self, direct: httpx.AsyncBaseTransport, proxies: Mapping[str, str]) -> None:
        self._direct = direct
        urls = {scheme: proxies.get(scheme) or proxies.get("all") for scheme in ("http", "https")}
        self._proxies = {scheme: _proxy_transport(url) for scheme, url in urls.items() if url}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        proxy = self._proxies.get(request.url.scheme)
        past = proxy_bypass(f"{request.url.host}:{_port(request.url)}")
        transport = self._direct if proxy is None or past else proxy
        return await transport.handle_async_request(request)

    async def aclose(self) -> None:
        for transport in (self._direct, *self._proxies.values()):
            await transport.aclose()


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _proxy_transport(proxy: str) -> httpx.AsyncHTTPTransport:
    return httpx.AsyncHTTPTransport(proxy=proxy if "://" in proxy else f"http://{proxy}")


class CheckedTransport(httpx.AsyncBaseTransport):
    """Connects only to the addresses that passed a check, whatever a name server says a moment later.

    Name, certificate and the header Host are those of the URL. Hosts share no connection, even at one address.
    """

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._by_host: dict[str, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host, port = request.url.host, _port(request.url)
        transport = self._by_host.setdefault(host, httpx.AsyncHTTPTransport())
        try:
            found = await self._addresses(host, port)
        except OSError as error:
            raise httpx.ConnectError(f"{host} has no address", request=request) from error
        fault: httpx.TransportError = httpx.ConnectError(f"{host} has no address", request=request)
        for address in found:
            try:
                return await transport.handle_async_request(_at_address(request, address))
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                fault = error
        raise fault

    async def aclose(self) -> None:
        for transport in self._by_host.values():
            await transport.aclose()


def _at_address(request: httpx.Request, address: str) -> httpx.Request:
    """The request, sent to one address of its host."""
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
