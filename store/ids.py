"""Ids: those that are made here, globally unique ones, and the keys of contexts. Their shards.

A context belongs to one owner, and two owners may use the same context id.

Rule 1: everything below the runtime and the artifact routes identifies a context by its key; everything sent or
        logged contains its id.
Rule 2: a key is the id, and for an owner with a name a separator that no id may contain (`store/text/unicode.py`), and
        a digest of the name. So the contexts of anonymous callers have their id as their key.
Rule 3: a shard is one of 4,096, so that contexts can be distributed over several databases without a directory. Tables
        have the shard before each key (`store/sql/tables.py`).
Rule 4: an id that is made here is a UUID of version 8 (RFC 9562, section 5.8), in lower case with hyphens: its 12 bits
        after the version are its shard. A task has the shard of its context. The shard of any other text is the first
        12 bits of its SHA-256.
Rule 5: the shard of a context is that of its id if the id is globally unique: then it is the same for its owner and for
        those that it is shared with. Otherwise two owners may use the id, and the shard is that of the id with the
        digest.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final, NewType, Protocol
from uuid import UUID

ContextKey = NewType("ContextKey", str)
"""Which context it is (rule 2). A type of its own, so that a checker finds an id in the place of a key."""

SHARDS: Final = 4096
SEPARATOR: Final = "\x1f"
DIGEST_CHARACTERS = 24
"""96 bits: finding a second name with the same digest is infeasible."""
_MADE_HERE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8(?P<shard>[0-9a-f]{3})-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII)
# The nil and max UUIDs identify nothing, so they do not match.
_UUID = re.compile(
    r"(?:urn:uuid:)?(?P<brace>\{)?(?![0f-]+\}?$)"
    r"[0-9a-f]{8}(?P<dash>-?)(?:[0-9a-f]{4}(?P=dash)){3}[0-9a-f]{12}(?(brace)\})",
    re.ASCII | re.IGNORECASE,
)
_ULID = re.compile(r"(?!0+$)[0-7][0-9a-hjkmnp-tv-z]{25}", re.ASCII | re.IGNORECASE)


class NewId(Protocol):
    """Makes an id; in a test, maybe one without a shard."""

    def __call__(self, shard: int | None = None) -> str: ...


def new_id(shard: int | None = None) -> str:
    """An id that nobody has (rule 4).

    Args:
        shard: None for any.
    """
    shard = secrets.randbelow(SHARDS) if shard is None else shard
    return str(UUID(int=secrets.randbits(48) << 80 | 8 << 76 | shard << 64 | 2 << 62 | secrets.randbits(62)))


def shard_of(text: str) -> int:
    """The shard of a context's key, of an id, or of another text, such as the name of a user (rules 4 and 5)."""
    an_id = public_id(text)
    if found := _MADE_HERE.fullmatch(an_id):
        return int(found["shard"], 16)
    hashed = an_id if is_unique(an_id) else text
    return int(hashlib.sha256(hashed.encode()).hexdigest()[:3], 16)


def is_unique(message_id: str) -> bool:
    """Whether an id is globally unique: a UUID in any usual form, or a ULID."""
    return bool(_UUID.fullmatch(message_id) or _ULID.fullmatch(message_id))


def context_key(owner: str, context_id: str) -> ContextKey:
    """The key of the context that `owner` calls `context_id`."""
    if not owner:
        return ContextKey(context_id)
    return ContextKey(f"{context_id}{SEPARATOR}{hashlib.sha256(owner.encode()).hexdigest()[:DIGEST_CHARACTERS]}")


def public_id(key: str) -> str:
    """The id of a context, from its key or id."""
    return key.partition(SEPARATOR)[0]
