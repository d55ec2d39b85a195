"""A stream ends when the credential ends that opened it: a key is revoked, a token or a session expires.

Rule 1: it ends with `UnauthenticatedError`, in the form of its binding, within CHECK_SECONDS of a cursor after requests
        are refused. Its task goes on, and a client goes on where it was, with another credential.
Rule 2: while nobody can say whether a credential is valid, it is.
Rule 3: only streams end. An answer without one belongs to a request that was let in.
"""

from __future__ import annotations

from a2a_canvas.server.protocols.identity.authenticator import Authenticated, Authenticator
from a2a_canvas.server.protocols.identity.denials import UnauthenticatedError
from a2a_canvas.server.tasks.journal.cursors import Check
from a2a_canvas.store.errors import Unavailable

ENDED = "These credentials are not valid any more, so this stream ends. Its task goes on: come back with new ones."


def stream_check(authenticator: Authenticator, found: Authenticated) -> Check | None:
    """What ends the streams of a request; None if its credential stays valid."""

    async def check() -> None:
        try:
            valid = await authenticator.in_force(found)
        except Unavailable:
            valid = True
        if not valid:
            raise UnauthenticatedError(ENDED)

    return check if found.ends else None
