"""What a request presents of its caller. Pure: whether it is right is decided in `authenticator.py`.

Rule 1: there is one credential, in one header: `Authorization: Bearer …`, over HTTP and in gRPC's metadata.
Rule 2: what kind it is follows from its form alone, so each is checked in one way. A new kind is a class here, a line
        in `_bearer`, and a case in `Authenticator.verify`.
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
    """A token without a form, such as the shared one."""

    text: str


@dataclass(frozen=True, slots=True, repr=False)
class PresentedKey:
    """An API key, whose checksum is right."""

    text: str


@dataclass(frozen=True, slots=True, repr=False)
class PresentedLink:
    """The token of the link of a share."""

    text: str


@dataclass(frozen=True, slots=True, repr=False)
class PresentedJwt:
    """A signed JSON Web Token, in its compact form."""

    text: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """A header that no credential can be read from."""


Credential: TypeAlias = OpaqueToken | PresentedKey | PresentedLink | PresentedJwt | Malformed


def read_credential(headers: Headers) -> Credential | None:
    """What a request presents; None if it presents nothing."""
    given = headers.getlist(HEADER)
    if not given:
        return None
    scheme, _, text = given[0].strip().partition(" ")
    if len(given) > 1 or scheme.lower() != SCHEME.lower() or not text.strip():
        return Malformed()
    return _bearer(text.strip())


def _bearer(text: str) -> Credential:
    if is_key(text):
        return PresentedKey(text)
    if is_link_token(text):
        return PresentedLink(text)
    return PresentedJwt(text) if _JWT.fullmatch(text) else OpaqueToken(text)
