"""Shares of contexts: what owners do with them, the tokens of links, and the shares of a server without a database.

Rule 1: only the owner of a context shares it, and only one with a name: what anonymous callers have is everybody's.
        With a user it shares only a context whose id nobody else can have made up. Otherwise a share of "notes" would
        decide where that user's first message to a context of that name goes. A link is for one context alone.
Rule 2: a user has one share of a context at most: another one replaces it. A context may have many links.
Rule 3: a user takes a limited number of shares, and of each giver a part of them. Whatever others give, there is room
        for one share of every giver. A user ends the shares that it has been given as their owners do.
Rule 4: the token of a link is shown once, when the link is made; only its hash is stored. It is the shard of the
        context and 256 random bits, so a hash without salt is enough.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from a2a_canvas.server.accounts.access import Access, Caller, ContextGrant, Level, Share, Shares
from a2a_canvas.server.accounts.errors import ContextNotFound, InvalidShare, NobodyToShare, OwnerOnly, ShareNotFound
from a2a_canvas.server.accounts.quotas import Meter
from a2a_canvas.server.log_output import Fields, about
from a2a_canvas.store.ids import ContextKey, NewId, is_unique, public_id, shard_of

logger = logging.getLogger(__name__)

MAX_SHARES = 1000
"""Of one context."""
MAX_FROM_ONE = 100
"""Shares that a user has of one owner."""
MAX_OF_USER = 1000
"""Shares of a user with which one that has given some gives no more (rule 3)."""
LINK_PREFIX = "a2al_"
"""Programs that look for leaked secrets know a token by it, and `Authenticator` tells it from other credentials."""
_LINK_TOKEN = re.compile(rf"{LINK_PREFIX}[0-9a-f]{{3}}[\w-]{{43}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ShareRequest:
    """What an owner gives.

    Attributes:
        user: to whom; empty for a link.
        expires_at: None for never.
    """

    level: Level
    user: str = ""
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewShare:
    """A share that was just made, and the token of its link (rule 4), which is empty for a user's."""

    share: Share
    token: str = ""


def has_room(givers: Mapping[str, int], owner: str) -> bool:
    """Whether a user takes one more share of an owner (rule 3). Pure.

    Args:
        givers: how many shares the user has, by their owners.
    """
    given = givers.get(owner, 0)
    return given < MAX_FROM_ONE and (given == 0 or sum(givers.values()) < MAX_OF_USER)


def new_link_token(context: ContextKey) -> str:
    """A token that nobody has."""
    return f"{LINK_PREFIX}{shard_of(context):03x}{secrets.token_urlsafe(32)}"


def is_link_token(text: str) -> bool:
    """Whether a text has the form of a link's token."""
    return bool(_LINK_TOKEN.fullmatch(text))


