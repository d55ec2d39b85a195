"""Which tokens are valid, and whom they name."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from a2a_canvas.server.protocols.identity.json_web_tokens import (
    LEEWAY,
    TokenRules,
    ValidToken,
    fits,
    header_of,
    read_token,
)
from tests.server.protocols.identity.tokens import AUDIENCE, ISSUER, SigningKey

RULES = TokenRules(ISSUER, AUDIENCE)
KEY, OTHER = SigningKey("1"), SigningKey("1")
RSA = SigningKey("2", "RS256")


def valid(token: str, *keys: SigningKey, rules: TokenRules = RULES) -> ValidToken | None:
    header = header_of(token)
    if header is None:
        return None
    fitting = [key.public for key in keys or (KEY,) if fits(key.public, header)]
    return next((found for key in fitting if (found := read_token(token, key, header, rules))), None)


def user(token: str, *keys: SigningKey, rules: TokenRules = RULES) -> str | None:
    found = valid(token, *keys, rules=rules)
    return found.user if found else None


def encoded(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA", "RS256", "PS256"])
def test_a_token_of_the_issuer_names_its_user(algorithm: str) -> None:
    key = SigningKey("k", algorithm)
    assert user(key.token(), key) == "ann"


def test_another_claim_can_be_the_user() -> None:
    assert user(KEY.token(email="ann@example.com"), rules=TokenRules(ISSUER, AUDIENCE, "email")) == "ann@example.com"
    assert user(KEY.token(), rules=TokenRules(ISSUER, AUDIENCE, "email")) is None


def test_one_of_several_audiences_is_enough() -> None:
    assert user(KEY.token(aud=["another", AUDIENCE])) == "ann"


def dated(claims: dict[str, Any]) -> dict[str, Any]:
    """The claims; numbers with a fraction are seconds from now."""
    return {name: time.time() + value if isinstance(value, float) else value for name, value in claims.items()}


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example.com"},
        {"iss": ISSUER + "/"},
        {"iss": None},
        {"aud": "another"},
        {"aud": None},
        {"aud": []},
        {"exp": -LEEWAY - 5.0},
        {"exp": None},
        {"exp": "soon"},
        {"nbf": LEEWAY + 60.0},
        {"sub": None},
        {"sub": ""},
        {"sub": 42},
        {"sub": "a\x1fb"},
        {"sub": "a" * 257},
        {"sub": "link 1"},
        {"sub": " "},
        {"sub": "ann "},
    ],
    ids=" ".join,
)
def test_a_token_that_says_anything_else_is_not_valid(claims: dict[str, Any]) -> None:
    claims = dated(claims)
    try:
        token = KEY.token(**claims)
    except TypeError:  # PyJWT itself makes no token whose user is no text
        token = jwt.api_jws.encode(
            json.dumps({"iss": ISSUER, "aud": AUDIENCE, **claims}).encode(), KEY.private, "ES256"
        )
    assert user(token) is None


@pytest.mark.parametrize("claims", [{"exp": -LEEWAY / 2}, {"nbf": LEEWAY / 2}], ids=["expired", "not yet"])
def test_clocks_may_differ_a_little(claims: dict[str, Any]) -> None:
    assert user(KEY.token(**dated(claims))) == "ann"


@pytest.mark.parametrize(("exp", "ends"), [(4e9, 4e9), ("4000000000", 4e9), (10**400, 2.0**40)], ids=str)
def test_it_says_when_it_ends(exp: Any, ends: float) -> None:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": exp}
    found = valid(jwt.api_jws.encode(json.dumps(claims).encode(), KEY.private, "ES256"))
    assert found
    assert found.expires_at == ends + LEEWAY


def test_a_signature_of_another_key_is_not_valid() -> None:
    assert user(OTHER.token()) is None


def test_a_token_whose_claims_were_changed_is_not_valid() -> None:
    head, _, signature = KEY.token().split(".")
    changed = encoded({"iss": ISSUER, "aud": AUDIENCE, "sub": "root", "exp": time.time() + 300})
    assert user(f"{head}.{changed}.{signature}") is None


def test_a_token_without_a_signature_is_not_valid() -> None:
    claims = encoded({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 300})
    for algorithm in ("none", "None", "HS256", None, ["ES256"]):
        assert header_of(f"{encoded({'alg': algorithm})}.{claims}.c2ln") is None


def test_the_public_key_is_no_shared_secret() -> None:
    published = RSA.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    import hmac
    from hashlib import sha256

    claims = encoded({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 300})
    signed = f"{encoded({'alg': 'HS256', 'kid': '2'})}.{claims}"
    signature = urlsafe_b64encode(hmac.digest(published, signed.encode(), sha256)).decode().rstrip("=")
    assert user(f"{signed}.{signature}", RSA) is None


@pytest.mark.parametrize(
    ("published", "fit"),
    [
        ({}, True),
        ({"alg": "ES256"}, True),
        ({"alg": "ES384"}, False),
        ({"use": "enc"}, False),
        ({"kid": "another"}, False),
        ({"kty": "oct"}, False),
        ({"kty": ["EC"]}, False),
    ],
)
def test_a_key_is_for_one_kind_of_signature(published: dict[str, Any], fit: bool) -> None:
    header = header_of(KEY.token())
    assert header
    assert fits({**KEY.public, **published}, header) == fit


def test_a_token_without_the_name_of_its_key_may_have_any_that_fits() -> None:
    token = jwt.encode(jwt.decode(KEY.token(), options={"verify_signature": False}), KEY.private, "ES256")
    assert user(token, RSA, OTHER, KEY) == "ann"


@pytest.mark.parametrize("token", ["", "a.b.c", "é.é.é", f"{encoded({'alg': 'ES256', 'kid': 1})}.e30.c2ln"])
def test_what_is_no_token_is_not_valid(token: str) -> None:
    assert user(token) is None


def test_json_that_is_nested_deeply_is_not_valid() -> None:
    nested = urlsafe_b64encode(b'{"alg":' + b"[" * 20_000 + b"]" * 20_000 + b"}").decode().rstrip("=")
    assert header_of(f"{nested}.e30.c2ln") is None


def test_a_published_key_that_is_broken_makes_no_token_valid() -> None:
    header = header_of(KEY.token())
    assert header
    assert read_token(KEY.token(), {"kty": "EC", "crv": "P-256", "x": "!", "y": 3}, header, RULES) is None


def test_a_token_does_not_name_a_user_who_is_let_in_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    rules = TokenRules(ISSUER, AUDIENCE, reserved=frozenset({"shared"}))
    assert user(KEY.token(sub="shared"), rules=rules) is None
    assert "refused: its user 'shared' (claim 'sub') is the user of the shared token" in caplog.text
    assert user(KEY.token(sub="ann"), rules=rules) == "ann"
    assert user(KEY.token(sub="shared")) == "shared"
