"""Authenticates the caller of a request by its credential, in the same way for all bindings.

Rule 1: on a server without a token, keys or an issuer all callers are anonymous, whatever they send.
Rule 2: an answer does not reveal what is wrong with a credential: an unknown key, a revoked one and an expired token
        look the same.
Rule 3: a credential is never logged.
Rule 4: a caller comes with what keeps its credential valid (`AuthenticatedCaller`), so that a stream or a signed
        address ends when the credential does.
Rule 5: a valid key is accepted, however many wrong credentials come from its address: others may send them, and a key
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
    MalformedHeader,
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
"""Key of the `AuthenticatedCaller` in the scope of a request."""


@dataclass(frozen=True, slots=True)
class AuthenticatedCaller:
    """A caller, and what ends its credential (rule 4). The end of a share is checked where the share is used.

    Attributes:
        key_hash: of its API key, which may be revoked; empty if it has none.
        session: of its browser, which may be ended; None if it has none.
        expires_at: seconds since 1970 at which its streams end.
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
class MissingCredential:
    """The request has no credential."""


@dataclass(frozen=True, slots=True)
class InvalidCredential:
    """The credential is not valid (rule 2)."""


@dataclass(frozen=True, slots=True)
class TooManyAttempts:
    """Too many wrong credentials came from this address; it may try again after `seconds`."""

    seconds: int


@dataclass(frozen=True, slots=True)
class OverQuota:
    """The caller is known and has reached its limit of requests; it may send others after `seconds`."""

    reason: str
    seconds: int


Denial: TypeAlias = MissingCredential | InvalidCredential | TooManyAttempts | OverQuota


class JwtVerifier(Protocol):
    """Checks JSON Web Tokens."""

    async def verify(self, token: str) -> ValidToken | None:
        """The claims of a token; None if it is not valid.

        Raises:
            IssuerUnavailable: the keys that it may be signed with cannot be read.
        """
        ...


class IssuerUnavailable(Exception):
    """An issuer's keys or description cannot be read; `str()` is for the operator."""


class Authenticator:
    """Finds the caller of a request.

    Args:
        token: the shared token; empty for none.
        keys: each store of API keys.
        links: the shares whose links are credentials; None if there are none.
        jwts: checks bearer tokens of an issuer; None if there is none.
        openid_url: where the issuer describes itself; empty if it does not.
        anonymous: requests without a credential are accepted.
        count: counts a request of a user; raises `QuotaReached` if the user has reached the limit.
        ended: sessions of browsers that were signed out; None if there are none.
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
        """The credentials that a request needs now.

        Raises:
            Unavailable: the database does not say whether there are keys.
        """
        bearer = bool(self._token) or bool(self._jwts and not self._openid_url) or await self._has_keys()
        return Security(bearer, self._openid_url, optional=self._anonymous)

    async def authenticate(
        self,
        headers: Headers,
        origin: Origin,
        fallback: Callable[[], Awaitable[AuthenticatedCaller | None]] | None = None,
    ) -> AuthenticatedCaller | Denial:
        """The caller of a request, which is counted, or why it is refused.

        Args:
            headers: of the request, or the metadata of a gRPC call.
            origin: where it comes from.
            fallback: finds the caller of a request that has no header with a credential (`browser_sessions.py`).

        Raises:
            Unavailable: the API keys cannot be read.
            IssuerUnavailable: the issuer's keys cannot be read.
        """
        found = await self._identify(headers, origin, fallback)
        if isinstance(found, AuthenticatedCaller) and found.caller.link and not found.caller.host:
            found = await self._guest(found)
        if isinstance(found, AuthenticatedCaller):
            try:
                self._count(found.caller.account)
            except QuotaReached as error:
                return OverQuota(str(error), error.retry_after)
        return found

    async def _guest(self, found: AuthenticatedCaller) -> AuthenticatedCaller | InvalidCredential:
        """A caller with a link, with the owner who shared it; a revoked link is not valid."""
        shares = await self._links.for_caller(found.caller) if self._links else ()
        return replace(found, caller=replace(found.caller, host=shares[0].owner)) if shares else InvalidCredential()

    async def _identify(
        self, headers: Headers, origin: Origin, fallback: Callable[[], Awaitable[AuthenticatedCaller | None]] | None
    ) -> AuthenticatedCaller | Denial:
        if not (await self.security()).required:
            return AuthenticatedCaller(ANONYMOUS)
        credential = read_credential(headers)
        if credential is None:
            other = await fallback() if fallback else None
            if other and await self.in_force(other):
                return other
            return AuthenticatedCaller(ANONYMOUS) if self._anonymous else MissingCredential()
        if isinstance(credential, PresentedJwt):
            return await self.verify(credential) or InvalidCredential()
        presented = ",".join(headers.getlist(HEADER))
        if isinstance(credential, PresentedKey):
            return await self.verify(credential) or self._wrong_key(presented, origin)
        return await self._attempt(credential, presented, origin)

    def _wrong_key(self, presented: str, origin: Origin) -> Denial:
        """Count a wrong key, after it was looked up (rule 5)."""
        seconds = self._attempts.begin(origin, presented)
        return TooManyAttempts(seconds) if seconds else InvalidCredential()

    async def _attempt(self, credential: Credential, presented: str, origin: Origin) -> AuthenticatedCaller | Denial:
        """The caller of a credential that can be guessed, unlike a key, or whose check costs a database query."""
        if seconds := self._attempts.begin(origin, presented):
            return TooManyAttempts(seconds)
        try:
            found = await self.verify(credential)
        except Unavailable:
            self._attempts.cancel(origin, presented)
            raise
        if found is None:
            self._attempts.record_failure(origin, presented)
            return InvalidCredential()
        self._attempts.record_success(origin, presented)
        return found

    async def in_force(self, found: AuthenticatedCaller) -> bool:
        """Whether a caller's credential is still valid.

        Raises:
            Unavailable: the keys, or the sessions that have ended, cannot be read.
        """
        if self._clock() >= found.expires_at:
            return False
        if found.session and self._ended and await self._ended.has(found.session):
            return False
        return not found.key_hash or await self._owner_of_key(found.key_hash) is not None

    async def verify(self, credential: Credential) -> AuthenticatedCaller | None:
        """The caller that a credential identifies; None if it is not valid."""
        match credential:
            case OpaqueToken():
                return AuthenticatedCaller(Caller(SHARED_USER)) if self._is_shared_token(credential.text) else None
            case PresentedKey():
                key_hash = hash_of(credential.text)
                owner = await self._owner_of_key(key_hash)
                return AuthenticatedCaller(owner, key_hash) if owner else None
            case PresentedLink():
                share = await self._links.link(hash_of_link(credential.text)) if self._links else None
                return AuthenticatedCaller(Caller(link=share.share_id, host=share.owner)) if share else None
            case PresentedJwt():
                token = await self._jwts.verify(credential.text) if self._jwts else None
                return AuthenticatedCaller(Caller(token.user), expires_at=token.expires_at) if token else None
            case MalformedHeader():
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
    """`ApiKeys` of the settings."""

    def __init__(self, keys: Iterable[ApiKey]) -> None:
        self._keys = {key.key_hash: key for key in keys}

    async def find(self, key_hash: str) -> ApiKey | None:
        return self._keys.get(key_hash)

    async def exist(self) -> bool:
        return bool(self._keys)
