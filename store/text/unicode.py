"""What an id may be, of an artifact, a context, a task or a message: the rule for whoever lets one in. Pure.

Rule: an id is carried unchanged by every transport, database and log, so that two of them are one only if they are
      equal. PostgreSQL has no NUL, UTF-8 has no half of a surrogate pair, and the other control characters end a line
      or a field.
"""

from __future__ import annotations

import re

MAX_ID = 256
"""Characters of an id that a client chooses. Ids stand in every event of a task."""

_UNFIT = re.compile("[\0-\x1f\ud800-\udfff]")


def valid_id(text: str) -> str:
    """`text`, if its characters may stand in an id.

    Raises:
        ValueError: one may not. The message says which, to stand behind the field's name.
    """
    if found := _UNFIT.search(text):
        raise ValueError(f"must not contain the {_name(found[0])}")
    return text


def _name(unfit: str) -> str:
    if unfit >= "\ud800":
        return f"lone surrogate U+{ord(unfit):04X}"
    return "character NUL" if unfit == "\0" else f"control character U+{ord(unfit):04X}"
