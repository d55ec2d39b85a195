"""Makes tool names that every provider accepts. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Mapping
from typing import TypeVar

MAX_NAME = 64
MAX_PREFIX = 32
SEPARATOR = "__"

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]+")

K = TypeVar("K", bound=Hashable)


def unique_names(parts: Mapping[K, tuple[str, ...]], limit: int = MAX_NAME) -> dict[K, str]:
    """A name for each key: its joined parts, with only letters, digits, `_` and `-`, and at most `limit` characters.

    A name that was cut, or that two keys would share, ends with a hash of the parts: it depends on earlier keys, but
    not on later ones.
    """
    names: dict[K, str] = {}
    for key, words in parts.items():
        plain = SEPARATOR.join(_NOT_ALLOWED.sub("_", word) or "_" for word in words)
        is_new = plain not in names.values()
        names[key] = plain if is_new and len(plain) <= limit else _hash_name(plain, words, limit)
    return names


def name_prefix(word: str) -> str:
    """The prefix of all names with this word in front, unless they were cut."""
    return _NOT_ALLOWED.sub("_", word) + SEPARATOR


def _hash_name(plain: str, words: tuple[str, ...], limit: int) -> str:
    digest = hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()[:8]
    return f"{plain[: limit - 9]}_{digest}"
