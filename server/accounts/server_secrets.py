"""The secrets that servers sign with: what browsers bring back, and what servers tell each other."""

from __future__ import annotations

import secrets
from typing import Protocol

SECRET_BYTES = 32
SESSIONS = "sessions"
BROKER = "broker"


class ServerSecrets(Protocol):
    """Secrets of a server, by what they are for."""

    async def secret(self, name: str) -> bytes:
        """The secret; it is made when it is asked for first.

        Raises:
            Unavailable: it cannot be read now.
        """
        ...


class InMemorySecrets:
    """`ServerSecrets` that end with the process."""

    def __init__(self) -> None:
        self._secrets: dict[str, bytes] = {}

    async def secret(self, name: str) -> bytes:
        return self._secrets.setdefault(name, secrets.token_bytes(SECRET_BYTES))
