"""Signs the agent card (A2A 1.0, section 8.4), and publishes the key that verifies it.

Rule 1: the algorithm follows from the key. The key's id is its thumbprint (RFC 7638), so that different keys have
        different ids.
Rule 2: a card has two signatures, by the same key (`card_canonical.py`).
Rule 3: messages name the key's file, but never quote its content.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a2a.types import a2a_pb2 as pb
from a2a.utils.signing import ProtectedHeader, create_agent_card_signer
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from jwt import PyJWS
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from a2a_canvas.server.protocols.a2a_v1.card.card_canonical import canonical_json
from a2a_canvas.server.protocols.a2a_v1.card.card_file import CardError
from a2a_canvas.server.wire import KEYS_PATH

MIN_RSA_BITS = 2048

_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_THUMBPRINT = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n"), "OKP": ("crv", "kty", "x")}
"""The members that identify a key, by its type."""


@dataclass(frozen=True, slots=True, repr=False)
class CardKey:
    """A key that signs cards.

    Attributes:
        public: its public part, a JSON Web Key.
    """

    private: Any
    public: Mapping[str, Any]

    def sign(self, card: pb.AgentCard, keys_url: str) -> pb.AgentCard:
        """The card with the signatures of this key alone (rule 2).

        Args:
            keys_url: where the public key is.
        """
        signed = pb.AgentCard()
        signed.CopyFrom(card)
        del signed.signatures[:]
        header = ProtectedHeader(kid=self.public["kid"], alg=self.public["alg"], jku=keys_url, typ="JOSE")
        jws = PyJWS().encode(canonical_json(signed), self.private, self.public["alg"], dict(header))
        protected, _, signature = jws.split(".")
        signed = create_agent_card_signer(self.private, header)(signed)
        signed.signatures.add(protected=protected, signature=signature)
        return signed


def load_card_key(path: Path) -> CardKey:
    """The key in a PEM file.

    Raises:
        CardError: it cannot be read, or no card can be signed with it.
    """
    try:
        private = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise CardError(f"The signing key {path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CardError(f"The signing key {path} must be a private key in PEM form, without a password.") from None
    match private:
        case ec.EllipticCurvePrivateKey() if private.curve.name in _CURVES:
            return _card_key(private, _CURVES[private.curve.name], ECAlgorithm.to_jwk(private.public_key()))
        case ed25519.Ed25519PrivateKey():
            return _card_key(private, "EdDSA", OKPAlgorithm.to_jwk(private.public_key()))
        case rsa.RSAPrivateKey() if private.key_size >= MIN_RSA_BITS:
            return _card_key(private, "RS256", RSAAlgorithm.to_jwk(private.public_key()))
        case _:
            kinds = f"P-256, P-384, P-521, Ed25519, or RSA with {MIN_RSA_BITS} bits or more"
            raise CardError(f"The signing key {path} must be of {kinds}.")


def card_keys_route(key: CardKey) -> Route:
    """`GET /.well-known/jwks.json`."""

    async def serve(request: Request) -> Response:
        return JSONResponse({"keys": [dict(key.public)]}, headers={"Cache-Control": "public, max-age=300"})

    return Route(KEYS_PATH, serve, methods=["GET"])


def thumbprint(jwk: Mapping[str, Any]) -> str:
    """The name of a public key (RFC 7638)."""
    members = {name: jwk[name] for name in _THUMBPRINT[jwk["kty"]]}
    digest = hashlib.sha256(json.dumps(members, sort_keys=True, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _card_key(private: Any, algorithm: str, published: str) -> CardKey:
    jwk = {name: value for name, value in json.loads(published).items() if name != "key_ops"}
    return CardKey(private, {**jwk, "kid": thumbprint(jwk), "alg": algorithm, "use": "sig"})
