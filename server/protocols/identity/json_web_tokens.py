"""Checks the JSON Web Tokens of an issuer. Pure, except for the time of day and the log.

Rule 1: only the algorithms below are accepted, whatever a token says: signatures with a public key. The algorithm must
        fit the key.
Rule 2: a token has an issuer, an audience, an expiry time and a user. Clocks may differ by LEEWAY.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from a2a_canvas.server.accounts.access import is_user_name

logger = logging.getLogger(__name__)

Jwk = Mapping[str, Any]
"""A JSON Web Key, as its issuer publishes it."""

LEEWAY = 60
"""Seconds by which the clocks of the issuer and of this server may differ."""

_FAR_AWAY = 2**40
"""Seconds since 1970: no credential needs a later expiry time, and a float holds every second until then."""

ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By the type of the key."""


_INVALID = (jwt.PyJWTError, RecursionError, OverflowError)
"""What a hostile token can raise, for example with deeply nested JSON or numbers that are too large."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must contain.

    Attributes:
        user_claim: the claim that names the user.
        reserved: users that a token may not name, because other credentials identify them.
    """

    issuer: str
    audience: str
    user_claim: str = "sub"
    reserved: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ValidToken:
    """What a valid token says.

    Attributes:
        expires_at: seconds since 1970 at which it expires.
    """

    user: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class TokenHeader:
    """What a token says about its signature, not yet verified."""

    algorithm: str
    key_id: str = ""


def header_of(token: str) -> TokenHeader | None:
    """The header of a token that may be valid; None for any other token."""
    try:
        header = jwt.get_unverified_header(token)
    except _INVALID:
        return None
    algorithm, key_id = header.get("alg"), header.get("kid", "")
    if not isinstance(key_id, str) or not any(algorithm in names for names in ALGORITHMS.values()):
        return None
    return TokenHeader(str(algorithm), key_id)


def fits(key: Jwk, header: TokenHeader) -> bool:
    """Whether a token may be signed with a key."""
    return (
        header.algorithm in ALGORITHMS.get(str(key.get("kty")), ())
        and key.get("alg", header.algorithm) == header.algorithm
        and key.get("use", "sig") == "sig"
        and (not header.key_id or key.get("kid") == header.key_id)
    )


def read_token(token: str, key: Jwk, header: TokenHeader, rules: TokenRules) -> ValidToken | None:
    """What a token says; None if it is not valid."""
    try:
        claims = jwt.decode(
            token,
            jwt.PyJWK(dict(key), header.algorithm),
            algorithms=[header.algorithm],
            audience=rules.audience,
            issuer=rules.issuer,
            leeway=LEEWAY,
            options={"require": ["exp", "iss", "aud", rules.user_claim], "enforce_minimum_key_length": True},
        )
    except _INVALID:
        return None
    user = claims[rules.user_claim]
    if not isinstance(user, str) or not is_user_name(user):
        return None
    if user in rules.reserved:
        text = "A token from the issuer was refused: its user %r (claim %r) is the user of the shared token"
        logger.warning(text, user, rules.user_claim)
        return None
    return ValidToken(user, min(int(claims["exp"]), _FAR_AWAY) + LEEWAY)
