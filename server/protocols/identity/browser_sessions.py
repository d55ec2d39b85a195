"""Callers whom a browser names without the header Authorization: by the cookie of a session, or by a signed address.

Rule 1: a cookie is sent by the browser, whoever asks it to. So a request that changes anything also needs a header that
        no page of another origin can send, and must come from this one, as far as the browser says.
Rule 2: a signed address is for one GET of one path with its query, of the caller that it was made for, and for
        SIGNED_SECONDS. It is for what cannot send a header, such as EventSource or a download. When the credential that
        it was made with has ended it opens nothing, and a stream that it has opened ends with that credential.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from a2a_canvas.server.protocols.identity.authenticator import Authenticated
from a2a_canvas.server.protocols.identity.signed_claims import Claims, read_signed, sign
from a2a_canvas.server.tasks.access import Caller

COOKIE = "a2a-canvas-session"
SESSION_SECONDS = 12 * 3600
SIGNED_SECONDS = 60
OWN_PAGE = "A2A-Canvas-Page"
"""The header that only the page of this server sends (rule 1)."""

_SESSION, _ADDRESS = "session", "address"
_SIGNATURE = re.compile(r"[?&]signature=([\w.-]+)$", re.ASCII)


@dataclass(frozen=True, slots=True)
class BrowserSessions:
    """Makes and reads what a browser brings back.

    Attributes:
        secret: what it is signed with, the same on all servers of a database.
        clock: seconds since 1970.
    """

    secret: Callable[[], Awaitable[bytes]]
    clock: Callable[[], float]

    async def begin(self, user: str) -> str:
        """The cookie of a new session."""
        return await self.signed(_SESSION, {"user": user}, SESSION_SECONDS)

    async def signed(self, purpose: str, claims: Claims, seconds: float) -> str:
        """A text that `read` takes, for so long."""
        return sign(await self.secret(), purpose, claims, self.clock() + seconds)

    async def read(self, purpose: str, text: str) -> Claims | None:
        """What was signed for this; None if it was not, or is over."""
        return read_signed(await self.secret(), purpose, text, self.clock()) if text else None

    async def signed_address(self, found: Authenticated, path: str) -> str:
        """A path with its query, signed for a caller (rule 2)."""
        caller, expires = found.caller, str(found.expires_at)
        claims = {"user": caller.name, "link": caller.link, "path": path, "key": found.key_hash, "expires": expires}
        separator = "&" if "?" in path else "?"
        return f"{path}{separator}signature={await self.signed(_ADDRESS, claims, SIGNED_SECONDS)}"

    async def find(self, scope: Scope) -> Authenticated | None:
        """Whom a request without Authorization names; None for nobody.

        Raises:
            Unavailable: the secret cannot be read.
        """
        if signature := _SIGNATURE.search(address_of(scope)):
            return await self._of_address(scope, signature[1])
        headers = Headers(scope=scope)
        if not may_use_cookie(scope["method"], headers):
            return None
        claims = await self.read(_SESSION, cookies_of(headers).get(COOKIE, ""))
        return Authenticated(Caller(claims["user"])) if claims else None

    async def _of_address(self, scope: Scope, signature: str) -> Authenticated | None:
        claims = await self.read(_ADDRESS, signature)
        if not claims or scope["method"] != "GET" or claims["path"] != _SIGNATURE.sub("", address_of(scope)):
            return None
        return Authenticated(Caller(claims["user"], claims["link"]), claims["key"], float(claims["expires"]))


def may_use_cookie(method: str, headers: Headers) -> bool:
    """Whether a request with a cookie is not that of another page (rule 1)."""
    if method in ("GET", "HEAD", "OPTIONS"):
        return True
    origin = headers.get("origin")
    return (
        OWN_PAGE in headers
        and headers.get("sec-fetch-site", "same-origin") == "same-origin"
        and (origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower())
    )


def cookies_of(headers: Headers) -> dict[str, str]:
    """The cookies of a request."""
    return cookie_parser("; ".join(headers.getlist("cookie")))


def address_of(scope: Scope) -> str:
    """The path of a request with its query, as they were sent."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return (path + (b"?" + query if query else b"")).decode("latin-1")
