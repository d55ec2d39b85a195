"""What is read of the header of a request."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from a2a_canvas.server.protocols.identity.credentials import (
    Credential,
    MalformedHeader,
    OpaqueToken,
    PresentedJwt,
    PresentedKey,
    read_credential,
)
from tests.fakes import API_KEYS

KEY = API_KEYS[0]


def read(*values: str) -> Credential | None:
    return read_credential(Headers(raw=[(b"authorization", value.encode("latin-1")) for value in values]))


def test_no_header_is_no_credential() -> None:
    assert read() is None


@pytest.mark.parametrize(
    ("value", "credential"),
    [
        ("Bearer secret", OpaqueToken("secret")),
        ("bearer   secret ", OpaqueToken("secret")),
        (f"Bearer {KEY}", PresentedKey(KEY)),
        (f"Bearer {KEY}x", OpaqueToken(f"{KEY}x")),
        ("Bearer eyJh.eyJz.c2ln", PresentedJwt("eyJh.eyJz.c2ln")),
        ("Bearer a.b", OpaqueToken("a.b")),
        ("Bearer a..c", OpaqueToken("a..c")),
    ],
)
def test_the_form_says_what_kind_it_is(value: str, credential: Credential) -> None:
    assert read(value) == credential


@pytest.mark.parametrize(
    "values", [("",), ("Bearer",), ("Bearer ",), ("Basic YTpi",), ("secret",), ("Bearer a", "Bearer b")]
)
def test_anything_else_is_malformed(values: tuple[str, ...]) -> None:
    assert read(*values) == MalformedHeader()


def test_no_representation_has_the_secret() -> None:
    assert "secret" not in repr(read("Bearer secret"))
    assert KEY not in repr(read(f"Bearer {KEY}"))
