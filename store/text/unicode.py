"""The characters allowed in texts and ids. Pure.

Rule 1: no transport, encoding or database accepts a lone surrogate (half of a UTF-16 pair), and PostgreSQL no NUL.
        In content they are replaced by U+FFFD; where a sender can correct them, they are rejected.
Rule 2: every transport, database and log must preserve an id exactly. That excludes the characters of rule 1, and the
        other control characters, which end a line or a field.
"""

from __future__ import annotations

import re
from typing import TypeVar, cast

T = TypeVar("T", bound=str)

MAX_ID = 256
"""Characters of an id that a client chooses. Ids are repeated in every event of a task."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_IN_IDS = re.compile("[\0-\x1f\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def replace_unstorable(text: T) -> T:
    """`text` with lone surrogates and NUL, which databases reject, replaced by U+FFFD."""
    storable = text if text.isascii() else replace_surrogates(text)
    return cast(T, storable.replace("\0", "\ufffd") if "\0" in storable else storable)


def require_utf8(text: str) -> str:
    """`text`.

    Raises:
        ValueError: there is a lone surrogate in it.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("must not contain lone surrogates") from error
    return text


def valid_id(text: str) -> str:
    """`text`, if all its characters are allowed in an id.

    Raises:
        ValueError: one is not. The message names it and is written to follow the name of the field.
    """
    if found := _NOT_IN_IDS.search(text):
        raise ValueError(f"must not contain the {_name(found[0])}")
    return text


def _name(character: str) -> str:
    if character >= "\ud800":
        return f"lone surrogate U+{ord(character):04X}"
    return "character NUL" if character == "\0" else f"control character U+{ord(character):04X}"
