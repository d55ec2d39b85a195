"""Authenticates browsers that send no Authorization header: by the cookie of a session, or by a signed address.

Rule 1: a browser sends its cookie whichever page makes the request. So a request must come from this origin, as far as
        the browser says; one that changes anything also needs a header that no page of another origin can send. Another
        page may link to what can be read, because the browser shows it only to the user, but may not embed it.
Rule 2: a signed address is for one GET of one path with its query, by the caller it was made for, within
        SIGNED_SECONDS. It is for what cannot send a header, such as EventSource or a download. It stops working when
        the credential it was made with ends, and a stream opened with it ends then, too.
Rule 3: cookies are HttpOnly and SameSite=Lax, for the paths of this server, and Secure over HTTPS. Over HTTPS, if the
        server has no path of its own, their names begin with `__Host-`, so that no other host of the domain can set
        them. If two cookies have the same name, neither counts: one of them was set by another host.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.accounts.browser_session import BrowserSession, EndedSessions, new_session
from a2a_canvas.server.protocols.identity.authenticator import AuthenticatedCaller
from a2a_canvas.server.protocols.identity.signed_claims import Claims, read_signed, sign

COOKIE = "a2a-canvas-session"
SIGNED_SECONDS = 60
OWN_PAGE = "A2A-Canvas-Page"
"""The header that only this server's page sends (rule 1)."""

_SESSION, _ADDRESS = "session", "address"
_SIGNATURE = re.compile(r"[?&]signature=([\w.-]+)$", re.ASCII)