def hash_of_link(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


class Sharing:
    """What owners do with the shares of their contexts, and users with those that they were given.

    Every method may raise `Unavailable`.

    Args:
        access: finds the contexts.
        now, new_id: the clock and the source of ids.
        page: the address of the page; empty if there is none.
        meter: knows whether there is room for another share.
    """

    def __init__(
        self,
        access: Access,
        shares: Shares,
        now: Callable[[], datetime],
        new_id: NewId,
        page: str = "",
        meter: Meter | None = None,
    ) -> None:
        self._meter = meter or Meter()
        self._access = access
        self._shares = shares
        self._new_id = new_id
        self._page = page
        self.now = now

    async def share(self, caller: Caller, context_id: str, request: ShareRequest) -> NewShare:
        """Give others a context of the caller's.

        Raises:
            ContextNotFound, OwnerOnly, NobodyToShare: the caller cannot share it.
            InvalidShare: the context or the user has too many shares, the context has an id of one's own making, or
                the user is the owner.
            StorageFull: there is no room for it.
        """
        found = await self.check_owner(caller, context_id)
        if request.user and request.user in (caller.name, found.owner):
            raise InvalidShare("user", "is the owner of the context: name another user")
        if request.user and not is_unique(context_id):
            raise InvalidShare(
                "contextId",
                f"is {context_id!r}, an id that other users may also use: share it by link. A context started without "
                "a contextId, or with a UUID, can be shared with users",
            )
        there = await self._shares.list(found.key)
        if len(there) >= MAX_SHARES:
            raise InvalidShare("contextId", f"has {MAX_SHARES} shares, the maximum: revoke some of them")
        replaces = any(each.user == request.user for each in there)
        if request.user and not replaces and not has_room(await self._shares.givers(request.user), found.owner):
            raise InvalidShare("user", "cannot receive more shares from you: revoke some of them, or share it by link")
        await self._meter.check_bytes(found.owner, caller.author)
        token = "" if request.user else new_link_token(found.key)
        share = Share(
            self._new_id(shard_of(found.key)),
            found.key,
            found.owner,
            request.level,
            self.now(),
            request.user,
            hash_of_link(token) if token else "",
            request.expires_at,
        )
        await self._shares.add(share)
        given = {"with": request.user or "link", "level": request.level.word}
        logger.info("A context was shared", extra=_about(found.key, share.share_id, caller, **given))
        return NewShare(share, token)

    async def shares(self, caller: Caller, context_id: str) -> tuple[Share, ...]:
        """The shares of a context, the oldest first: its owner sees all, a user that it is shared with its own.

        Raises:
            ContextNotFound, OwnerOnly, NobodyToShare: the caller sees none.
        """
        found = await self._access.find(caller, context_id)
        if found and caller.name and found.level < Level.OWN:
            return tuple(each for each in await self._find_received(caller, context_id) if each.context == found.key)
        return await self._shares.list((await self.check_owner(caller, context_id)).key)

    async def revoke(self, caller: Caller, context_id: str, share_id: str) -> tuple[Share, ...]:
        """End a share of a context of the caller's, or one that the caller was given.

        Returns:
            The shares that the context has then, if it is the caller's.

        Raises:
            ContextNotFound, OwnerOnly, NobodyToShare: the caller can end no shares there.
            ShareNotFound: there is no such share of it.
        """
        for given in await self._find_received(caller, context_id):
            if given.share_id == share_id:
                await self._shares.revoke(given.context, share_id)
                logger.info("A share was revoked", extra=_about(given.context, share_id, caller))
                return ()
        found = await self.check_owner(caller, context_id)
        if not await self._shares.revoke(found.key, share_id):
            raise ShareNotFound(found.key, share_id)
        logger.info("A share was revoked", extra=_about(found.key, share_id, caller))
        return await self._shares.list(found.key)

    def url_of(self, token: str) -> str:
        """The page with a link's token, in the fragment, which no server gets; empty if there is no page."""
        return f"{self._page}/#share={token}" if self._page else ""

    async def _find_received(self, caller: Caller, context_id: str) -> list[Share]:
        """The shares that a user was given of contexts of this id."""
        shares = (await self._access.grants(caller)).shares.values() if caller.name else ()
        return [each for each in shares if public_id(each.context) == context_id]

    async def check_owner(self, caller: Caller, context_id: str) -> ContextGrant:
        """A context whose shares the caller may change.

        Raises:
            ContextNotFound, OwnerOnly, NobodyToShare: there is none, or it may not.
        """
        found = await self._access.find(caller, context_id)
        if found is None or not await self._access.exists(found):
            raise ContextNotFound(context_id)
        if found.level < Level.OWN:
            raise OwnerOnly(found.key)
        if not caller.name:
            raise NobodyToShare
        return found


def _about(context: str, share_id: str, caller: Caller, **fields: str) -> dict[str, Fields]:
    return about(context_id=context, share=share_id, by=caller.name, **fields)


class InMemoryShares:
    """`Shares` in a dictionary, by their ids."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._shares: dict[str, Share] = {}

    async def for_caller(self, caller: Caller) -> tuple[Share, ...]:
        if caller.link:
            return self._where(lambda share: share.share_id == caller.link)
        return self._where(lambda share: bool(share.user) and share.user == caller.name)

    async def link(self, token_hash: str) -> Share | None:
        found = self._where(lambda share: share.token_hash == token_hash)
        return found[0] if found else None

    async def list(self, context: str) -> tuple[Share, ...]:
        return self._where(lambda share: share.context == context)

    async def add(self, share: Share) -> None:
        for other in await self.list(share.context):
            if share.user and other.user == share.user:
                del self._shares[other.share_id]
        self._shares[share.share_id] = share

    async def revoke(self, context: str, share_id: str) -> bool:
        there = any(share.share_id == share_id for share in await self.list(context))
        return there and bool(self._shares.pop(share_id))

    async def givers(self, user: str) -> Mapping[str, int]:
        return Counter(share.owner for share in self._where(lambda share: share.user == user))

    def remove(self, context: str) -> None:
        """Forget a context that was removed."""
        self._shares = {id_: share for id_, share in self._shares.items() if share.context != context}

    def _where(self, wanted: Callable[[Share], bool]) -> tuple[Share, ...]:
        now = self._now()
        self._shares = {id_: share for id_, share in self._shares.items() if share.in_force(now)}
        found = (share for share in self._shares.values() if wanted(share))
        return tuple(sorted(found, key=lambda share: (share.made_at, share.share_id)))
