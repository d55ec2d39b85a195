"""Keys and tokens of an issuer, for tests."""

from __future__ import annotations

import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE = "https://login.example.com", "canvas"


class SigningKey:
    """A key of the issuer."""

    def __init__(self, key_id: str, algorithm: str = "ES256", **public: Any) -> None:
        self.id, self.algorithm = key_id, algorithm
        self.private: Any
        if algorithm == "EdDSA":
            self.private = ed25519.Ed25519PrivateKey.generate()
            published = OKPAlgorithm.to_jwk(self.private.public_key())
        elif algorithm.startswith("ES"):
            self.private = ec.generate_private_key(ec.SECP256R1())
            published = ECAlgorithm.to_jwk(self.private.public_key())
        else:
            self.private = rsa.generate_private_key(65537, 2048)
            published = RSAAlgorithm.to_jwk(self.private.public_key())
        self.public: dict[str, Any] = {**json.loads(published), "kid": key_id, "use": "sig", **public}

    def token(self, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        """A valid token, but for what is given; a claim that is None is left out."""
        now = time.time()
        all_of_them = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 300, **claims}
        given = {name: value for name, value in all_of_them.items() if value is not None}
        return jwt.encode(given, self.private, self.algorithm, headers={"kid": self.id, **(headers or {})})