@dataclass(frozen=True, slots=True)
class BrowserSessions:
    """Makes and reads the cookies and signed addresses that a browser sends back.

    Attributes:
        secret: signs them; the same on all servers of a database.
        ended: sessions that were signed out.
        url: the address of this server for browsers, without a slash at its end.
        clock: seconds since 1970.
    """

    secret: Callable[[], Awaitable[bytes]]
    ended: EndedSessions
    url: str
    clock: Callable[[], float]

    async def begin(self, user: str, scope: Scope) -> str:
        """The Set-Cookie header of a new session."""
        return await self._session_cookie(new_session(user, self.clock()), scope)

    async def renewal_cookie(self, found: AuthenticatedCaller, scope: Scope) -> str:
        """The Set-Cookie header after a request; empty if it renews no session. Only its own cookie is renewed."""
        session = await self._session(scope) if found.session else None
        if session is None or session != found.session or session == (now := session.at(self.clock())):
            return ""
        return await self._session_cookie(now, scope)

    async def end(self, scope: Scope) -> None:
        """End the browser's session, if it has one; raises `Unavailable`."""
        if session := await self._session(scope):
            await self.ended.add(session)

    def cookie(self, name: str, value: str, seconds: int, scope: Scope) -> str:
        """A Set-Cookie header (rule 3); with 0 seconds it deletes the cookie."""
        attributes = f"HttpOnly; Max-Age={seconds}; Path={urlsplit(self.url).path}/; SameSite=lax"
        secure = "; Secure" if self._has_https(scope) else ""
        return f"{self._name_of(name, scope)}={value}; {attributes}{secure}"

    def value_of(self, name: str, scope: Scope) -> str:
        """The value of a request's cookie; empty if there is none, or if there are two (rule 3)."""
        name = self._name_of(name, scope)
        pairs = [each.strip().partition("=") for each in ";".join(Headers(scope=scope).getlist("cookie")).split(";")]
        values = [value for found, _, value in pairs if found == name]
        return values[0] if len(values) == 1 else ""

    def _name_of(self, name: str, scope: Scope) -> str:
        return f"__Host-{name}" if self._has_https(scope) and not urlsplit(self.url).path else name

    def _has_https(self, scope: Scope) -> bool:
        return "https" in (urlsplit(self.url).scheme, scope["scheme"])

    async def _session_cookie(self, session: BrowserSession, scope: Scope) -> str:
        claims = {"id": session.session_id, "user": session.user, "began": str(session.began_at)}
        value = sign(await self.secret(), _SESSION, claims | {"ends": str(session.ends_at)}, session.ends_at)
        return self.cookie(COOKIE, value, session.ends_at - int(self.clock()), scope)

    async def _session(self, scope: Scope) -> BrowserSession | None:
        claims = await self.read(_SESSION, self.value_of(COOKIE, scope))
        return (
            BrowserSession(claims["id"], claims["user"], int(claims["began"]), int(claims["ends"])) if claims else None
        )

    async def sign(self, purpose: str, claims: Claims, seconds: float) -> str:
        """A text that `read` accepts for `seconds`."""
        return sign(await self.secret(), purpose, claims, self.clock() + seconds)

    async def read(self, purpose: str, text: str) -> Claims | None:
        """The claims of a signed text; None if it was not signed for this purpose, or has expired."""
        return read_signed(await self.secret(), purpose, text, self.clock()) if text else None

    async def signed_address(self, found: AuthenticatedCaller, path: str) -> str:
        """A path with its query, signed for a caller (rule 2)."""
        caller = {"user": found.caller.name, "link": found.caller.link}
        session = (found.session.session_id, str(found.session.began_at)) if found.session else ("", "0")
        ends = {"key": found.key_hash, "session": session[0], "began": session[1], "expires": str(found.expires_at)}
        claims = caller | ends | {"path": path}
        separator = "&" if "?" in path else "?"
        return f"{path}{separator}signature={await self.sign(_ADDRESS, claims, SIGNED_SECONDS)}"

    async def is_signed(self, scope: Scope) -> bool:
        """Whether a request has an address that is signed for it. Raises `Unavailable`."""
        signature = _SIGNATURE.search(address_of(scope))
        return bool(signature and await self._of_address(scope, signature[1]))

    async def find(self, scope: Scope) -> AuthenticatedCaller | None:
        """The caller of a request without an Authorization header; None if there is none.

        Raises:
            Unavailable: the secret cannot be read.
        """
        if signature := _SIGNATURE.search(address_of(scope)):
            return await self._of_address(scope, signature[1])
        if not self.may_use_cookie(scope["method"], Headers(scope=scope)):
            return None
        session = await self._session(scope)
        if session is None:
            return None
        # A request that comes late enough renews the session; its stream belongs to the renewed session.
        ends = session.at(self.clock()).streams_end_at
        return AuthenticatedCaller(Caller(session.user), session=session, expires_at=ends)

    def may_use_cookie(self, method: str, headers: Headers) -> bool:
        """Whether a request with a cookie does not come from another origin's page (rule 1)."""
        site = headers.get("sec-fetch-site", "same-origin")
        if method in ("GET", "HEAD", "OPTIONS"):
            return site in ("same-origin", "none") or headers.get("sec-fetch-dest") == "document"
        own = {headers.get("host", "").lower(), urlsplit(self.url).netloc.lower()}
        return (
            OWN_PAGE in headers
            and site == "same-origin"
            and urlsplit(headers.get("origin", self.url)).netloc.lower() in own
        )

    async def _of_address(self, scope: Scope, signature: str) -> AuthenticatedCaller | None:
        claims = await self.read(_ADDRESS, signature)
        if not claims or scope["method"] != "GET" or claims["path"] != _SIGNATURE.sub("", address_of(scope)):
            return None
        caller, ends = Caller(claims["user"], claims["link"]), float(claims["expires"])
        session = BrowserSession(claims["session"], caller.name, int(claims["began"]), 0) if claims["session"] else None
        return AuthenticatedCaller(caller, claims["key"], session, ends)


def address_of(scope: Scope) -> str:
    """The path of a request, below the server's own path, and its query, as they were sent."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    sent = (path + (b"?" + query if query else b"")).decode("latin-1")
    return sent.removeprefix(scope.get("root_path", ""))
