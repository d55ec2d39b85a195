"""Who makes a request: its credential is checked against what the server has, in one way for all bindings.

Rule 1: a server without a token, keys or an issuer knows nobody: all callers are anonymous, whatever they send.
Rule 2: what is wrong with a credential is not said to whoever sends it: an unknown key, a revoked one and an expired
        token look the same.
Rule 3: a credential is never logged.
Rule 4: a caller comes with what keeps its credential valid (`Authenticated`), so that a stream, or a signed address,
        ends when the credential does.
Rule 5: a valid key is let in, however many wrong credentials come from its address: others may send them, and a key
        of 256 random bits cannot be guessed.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import Final, Protocol, TypeAlias, assert_never

from starlette.datastructures import Headers

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller, Shares
from a2a_canvas.server.accounts.api_key import SHARED_USER, ApiKey, ApiKeys, hash_of
from a2a_canvas.server.accounts.browser_session import BrowserSession, EndedSessions
from a2a_canvas.server.accounts.errors import QuotaReached
from a2a_canvas.server.accounts.sharing import hash_of_link
from a2a_canvas.server.protocols.edge.origins import Origin
from a2a_canvas.server.protocols.identity.attempts import FailedAttempts
from a2a_canvas.server.protocols.identity.credentials import (
    HEADER,
    Credential,
    Malformed,
    OpaqueToken,
    PresentedJwt,
    PresentedKey,
    PresentedLink,
    read_credential,
)
from a2a_canvas.server.protocols.identity.json_web_tokens import ValidToken
from a2a_canvas.server.protocols.identity.security import Security
from a2a_canvas.store.errors import Unavailable

AUTHENTICATED: Final = "a2a_canvas.authenticated"
"""Where authentication leaves what it has found, in the scope of a request."""


@dataclass(frozen=True, slots=True)
class Authenticated:
    """A caller, and for how long its credential lets it in (rule 4). The end of a share is looked at where it is used.

    Attributes:
        key_hash: of its API key, which may be revoked; empty if it has none.
        session: of its browser, which may be ended; None if it has none.
        expires_at: seconds since 1970, at which its streams end.
    """

    caller: Caller
    key_hash: str = ""
    session: BrowserSession | None = None
    expires_at: float = inf

    @property
    def ends(self) -> bool:
        """Whether the credential can become invalid."""
        return bool(self.key_hash or self.session) or self.expires_at < inf


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no credential."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """The credential is not valid (rule 2)."""


@dataclass(frozen=True, slots=True)
class TooManyAttempts:
    """This address has tried too many wrong ones; it may try again after so many seconds."""

    seconds: int


@dataclass(frozen=True, slots=True)
class OverQuota:
    """The caller is known, and has made as many requests as it may; it may make others after so many seconds."""

    reason: str
    seconds: int


Denial: TypeAlias = Missing | Invalid | TooManyAttempts | OverQuota


class JwtVerifier(Protocol):
    """Checks JSON Web Tokens."""

    async def verify(self, token: str) -> ValidToken | None:
        """What a token says; None if it is not valid.

        Raises:
            IssuerUnavailable: the keys that it may be signed with cannot be read.
        """
        ...


class IssuerUnavailable(Exception):
    """What an issuer of tokens publishes cannot be read; `str()` is for an operator."""


class Authenticator:
    """Decides who makes a request.

    Args:
        token: one that everybody shares; empty for none.
        keys: each store of API keys.
        links: the shares whose links are credentials; None if there are none.
        jwts: checks bearer tokens of an issuer; None if there is none.
        openid_url: where the issuer describes itself; empty if it does not.
        anonymous: whoever presents nothing is let in.
        count: counts a request of a user; raises `QuotaReached` if that may not make it.
        ended: sessions of browsers that are not valid any more; None if there are none.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        attempts: FailedAttempts,
        *,
        token: str = "",
        keys: tuple[ApiKeys, ...] = (),
        links: Shares | None = None,
        jwts: JwtVerifier | None = None,
        openid_url: str = "",
        anonymous: bool = False,
        count: Callable[[str], None] = lambda user: None,
        ended: EndedSessions | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ended = ended
        self._count = count
        self._clock = clock
        self._attempts = attempts
        self._token = token
        self._keys = keys
        self._links = links
        self._jwts = jwts
        self._openid_url = openid_url
        self._anonymous = anonymous

    async def security(self) -> Security:
        """What a request needs now.

        Raises:
            Unavailable: whether there are keys cannot be read.
        """
        bearer = bool(self._token) or bool(self._jwts and not self._openid_url) or await self._has_keys()
        return Security(bearer, self._openid_url, optional=self._anonymous)

    async def authenticate(
        self, headers: Headers, origin: Origin, otherwise: Callable[[], Awaitable[Authenticated | None]] | None = None
    ) -> Authenticated | Denial:
        """The caller of a request, which is counted, or why it is refused.

        Args:
            headers: of the request, or the metadata of a gRPC call.
            origin: where it comes from.
            otherwise: finds the caller of a request that has no header with a credential (`browser_sessions.py`).

        Raises:
            Unavailable: the keys cannot be read.
            IssuerUnavailable: those of the issuer of tokens cannot.
        """
        found = await self._identify(headers, origin, otherwise)
        if isinstance(found, Authenticated) and found.caller.link and not found.caller.host:
            found = await self._guest(found)
        if isinstance(found, Authenticated):
            try:
                self._count(found.caller.account)
            except QuotaReached as error:
                return OverQuota(str(error), error.retry_after)
        return found

    async def _guest(self, found: Authenticated) -> Authenticated | Invalid:
        """A caller with a link, and whose link it is; a link that was revoked is not valid."""
        shares = await self._links.of(found.caller) if self._links else ()
        return replace(found, caller=replace(found.caller, host=shares[0].owner)) if shares else Invalid()

    async def _identify(
        self, headers: Headers, origin: Origin, otherwise: Callable[[], Awaitable[Authenticated | None]] | None
    ) -> Authenticated | Denial:
        if not (await self.security()).required:
            return Authenticated(ANONYMOUS)
        credential = read_credential(headers)
        if credential is None:
            named = await otherwise() if otherwise else None
            if named and await self.in_force(named):
                return named
            return Authenticated(ANONYMOUS) if self._anonymous else Missing()
        if isinstance(credential, PresentedJwt):
            return await self.verify(credential) or Invalid()
        presented = ",".join(headers.getlist(HEADER))
        if isinstance(credential, PresentedKey):
            return await self.verify(credential) or self._wrong_key(presented, origin)
        return await self._attempt(credential, presented, origin)

    def _wrong_key(self, presented: str, origin: Origin) -> Denial:
        """Rule 5: a key has been looked up before this is counted."""
        seconds = self._attempts.begin(origin, presented)
        return TooManyAttempts(seconds) if seconds else Invalid()

    async def _attempt(self, credential: Credential, presented: str, origin: Origin) -> Authenticated | Denial:
        """The caller of what can be guessed, unlike a key, or costs a query of the database."""
        if seconds := self._attempts.begin(origin, presented):
            return TooManyAttempts(seconds)
        try:
            found = await self.verify(credential)
        except Unavailable:
            self._attempts.undone(origin, presented)
            raise
        if found is None:
            self._attempts.failed(origin, presented)
            return Invalid()
        self._attempts.succeeded(origin, presented)
        return found

    async def in_force(self, found: Authenticated) -> bool:
        """Whether a caller's credential is still valid.

        Raises:
            Unavailable: the keys, or the sessions that have ended, cannot be read.
        """
        if self._clock() >= found.expires_at:
            return False
        if found.session and self._ended and await self._ended.has(found.session):
            return False
        return not found.key_hash or await self._owner_of_key(found.key_hash) is not None

    async def verify(self, credential: Credential) -> Authenticated | None:
        """Whose credential it is; None if it is not valid."""
        match credential:
            case OpaqueToken():
                return Authenticated(Caller(SHARED_USER)) if self._is_shared_token(credential.text) else None
            case PresentedKey():
                key_hash = hash_of(credential.text)
                owner = await self._owner_of_key(key_hash)
                return Authenticated(owner, key_hash) if owner else None
            case PresentedLink():
                share = await self._links.link(hash_of_link(credential.text)) if self._links else None
                return Authenticated(Caller(link=share.share_id, host=share.owner)) if share else None
            case PresentedJwt():
                token = await self._jwts.verify(credential.text) if self._jwts else None
                return Authenticated(Caller(token.user), expires_at=token.expires_at) if token else None
            case Malformed():
                return None
            case _:
                assert_never(credential)

    def _is_shared_token(self, text: str) -> bool:
        return bool(self._token) and hmac.compare_digest(text.encode("utf-8", "replace"), self._token.encode())

    async def _owner_of_key(self, key_hash: str) -> Caller | None:
        for keys in self._keys:
            found = await keys.find(key_hash)
            if found and hmac.compare_digest(found.key_hash, key_hash):
                return Caller(found.user)
        return None

    async def _has_keys(self) -> bool:
        for keys in self._keys:
            if await keys.exist():
                return True
        return False


class ConfiguredKeys:
    """`ApiKeys` that the settings have."""

    def __init__(self, keys: Iterable[ApiKey]) -> None:
        self._keys = {key.key_hash: key for key in keys}

    async def find(self, key_hash: str) -> ApiKey | None:
        return self._keys.get(key_hash)

    async def exist(self) -> bool:
        return bool(self._keys)
