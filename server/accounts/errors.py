"""What can be wrong with who calls, what they may do, and how much they use. Only the edge turns errors into codes.

AccountError
├── ContextNotFound  there is no such context, or it is another owner's
├── ReadOnly         the context is shared with the caller, who may not do that there
│     OwnerOnly      only its owner may, because it is about its shares
├── ShareNotFound    the context has no such share
├── InvalidShare     a field of a new share is wrong
├── NobodyToShare    the caller has no name, and shares nothing
├── QuotaReached     the caller, or all callers together, have used what they may for now
└── StorageFull      the owner of the context, or all users together, keep as many bytes as they may
"""

from __future__ import annotations

from math import ceil
from typing import Final

from a2a_canvas.server.accounts.access import Level
from a2a_canvas.store.ids import public_id

OUTSIDE_LINK: Final = "Your link gives access to one context: send its contextId."
"""For a caller with a link who names another context, or none."""


class AccountError(Exception):
    """Root of the tree. `str()` of each one says what to do next."""


class ContextNotFound(AccountError):
    def __init__(self, context_id: str) -> None:
        named = public_id(context_id)
        super().__init__(
            f"There is no context {named!r}. GET /artifacts lists yours; a message with this contextId starts it."
        )
        self.context_id = named


class ReadOnly(AccountError):
    """It names no context: the caller may have sent the id of another one, or none.

    Args:
        needed: the level that allows it, or the reason as a sentence.
        granted: the level that the caller has. To one that may only read, the answer is the same before its message is
            read and after.
    """

    def __init__(self, needed: Level | str, granted: Level = Level.COMMENT) -> None:
        super().__init__(_level_needed(needed, granted) if isinstance(needed, Level) else needed)


def _level_needed(needed: Level, granted: Level) -> str:
    if needed is Level.OWN:
        needs = "only its owner may"
    elif granted < Level.COMMENT and needed <= Level.EDIT:
        needs = "comments and suggestions need the level 'comment', messages 'edit'. Ask its owner for a higher level"
    else:
        needs = f"it needs the level {needed.word!r}. Ask its owner"
    return f"Your share of this context does not allow that: {needs}."


class OwnerOnly(ReadOnly):
    def __init__(self, context_id: str) -> None:
        named = public_id(context_id)
        super().__init__(f"Only the owner of context {named!r} can share it, or list and end its shares.")
        self.context_id = named


class ShareNotFound(AccountError):
    def __init__(self, context_id: str, share_id: str) -> None:
        named = public_id(context_id)
        super().__init__(f"Context {named!r} has no share {share_id!r}. GET /artifacts/…/shares lists its shares.")


class InvalidShare(AccountError):
    """
    Args:
        field: the field at fault, as the sender names it.
        reason: the rest of the sentence, such as "is missing".
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}.")
        self.field = field
        self.reason = reason


class NobodyToShare(AccountError):
    def __init__(self) -> None:
        super().__init__(
            "Anonymous conversations cannot be shared: create keys with a2a-canvas key new NAME, and send one."
        )


class QuotaReached(AccountError):
    """
    Args:
        seconds: after so long it is worth a retry.
    """

    def __init__(self, reason: str, seconds: float) -> None:
        self.retry_after = ceil(seconds)
        super().__init__(f"{reason} Try again in {self.retry_after} s.")


class StorageFull(AccountError):
    """
    Args:
        reason: who keeps too much, as a sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason} Delete contexts (DELETE /artifacts/{{context}}), or ask the operator for more storage."
        )
