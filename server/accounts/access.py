"""Who calls, and which contexts a caller may see.

Rule 1: a context belongs to one owner, and so do all tasks and artifacts in it, whoever made them.
Rule 2: an owner may give others a share of a context: to read it, to comment on it, to edit it, or to approve calls
        there as well.
Rule 3: what a caller may not read does not exist for it: the answer is the same, and takes as many queries.
Rule 4: what a caller names is looked for among its own contexts, then, if it has adopted them, among those of anonymous
        callers, then among those that are shared with it, the oldest share first. If there is none, the id is a new
        context's, of its own.
Rule 5: an id that a caller has once used for a context of its own never means another's, also after that context was
        removed. Otherwise whoever knows the id could begin a context with it, share it, and be sent what is still meant
        for the caller's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Protocol

from a2a_canvas.store.ids import ContextKey, context_key, public_id
from a2a_canvas.store.text.unicode import MAX_ID

LINK = "link "
"""Prefix of the author name of a caller with a link."""


GUEST_NAME = "guest"
"""All users of a link are one author."""


def shown_name(author: str) -> str:
    """How others see the author of a message: the name of a user, `guest`, or nothing for anonymous callers."""
    return GUEST_NAME if author.startswith(LINK) else author


def is_user_name(name: str) -> bool:
    """Whether a user may be called so: what cannot be told from another name, or from a link, is left out.

    Names of keys (`valid_name` in `api_key.py`) have fewer characters still.
    """
    return 0 < len(name) <= MAX_ID and name.isprintable() and name == name.strip() and not name.startswith(LINK)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request.

    Attributes:
        name: of the user; empty for anonymous callers, who all count as one user, and for callers with a link.
        link: the id of the share whose link the caller has; empty for none. Such a caller sees that context alone.
        host: the owner of that share, as far as it is known.
    """

    name: str = ""
    link: str = ""
    host: str = field(default="", compare=False)

    @staticmethod
    def from_author(author: str) -> Caller:
        """The caller whose messages have this sender."""
        return Caller(link=author.removeprefix(LINK)) if author.startswith(LINK) else Caller(author)

    @property
    def author(self) -> str:
        """What messages of this caller say of their sender."""
        return f"{LINK}{self.link}" if self.link else self.name

    @property
    def account(self) -> str:
        """Under which name the requests and streams of this caller are counted: all links of one owner have one, so
        that more links are not more requests."""
        return f"{LINK}of {self.host}" if self.link else self.name


ANONYMOUS = Caller()


class Level(IntEnum):
    """What a caller may do with a context.

    READ: get, list and follow what is in it. COMMENT: also comment, suggest, reply, and withdraw one's own. EDIT: also
    send messages and all operations, and cancel. APPROVE: also answer requests to approve a call. OWN: also rename,
    remove and share it.

    The order counts, the numbers do not: levels are stored and sent by their words.
    """

    NONE = 0
    READ = 1
    COMMENT = 2
    EDIT = 3
    APPROVE = 4
    OWN = 5

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def from_word(cls, word: str) -> Level:
        """Raises `KeyError` if no level has that word."""
        return cls[word.upper()]


@dataclass(frozen=True, slots=True)
class Share:
    """That others may use a context.

    Attributes:
        context: its key.
        user: to whom; empty for whoever has the link.
        token_hash: of the link's token; empty for a user's share.
        expires_at: None for never.
    """

    share_id: str
    context: ContextKey
    owner: str
    level: Level
    made_at: datetime
    user: str = ""
    token_hash: str = ""
    expires_at: datetime | None = None

    def in_force(self, now: datetime) -> bool:
        """Whether it has not expired."""
        return self.expires_at is None or now < self.expires_at


class Shares(Protocol):
    """The shares of all contexts. Every method may raise `Unavailable`, and tells only of shares that are in force.

    What was added, has expired or was revoked has its effect on every server within 2 seconds.
    """

    async def for_caller(self, caller: Caller) -> tuple[Share, ...]:
        """Those that a caller has, the oldest first."""
        ...

    async def link(self, token_hash: str) -> Share | None:
        """The one whose link has the token with this hash."""
        ...

    async def list(self, context: ContextKey) -> tuple[Share, ...]:
        """Those of a context, the oldest first."""
        ...

    async def add(self, share: Share) -> None:
        """Add one. It replaces the one of the same context that its user has.

        Raises:
            ContextNotFound: its context has just been removed.
        """
        ...

    async def revoke(self, context: ContextKey, share_id: str) -> bool:
        """Remove one of a context; whether it was there."""
        ...

    async def givers(self, user: str) -> Mapping[str, int]:
        """How many shares a user has, by their owners."""
        ...


@dataclass(frozen=True, slots=True)
class KnownContexts:
    """
    Attributes:
        begun: the keys of contexts that have a task.
        removed: those of contexts that had one and were removed; a removed context may have begun again. Only of those
            whose ids can be shared with users.
    """

    begun: Collection[str] = frozenset()
    removed: Collection[str] = frozenset()


