"""Signs what a browser sends back: sessions, signed addresses, sign-ins in progress. Pure.

Rule 1: a text is signed for one purpose and until one time; for another purpose, or later, it is not valid.
Rule 2: signed is not secret: anyone who has the text can read it, but only the server can have written it.
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
    payload = _encode(json.dumps([claims, int(ends)], separators=(",", ":")).encode())
    return f"{payload}.{_signature(secret, purpose, payload)}"


def read_signed(secret: bytes, purpose: str, text: str, now: float) -> Claims | None:
    """The claims of a signed text; None if its signature or purpose is wrong, or it has expired (rule 1)."""
    payload, _, signature = text.partition(".")
    if not hmac.compare_digest(signature.encode(), _signature(secret, purpose, payload).encode()):
        return None
    claims, ends = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    found: Claims = claims
    return found if now < ends else None


def _signature(secret: bytes, purpose: str, payload: str) -> str:
    return _encode(hmac.digest(secret, f"{purpose}\0{payload}".encode(), hashlib.sha256))


def _encode(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
