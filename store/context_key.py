"""The key of a context: a context belongs to one owner, and two owners may use the same id for contexts of theirs.

Rule 1: everything below the runtime and the artifact routes knows a context by its key; everything that is sent or
        logged says its id.
Rule 2: a key is the id, and for an owner with a name a separator that no id may contain (`store/text/unicode.py`), and
        a digest of the name. So the contexts of anonymous callers, and of servers before there were owners, have their
        id as their key.
"""

from __future__ import annotations

import hashlib

SEPARATOR = "\x1f"
DIGEST_CHARACTERS = 24
"""96 bits: nobody finds a second name with the same digest."""


def context_key(owner: str, context_id: str) -> str:
    """The key of the context that `owner` calls `context_id`."""
    if not owner:
        return context_id
    return f"{context_id}{SEPARATOR}{hashlib.sha256(owner.encode()).hexdigest()[:DIGEST_CHARACTERS]}"


def public_id(key: str) -> str:
    """What the context is called outside."""
    return key.partition(SEPARATOR)[0]
