"""Subjects and signatures of messages, by a key that all servers of one database have (rule 2). Pure."""

from __future__ import annotations

import hashlib
import hmac

PREFIX = "a2a_canvas"
"""The first token of every subject: a broker's permissions for a server are `a2a_canvas.>`."""
SIGNATURE_BYTES = 32
_TOKEN_DIGITS = 32
"""Hexadecimal digits of a hash in a subject: 128 bits."""


class Signatures:
    """Makes subjects, and signs and checks messages.

    Args:
        key: a secret of at least 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.sha256(b"a2a-canvas broker" + key).digest()
        self._installation = self._hash("installation", "")

    def subject(self, kind: str, *names: str | None) -> str:
        """The subject of a kind of messages about something.

        Args:
            kind: a word of this program's.
            names: any texts; None, to subscribe, for every name.
        """
        tokens = ("*" if name is None else self._hash(kind, name) for name in names)
        return ".".join((PREFIX, self._installation, kind, *tokens))

    def sign(self, subject: str, payload: bytes) -> bytes:
        """The message: a signature, and the payload."""
        return self._signature(subject, payload) + payload

    def open(self, subject: str, message: bytes) -> bytes | None:
        """The payload of a message on a subject; None if it is not signed for it."""
        signature, payload = message[:SIGNATURE_BYTES], message[SIGNATURE_BYTES:]
        return payload if hmac.compare_digest(signature, self._signature(subject, payload)) else None

    def _signature(self, subject: str, payload: bytes) -> bytes:
        return hmac.digest(self._key, subject.encode() + b"\0" + payload, "sha256")

    def _hash(self, kind: str, name: str) -> str:
        return hmac.digest(self._key, f"{kind}\0{name}".encode(), "sha256").hex()[:_TOKEN_DIGITS]
