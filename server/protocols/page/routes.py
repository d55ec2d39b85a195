"""The page: `GET /` for a browser, its files at `/page/{digest}/…`, the frame of HTML programs at `/page/program`, and
the documents of a shared conversation for frames of other pages at `/embed`.

Rules:
1. `GET /` is the page if `Accept` prefers HTML, and otherwise a short JSON object that says where the agent card is.
   A server without a page has the JSON for everyone. `POST /` is JSON-RPC (`a2a_v1/bindings/jsonrpc.py`).
2. All addresses in the page are relative: it works behind a proxy that serves it below a path.
3. A file's address contains the digest of all files, so a browser can cache it forever. The page itself is revalidated.
4. The page shows content from a model and from strangers. The policy lets it run only its own modules, frame only
   previews without an address and rule 6, make HTML from strings in two named places, and connect to this server and
   the origins that the operator names.
5. Style elements need the nonce of their answer. A cached page keeps the policy that it came with: a 304 answer has no
   policy.
6. Programs of strangers run in `/page/program`, in an origin of their own, also if it is opened elsewhere. The page's
   `frame-src` names this route alone, so that a program cannot load another address into its frame. Its own policy
   refuses all requests. Two headers are needed: a CSP knows neither the connections that browsers make in advance nor,
   in any browser so far, WebRTC.
7. No page of another origin can frame the page, where a user could be made to press what they do not see. `/embed` only
   shows documents, so origins that the operator names may frame it. The link to them is in the fragment, and so in no
   request and no log. It frames previews alone, because a program runs only in a frame of the page (rule 6).
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.errors import MethodNotFoundError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from a2a_canvas.server.protocols.edge.http_requests import (
    ANYTHING,
    conditional_response,
    etag_of,
    is_not_modified,
    negotiate,
)
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.protocols.guard.error_forms import rest_response
from a2a_canvas.server.protocols.page.assets import IDENTITY, NONCE, QUICK_CODINGS, Asset, Assets, read_assets
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.store.text.wording import format_value

CANVAS: Final = Path(__file__).parents[2] / "canvas"
FOLDERS: Final = {"": CANVAS / "built", "vendor/": CANVAS / "vendor"}
"""The bundles of the page (`make page`), and those of its libraries (`make vendor`)."""

JSON: Final = "application/json"
HTML: Final = "text/html"
POLICY: Final = "Content-Security-Policy"
NONCE_BYTES: Final = 16
FRAMES: Final = "{frames}"
"""The placeholder in the policy for what the page may frame."""
NO_FRAMES: Final = "'none'"
EMBED: Final = "embed"
PROGRAM: Final = "page/program"
"""The frame of HTML programs, relative to the page."""
PROGRAM_HEADERS: Final = {
    POLICY: (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:;"
        " connect-src 'none'; webrtc 'block'; form-action 'none'; base-uri 'none'; sandbox allow-scripts;"
        " frame-ancestors 'self'"
    ),
    "Connection-Allowlist": "()",
    "X-DNS-Prefetch-Control": "off",
}

REVALIDATED: Final = {"Cache-Control": "no-cache", "Vary": "Accept, Accept-Encoding"}
OWN_COPY: Final = {**REVALIDATED, "Cache-Control": "private, no-cache"}
"""Browsers must not share a nonce, so no shared cache may store the page."""
IMMUTABLE: Final = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
FEATURES: Final = (
    *("accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "hid", "magnetometer"),
    *("microphone", "midi", "payment", "screen-wake-lock", "serial", "usb", "xr-spatial-tracking"),
)
"""Browser features that the page never uses."""


def about(settings: Settings, card: pb.AgentCard) -> dict[str, Any]:
    """The JSON object of `GET /`, for programs."""
    fields = {"name": card.name, "version": card.version, "agentCard": settings.url + AGENT_CARD_WELL_KNOWN_PATH}
    return fields | ({"page": f"{settings.url}/", "servers": settings.page} if settings.page is not None else {})


def page_routes(about: Mapping[str, Any], servers: Sequence[str] | None, embedders: Sequence[str] = ()) -> list[Route]:
    """The routes of the page.

    Args:
        about: the JSON object of `GET /`; if there is a page, it also has `assets`, the relative address of its files.
        servers: origins of other servers that the page may connect to; None for no page, only the JSON object.
        embedders: origins whose pages may frame `/embed`.
    """
    endpoint = _PageEndpoint(about, security_headers(servers or ()), security_headers((), embedders))
    if servers is None:
        return [Route("/", endpoint.about, methods=["GET"])]
    program = Route(f"/{PROGRAM}", endpoint.program, methods=["GET"])
    files = Route(f"/page/{{digest}}/{{name:{ANYTHING}}}", endpoint.file, methods=["GET"])
    embed = Route(f"/{EMBED}", endpoint.embed, methods=["GET"])
    return [Route("/", endpoint.index, methods=["GET"]), program, files, embed]


def security_headers(servers: Iterable[str], embedders: Iterable[str] = ()) -> dict[str, str]:
    """The headers of every answer of the page (rules 4 and 7)."""
    return {
        POLICY: content_security_policy(servers, embedders),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": ", ".join(f"{feature}=()" for feature in FEATURES),
        "Referrer-Policy": "no-referrer",
    }


def content_security_policy(servers: Iterable[str], embedders: Iterable[str] = ()) -> str:
    """The policy of the page, with the placeholders `NONCE` and `FRAMES`.

    Style attributes may be inline: previews use many, and they load nothing that `img-src` does not allow.
    """
    sources = {
        "default-src": "'none'",
        "script-src": "'self'",
        "worker-src": "'self'",
        "style-src": f"'self' 'nonce-{NONCE}'",
        "style-src-attr": "'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self'",
        "connect-src": " ".join(("'self'", *servers)),
        "frame-src": FRAMES,
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": " ".join(embedders) or "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "dompurify a2a-canvas",
    }
    return "; ".join(f"{name} {allowed}" for name, allowed in sources.items())


def program_sources(host: str, path: str, public: str) -> str:
    """The addresses of the frame of programs, as a policy names them: without a scheme it is that of the page.

    Args:
        host: as the browser named it, with its port.
        path: of the page there, if a proxy or an application has it below one, with the final slash.
        public: the public address of the page.
    """
    addresses = dict.fromkeys((f"{host}{path}{PROGRAM}", f"{public.partition('://')[2]}{PROGRAM}"))
    return " ".join(filter(_SOURCE.fullmatch, addresses)) or "'none'"


_SOURCE: Final = re.compile(r"[\w.-]+(:\d+)?(/[\w.~%-]*)+", re.ASCII)
"""A policy cannot name the address of an IPv6 host."""


@cache
def _assets() -> Assets:
    return read_assets(FOLDERS)


class _PageEndpoint:
    def __init__(self, about: Mapping[str, Any], security: Mapping[str, str], of_embed: Mapping[str, str]) -> None:
        self._about = about
        self._of_page = security
        self._of_embed = of_embed
        without = security[POLICY].replace(f" 'nonce-{NONCE}'", "").replace(FRAMES, NO_FRAMES)
        self._headers = {**security, POLICY: without}

    async def about(self, request: Request) -> Response:
        return self._json(request, self._about)

    async def index(self, request: Request) -> Response:
        assets = await asyncio.to_thread(_assets)
        if negotiate(_header(request, "accept"), (JSON, HTML)) != HTML:
            return self._json(request, {**self._about, "assets": assets.address})
        path = f"{request.scope.get('root_path', '')}/"
        frames = program_sources(_header(request, "host"), path, self._about["page"])
        return await self._page(request, assets.index, self._of_page, frames)

    async def embed(self, request: Request) -> Response:
        assets = await asyncio.to_thread(_assets)
        return await self._page(request, assets.embed, self._of_embed, NO_FRAMES)

    async def _page(self, request: Request, page: Asset, security: Mapping[str, str], frames: str) -> Response:
        coding = _coding(request, page)
        policy = security[POLICY].replace(FRAMES, frames)
        tag = etag_of(page.body, f"{coding} {policy}")
        caching = {**OWN_COPY, "ETag": tag}
        if is_not_modified(request, tag):
            return Response(status_code=304, headers=caching)
        nonce = secrets.token_urlsafe(NONCE_BYTES)
        body = await asyncio.to_thread(QUICK_CODINGS[coding], page.body.replace(NONCE.encode(), nonce.encode()))
        own = {POLICY: policy.replace(NONCE, nonce), "Content-Type": page.media_type, **_encoding(coding)}
        return Response(body, headers={**security, **caching, **own})

    async def program(self, request: Request) -> Response:
        assets = await asyncio.to_thread(_assets)
        return await self._send(request, assets.program, REVALIDATED | PROGRAM_HEADERS)

    async def file(self, request: Request) -> Response:
        assets = await asyncio.to_thread(_assets)
        digest, name = request.path_params["digest"], request.path_params["name"]
        if digest != assets.digest:
            return self._not_found("The page has changed since it was loaded. Reload it.")
        asset = assets.files.get(name)
        if asset is None:
            return self._not_found(f"The page has no file {format_value(name)}.")
        return await self._send(request, asset, IMMUTABLE)

    def _json(self, request: Request, about: Mapping[str, Any]) -> Response:
        body = json.dumps(about, ensure_ascii=False).encode()
        return conditional_response(request, body, JSON, {**REVALIDATED, **self._headers})

    async def _send(self, request: Request, asset: Asset, headers: Mapping[str, str]) -> Response:
        coding = _coding(request, asset)
        body = await asyncio.to_thread(asset.encode, coding)
        return conditional_response(request, body, asset.media_type, {**self._headers, **headers, **_encoding(coding)})

    def _not_found(self, text: str) -> Response:
        headers = {**self._headers, "Cache-Control": "no-store"}
        return rest_response(Refusal(MethodNotFoundError, text, http_status=404), headers)


def _coding(request: Request, asset: Asset) -> str:
    return negotiate(_header(request, "accept-encoding") or IDENTITY, asset.codings) or IDENTITY


def _encoding(coding: str) -> dict[str, str]:
    return {} if coding == IDENTITY else {"Content-Encoding": coding}


def _header(request: Request, name: str) -> str:
    return ",".join(request.headers.getlist(name))
