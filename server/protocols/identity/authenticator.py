"""Who makes a request: its credential is checked against what the server has, in one way for all bindings.

Rule 1: a server without a token, keys or an issuer knows nobody: all callers are anonymous, whatever they send.
Rule 2: what is wrong with a credential is not said to whoever sends it: an unknown key, a revoked one and an expired
        token look the same.
Rule 3: a credential is never logged.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, assert_never

from starlette.datastructures import Headers

from a2a_canvas.server.api_key import ApiKey, ApiKeys, hash_of
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
from a2a_canvas.server.protocols.identity.security import Security
from a2a_canvas.server.tasks.access import ANONYMOUS, Caller, Shares
from a2a_canvas.server.tasks.errors import QuotaReached
from a2a_canvas.server.tasks.sharing import hash_of_link
from a2a_canvas.store.errors import Unavailable

SHARED_USER = "shared"
"""The user of whoever has the shared token."""


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

    async def user_of(self, token: str) -> str | None:
        """The user that a token names; None if it is not valid.

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
    ) -> None:
        self._count = count
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
        self, headers: Headers, address: str, otherwise: Callable[[], Awaitable[Caller | None]] | None = None
    ) -> Caller | Denial:
        """The caller of a request, which is counted, or why it is refused.

        Args:
            headers: of the request, or the metadata of a gRPC call.
            address: where it comes from.
            otherwise: whom it names without the header of a credential (`browser_sessions.py`).

        Raises:
            Unavailable: the keys cannot be read.
            IssuerUnavailable: those of the issuer of tokens cannot.
        """
        caller = await self._identify(headers, address, otherwise)
        if isinstance(caller, Caller) and caller.link and not caller.host:
            caller = await self._guest(caller)
        if isinstance(caller, Caller):
            try:
                self._count(caller.account)
            except QuotaReached as error:
                return OverQuota(str(error), error.retry_after)
        return caller

    async def _guest(self, caller: Caller) -> Caller | Invalid:
        """A caller with a link, and whose link it is; a link that was revoked is not valid."""
        found = await self._links.of(caller) if self._links else ()
        return replace(caller, host=found[0].owner) if found else Invalid()

    async def _identify(
        self, headers: Headers, address: str, otherwise: Callable[[], Awaitable[Caller | None]] | None
    ) -> Caller | Denial:
        if not (await self.security()).required:
            return ANONYMOUS
        credential = read_credential(headers)
        if credential is None:
            named = await otherwise() if otherwise else None
            return named or (ANONYMOUS if self._anonymous else Missing())
        if isinstance(credential, PresentedJwt):
            return await self.verify(credential) or Invalid()
        return await self._attempt(credential, ",".join(headers.getlist(HEADER)), address)

    async def _attempt(self, credential: Credential, presented: str, address: str) -> Caller | Denial:
        """The same for what can be guessed, unlike a signature."""
        if seconds := self._attempts.begin(address, presented):
            return TooManyAttempts(seconds)
        try:
            caller = await self.verify(credential)
        except Unavailable:
            self._attempts.undone(address, presented)
            raise
        if caller is None:
            self._attempts.failed(presented)
            return Invalid()
        self._attempts.succeeded(address, presented)
        return caller

    async def in_force(self, headers: Headers) -> bool:
        """Whether the key that a request was let in with has not been revoked since. Shares are looked at where they
        are used, and other credentials cannot be revoked.

        Raises:
            Unavailable: the keys cannot be read.
        """
        credential = read_credential(headers)
        return not isinstance(credential, PresentedKey) or await self.verify(credential) is not None

    async def verify(self, credential: Credential) -> Caller | None:
        """Whose credential it is; None if it is not valid."""
        match credential:
            case OpaqueToken():
                return Caller(SHARED_USER) if self._is_shared_token(credential.text) else None
            case PresentedKey():
                return await self._owner_of_key(hash_of(credential.text))
            case PresentedLink():
                share = await self._links.link(hash_of_link(credential.text)) if self._links else None
                return Caller(link=share.share_id, host=share.owner) if share else None
            case PresentedJwt():
                user = await self._jwts.user_of(credential.text) if self._jwts else None
                return Caller(user) if user else None
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
