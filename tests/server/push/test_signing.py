"""The headers of a notification."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import State, StatusChanged
from a2a_canvas.server.push.outbox import Delivery
from a2a_canvas.server.push.signing import headers_of, signature, signing_key
from a2a_canvas.server.tasks.push_configs import ConfigKey, PushConfig
from a2a_canvas.server.tasks.record import Entry

AT = datetime(2021, 2, 25, 15, 2, 10, tzinfo=UTC)


def config(**fields: Any) -> PushConfig:
    version = fields.pop("version", "1.0")
    return PushConfig(ConfigKey("c", "t", "p"), ANONYMOUS, version, "https://a/x", "a:443", **fields)


def headers(**fields: Any) -> dict[str, str]:
    entry = Entry(1, 7, AT, StatusChanged(State.COMPLETED))
    return headers_of(Delivery(config(**fields), entry, 0, ""), b"{}", AT)


def test_a_signature_is_that_of_standard_webhooks() -> None:
    key = signing_key(config(scheme="HMAC-SHA256", credentials="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
    signed = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_notification_without_secrets_has_its_id_and_its_time() -> None:
    assert headers() == {
        "Content-Type": "application/a2a+json",
        "User-Agent": "a2a-canvas",
        "A2A-Version": "1.0",
        "webhook-id": "t:7",
        "webhook-timestamp": "1614265330",
    }


def test_a_notification_of_0_3_is_plain_json() -> None:
    assert headers(version="0.3")["Content-Type"] == "application/json"


def test_the_key_of_the_signature_is_sent_nowhere() -> None:
    sent = headers(scheme="hmac-sha256", credentials="k3y", token="t0ken")
    assert sent["webhook-signature"] == signature(b"k3y", "t:7", 1614265330, b"{}")
    assert sent["X-A2A-Notification-Token"] == "t0ken"
    assert "Authorization" not in sent
    assert "k3y" not in str(sent)


def test_authentication_becomes_the_header() -> None:
    sent = headers(scheme="Bearer", credentials="s3cret")
    assert sent["Authorization"] == "Bearer s3cret"
    assert "webhook-signature" not in sent
    assert "Authorization" not in headers(scheme="Bearer")


def test_a_token_signs_where_there_is_no_other_key() -> None:
    sent = headers(scheme="Bearer", credentials="s3cret", token="t0ken")
    assert sent["webhook-signature"] == signature(b"t0ken", "t:7", 1614265330, b"{}")


@pytest.mark.parametrize(
    ("secret", "key"),
    [
        ("plain text", b"plain text"),
        ("whsec_" + base64.b64encode(b"\0\xff").decode(), b"\0\xff"),
        ("whsec_no base64", b"whsec_no base64"),
    ],
)
def test_a_key_is_base64_or_text(secret: str, key: bytes) -> None:
    assert signing_key(config(token=secret)) == key


def test_no_secret_is_in_what_is_printed_of_a_config() -> None:
    shown = repr(config(token="t0ken", scheme="Bearer", credentials="s3cret"))
    assert not any(secret in shown for secret in ("t0ken", "s3cret", "https://a/x"))
