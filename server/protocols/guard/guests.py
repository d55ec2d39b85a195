"""Refuses messages of guests with a read-only link before their body is parsed.

Every body of a size that only messages may have (`bodies.py`, rule 5) is refused, too; over HTTP it is not even read. A
small JSON-RPC body has to be parsed, because it names the method.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.accounts.errors import ReadOnly
from a2a_canvas.server.protocols.edge.error_tables import PermissionDeniedError
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.tasks.contexts import Contexts
from a2a_canvas.store.errors import Unavailable

RefuseMessage: TypeAlias = Callable[[Caller], Awaitable[Refusal | None]]
"""Why every message of a caller is refused, whatever its content; None if that depends on the message."""


async def refuse_none(caller: Caller) -> Refusal | None:
    """For a server on which nothing is shared."""
    return None


async def refuse_readers(contexts: Contexts, caller: Caller) -> Refusal | None:
    """Refuse messages of a caller whose link is read-only."""
    with suppress(Unavailable):  # the operation reports that itself
        try:
            await contexts.check_link(caller)
        except ReadOnly as error:
            return Refusal(PermissionDeniedError, str(error))
    return None
