"""What the server signs for a browser to bring back: sessions, signed addresses, sign-ins that have begun. Pure.

Rule 1: a text is signed for one purpose, and until a time; for another purpose, or later, it is nothing.
Rule 2: what is signed can be read by whoever has it; only the server can have written it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping

Claims = Mapping[str, str]


def sign(secret: bytes, purpose: str, claims: Claims, ends: float) -> str:
    """A text with `claims` that is valid until `ends`, in seconds since 1970."""
    payload = _encoded(json.dumps([claims, int(ends)], separators=(",", ":")).encode())
    return f"{payload}.{_signature(secret, purpose, payload)}"


def read_signed(secret: bytes, purpose: str, text: str, now: float) -> Claims | None:
    """What was signed; None if it was not, or not for this, or is over (rule 1)."""
    payload, _, signature = text.partition(".")
    if not hmac.compare_digest(signature.encode(), _signature(secret, purpose, payload).encode()):
        return None
    claims, ends = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    found: Claims = claims
    return found if now < ends else None


def _signature(secret: bytes, purpose: str, payload: str) -> str:
    return _encoded(hmac.digest(secret, f"{purpose}\0{payload}".encode(), hashlib.sha256))


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