class ContextKeys(Protocol):
    """Which contexts there are. Every method may raise `Unavailable`."""

    async def has_context(self, context_id: ContextKey, owner: str) -> bool:
        """Whether an owner has a task in the context with a key."""
        ...

    async def find_known_contexts(self, keys: Collection[str]) -> KnownContexts:
        """Which of these keys contexts have, or had."""
        ...


@dataclass(frozen=True, slots=True)
class ContextGrant:
    """A context that a caller has named, and what the caller may do there."""

    key: ContextKey
    owner: str
    level: Level


@dataclass(frozen=True, slots=True)
class Grants:
    """What a caller may see, at one moment. Pure.

    Attributes:
        shares: by the key of their context, the oldest first.
        adopts: the caller also has the contexts of anonymous callers.
    """

    caller: Caller
    shares: Mapping[ContextKey, Share] = field(default_factory=dict)
    adopts: bool = False

    @property
    def owners(self) -> tuple[str, ...]:
        """Whose contexts are the caller's own."""
        if self.caller.link:
            return ()
        return (self.caller.name, "") if self.adopts else (self.caller.name,)

    def level(self, key: ContextKey, owner: str) -> Level:
        """What the caller may do with a context of `owner`."""
        if owner in self.owners:
            return Level.OWN
        share = self.shares.get(key)
        return share.level if share else Level.NONE

    def candidates(self, context_id: str) -> tuple[ContextGrant, ...]:
        """The contexts that the caller may mean (rule 4), those that come first first."""
        return self._candidates(context_id, (key for key in self.shares if public_id(key) == context_id))

    def shared_candidates(self) -> Iterable[tuple[ContextGrant, ...]]:
        """The same for each id of a context that is shared with the caller."""
        keys = defaultdict[str, list[ContextKey]](list)
        for key in self.shares:
            keys[public_id(key)].append(key)
        return [self._candidates(context_id, shared) for context_id, shared in keys.items()]

    def _candidates(self, context_id: str, keys: Iterable[ContextKey]) -> tuple[ContextGrant, ...]:
        own = [ContextGrant(context_key(owner, context_id), owner, Level.OWN) for owner in self.owners]
        shared = [ContextGrant(key, self.shares[key].owner, self.shares[key].level) for key in keys]
        return (*own, *shared)


def choose(candidates: tuple[ContextGrant, ...], known: KnownContexts) -> ContextGrant | None:
    """The one of the candidates that is meant (rules 4 and 5), which may be a new context. Pure."""
    first = candidates[0] if candidates else None
    found = next((each for each in candidates if each.key in known.begun), first)
    used = any(each.key in known.removed for each in candidates if each.level is Level.OWN)
    return first if used and found and found.level < Level.OWN else found


class Access:
    """Answers what callers may see.

    Args:
        contexts: those that have begun.
        shares: None if nothing can be shared.
        adopter: the user who has the contexts of anonymous callers, too; empty for none.
    """

    def __init__(self, contexts: ContextKeys, shares: Shares | None = None, adopter: str = "") -> None:
        self._contexts = contexts
        self._shares = shares
        self._adopter = adopter

    async def grants(self, caller: Caller) -> Grants:
        """What a caller may see now."""
        found = await self._shares.for_caller(caller) if self._shares and caller != ANONYMOUS else ()
        shares = {share.context: share for share in found}
        return self._grants(caller, shares)

    def _grants(self, caller: Caller, shares: Mapping[ContextKey, Share]) -> Grants:
        return Grants(caller, shares, adopts=bool(self._adopter) and caller.name == self._adopter)

    def is_owner(self, caller: Caller, owner: str) -> bool:
        """Whether what belongs to `owner` is the caller's own."""
        return owner in self._grants(caller, {}).owners

    async def level(self, caller: Caller, key: ContextKey, owner: str) -> Level:
        """What a caller may do with a context of `owner` now."""
        return (await self.grants(caller)).level(key, owner)

    async def link_is_below(self, caller: Caller, level: Level) -> bool:
        """Whether the caller has a link that grants less than `level`."""
        shares = (await self.grants(caller)).shares if caller.link else {}
        return any(share.level < level for share in shares.values())

    async def find(self, caller: Caller, context_id: str) -> ContextGrant | None:
        """The context that a caller means; None if it cannot have one of this id.

        A context that does not exist yet is found, too: as one of the caller's own.
        """
        candidates = (await self.grants(caller)).candidates(context_id)
        keys = [each.key for each in candidates]
        return choose(candidates, await self._contexts.find_known_contexts(keys) if len(keys) > 1 else KnownContexts())

    async def exists(self, context: ContextGrant) -> bool:
        """Whether a context that was found has begun."""
        return await self._contexts.has_context(context.key, context.owner)

    async def find_shares(self, caller: Caller) -> dict[ContextKey, Share]:
        """The shares of the contexts that the caller finds by their ids, by their keys.

        A share is left out if the caller has, or had, a context of its own with the same id, or has an older share.
        """
        grants = await self.grants(caller)
        choices = [*grants.shared_candidates()]
        keys = [found.key for candidates in choices for found in candidates]
        known = await self._contexts.find_known_contexts(keys) if keys else KnownContexts()
        found = {each.key for candidates in choices if (each := choose(candidates, known))}
        return {key: share for key, share in grants.shares.items() if key in found}
