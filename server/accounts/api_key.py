"""API keys: what one looks like, and what is stored of it. Pure, but for the randomness of a new one.

Rule 1: a key is shown once, when it is made; only its hash is stored. It is 43 random characters of 62, 256 bits, so a
        hash without salt and without repetition is enough: nobody finds a key by trying.
Rule 2: a key begins with a prefix and ends with a checksum, so that programs which look for leaked secrets know it, and
        what was cut off or mistyped is refused without a look at the stored ones.
Rule 3: between them it has the shard of its user (`store/ids.py`).
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from a2a_canvas.store.ids import shard_of

PREFIX = "a2ac_"
HASH_PREFIX = "sha256:"
"""Of a hash where a key could be written, too."""

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM, _CHECKSUM = 43, 6
_FORM = re.compile(rf"{PREFIX}([0-9a-f]{{3}}[0-9A-Za-z]{{{_RANDOM}}})([0-9A-Za-z]{{{_CHECKSUM}}})")
MAX_NAME = 128
SHARED_USER = "shared"
"""The user of everyone with the shared token. No key has this user."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is stored.

    Attributes:
        user: to whom it belongs.
        revoked_at: None while it is in force.
    """

    name: str
    user: str
    key_hash: str
    made_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class KeyCount:
    """How many keys a database has.

    Attributes:
        made: including revoked ones.
    """

    made: int = 0
    in_force: int = 0

    @property
    def lock_out_all(self) -> bool:
        """All keys are revoked. The server still asks for one."""
        return self.made > 0 and not self.in_force


NO_KEYS: Final = KeyCount()


class ApiKeys(Protocol):
    """The keys of a server. Every method may raise `Unavailable`."""

    async def find(self, key_hash: str) -> ApiKey | None:
        """The key with this hash, if it is in force."""
        ...

    async def exist(self) -> bool:
        """Whether there are keys, or ever were: then a request needs one."""
        ...


def new_key(user: str) -> str:
    """A key that nobody has, for a user."""
    body = f"{shard_of(user):03x}{''.join(secrets.choice(_DIGITS) for _ in range(_RANDOM))}"
    return f"{PREFIX}{body}{_checksum(body)}"


def is_key(text: str) -> bool:
    """Whether a text has the form of a key (rule 2)."""
    found = _FORM.fullmatch(text)
    return found is not None and found[2] == _checksum(found[1])


def hash_of(key: str) -> str:
    """What is stored of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def valid_name(name: str) -> bool:
    """Whether keys and users may be called so: what a line, a list or a pair is made with is left out."""
    return 0 < len(name) <= MAX_NAME and name.isprintable() and not re.search(r"[\s,=]", name)


def key_of_pair(pair: str) -> ApiKey | None:
    """The key of `NAME=KEY` or `NAME=sha256:HASH`; its user has its name. None if it is none."""
    name, _, given = pair.partition("=")
    hashed = given.removeprefix(HASH_PREFIX)
    if not valid_name(name):
        return None
    if is_key(given):
        return ApiKey(name, name, hash_of(given))
    return ApiKey(name, name, hashed) if hashed != given and re.fullmatch("[0-9a-f]{64}", hashed) else None


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(_CHECKSUM):
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits
