"""The headers of a notification. Pure.

Rule 1: the signature is that of Standard Webhooks: HMAC-SHA256 over the id of the event, the time in seconds and the
        body, so a receiver needs one of its libraries or ten lines.
Rule 2: its key is the config's own: the credentials of the scheme HMAC-SHA256, which are never sent; without that
        scheme its token. No key is shared by two receivers, so none of them can write to another.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import b64decode, b64encode
from datetime import datetime

from a2a_canvas.server.push.outbox import Delivery
from a2a_canvas.server.tasks.push_configs import PushConfig

SIGNED = "hmac-sha256"
"""The authentication scheme whose credentials are the key of the signature, in lower case."""
_PREFIX = "whsec_"
"""How a key begins that is written in Base64."""


def headers_of(delivery: Delivery, body: bytes, at: datetime) -> dict[str, str]:
    """The headers of one attempt.

    Args:
        at: when it is sent.
    """
    config = delivery.config
    seconds = int(at.timestamp())
    headers = {
        "Content-Type": "application/json" if config.version == "0.3" else "application/a2a+json",
        "User-Agent": "a2a-canvas",
        "A2A-Version": config.version,
        "webhook-id": delivery.event_id,
        "webhook-timestamp": str(seconds),
    }
    if config.token:
        headers["X-A2A-Notification-Token"] = config.token
    if config.credentials and config.scheme.lower() != SIGNED:
        headers["Authorization"] = f"{config.scheme} {config.credentials}"
    if key := signing_key(config):
        headers["webhook-signature"] = signature(key, delivery.event_id, seconds, body)
    return headers


def signing_key(config: PushConfig) -> bytes:
    """The key of a config's signatures; empty if it has none."""
    secret = config.credentials if config.scheme.lower() == SIGNED else config.token
    if secret.startswith(_PREFIX):
        try:
            return b64decode(secret.removeprefix(_PREFIX), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


def signature(key: bytes, event_id: str, seconds: int, body: bytes) -> str:
    """The signature of a body, as `webhook-signature` has it."""
    signed = b".".join((event_id.encode(), str(seconds).encode(), body))
    return "v1," + b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
