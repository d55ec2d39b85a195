"""Reads the credential of a request. Pure: `authenticator.py` checks it.

Rule 1: there is one credential, in one header: `Authorization: Bearer …`, over HTTP and in gRPC's metadata.
Rule 2: its form alone decides its kind, so each is checked in one way. A new kind is a class here, a line in `_bearer`,
        and a case in `Authenticator.verify`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from starlette.datastructures import Headers

from a2a_canvas.server.accounts.api_key import is_key
from a2a_canvas.server.accounts.sharing import is_link_token

HEADER = "Authorization"
SCHEME = "Bearer"
_JWT = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


@dataclass(frozen=True, slots=True, repr=False)
class OpaqueToken:
    """A token of no particular form, such as the shared token."""

    text: str


@dataclass(frozen=True, slots=True, repr=False)
class PresentedKey:
    """An API key with a correct checksum."""

    text: str


@dataclass(frozen=True, slots=True, repr=False)
class PresentedLink:
    """The token of a share's link."""

    text: str


@dataclass(frozen=True, slots=True, repr=False)
class PresentedJwt:
    """A signed JSON Web Token, in its compact form."""

    text: str


@dataclass(frozen=True, slots=True)
class MalformedHeader:
    """An Authorization header without a readable credential."""


Credential: TypeAlias = OpaqueToken | PresentedKey | PresentedLink | PresentedJwt | MalformedHeader


def read_credential(headers: Headers) -> Credential | None:
    """The credential of a request; None if it has none."""
    given = headers.getlist(HEADER)
    if not given:
        return None
    scheme, _, text = given[0].strip().partition(" ")
    if len(given) > 1 or scheme.lower() != SCHEME.lower() or not text.strip():
        return MalformedHeader()
    return _bearer(text.strip())


def _bearer(text: str) -> Credential:
    if is_key(text):
        return PresentedKey(text)
    if is_link_token(text):
        return PresentedLink(text)
    return PresentedJwt(text) if _JWT.fullmatch(text) else OpaqueToken(text)
