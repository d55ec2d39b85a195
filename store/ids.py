"""Ids: globally unique ones, and the keys of contexts.

A context belongs to one owner, and two owners may use the same context id.

Rule 1: everything below the runtime and the artifact routes identifies a context by its key; everything sent or
        logged contains its id.
Rule 2: a key is the id, and for an owner with a name a separator that no id may contain (`store/text/unicode.py`), and
        a digest of the name. So the contexts of anonymous callers have their id as their key.
"""

from __future__ import annotations

import hashlib
import re
from typing import NewType

ContextKey = NewType("ContextKey", str)
"""Which context it is (rule 2). A type of its own, so that a checker finds an id in the place of a key."""

SEPARATOR = "\x1f"
DIGEST_CHARACTERS = 24
"""96 bits: finding a second name with the same digest is infeasible."""


# The nil and max UUIDs identify nothing, so they do not match.
_UUID = re.compile(
    r"(?:urn:uuid:)?(?P<brace>\{)?(?![0f-]+\}?$)"
    r"[0-9a-f]{8}(?P<dash>-?)(?:[0-9a-f]{4}(?P=dash)){3}[0-9a-f]{12}(?(brace)\})",
    re.ASCII | re.IGNORECASE,
)
_ULID = re.compile(r"(?!0+$)[0-7][0-9a-hjkmnp-tv-z]{25}", re.ASCII | re.IGNORECASE)


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
