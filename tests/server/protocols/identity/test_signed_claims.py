"""What the server signs for a browser to bring back."""

from __future__ import annotations

import pytest

from a2a_canvas.server.protocols.identity.signed_claims import read_signed, sign

SECRET = b"0123456789abcdef"
CLAIMS = {"user": "änn"}
SIGNED = sign(SECRET, "session", CLAIMS, 1000)


def test_what_was_signed_is_read_until_it_ends() -> None:
    assert read_signed(SECRET, "session", SIGNED, 999) == CLAIMS
    assert read_signed(SECRET, "session", SIGNED, 1000) is None


def test_it_is_for_its_purpose_and_of_its_server_alone() -> None:
    assert read_signed(SECRET, "address", SIGNED, 0) is None
    assert read_signed(b"another", "session", SIGNED, 0) is None


@pytest.mark.parametrize(
    "text", ["", ".", "e30.", SIGNED[1:], SIGNED[:-1], SIGNED + "x", SIGNED.replace(".", ""), "ä.ö"]
)
def test_anything_else_is_nothing(text: str) -> None:
    assert read_signed(SECRET, "session", text, 0) is None
