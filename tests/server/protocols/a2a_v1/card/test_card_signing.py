"""The signature of the card: what the SDK's verifier says of it, and which keys make one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from google.protobuf.json_format import MessageToDict
from jwt import PyJWK, PyJWS
from jwt.utils import base64url_encode

from a2a_canvas.server.protocols.a2a_v1.card.card_file import CardError
from a2a_canvas.server.protocols.a2a_v1.card.card_signing import CardKey, load_card_key, thumbprint

URL = "https://agent.example.com/.well-known/jwks.json"
KEYS: dict[str, Any] = {
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
    "RS256": rsa.generate_private_key(65537, 2048),
}


def pem(key: Any, encryption: KeySerializationEncryption | None = None) -> bytes:
    written: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())
    return written


def loaded(folder: Path, content: bytes) -> CardKey:
    path = folder / "card.pem"
    path.write_bytes(content)
    return load_card_key(path)


def card() -> pb.AgentCard:
    found = pb.AgentCard(name="Wörter", description="writes", version="1", default_input_modes=["text/plain"])
    found.capabilities.streaming = True
    found.security_requirements.add().schemes["bearer"].SetInParent()
    return found


def verify(signed: pb.AgentCard, key: CardKey) -> None:
    create_signature_verifier(lambda kid, jku: PyJWK(dict(key.public)), [key.public["alg"]])(signed)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", KEYS)
def test_a_card_is_signed_with_the_algorithm_of_the_key(algorithm: str, tmp_path: Path) -> None:
    key = loaded(tmp_path, pem(KEYS[algorithm]))
    assert key.public["alg"] == algorithm
    signed = key.sign(card(), URL)
    verify(signed, key)
    assert len(signed.signatures) == 2
    assert not card().signatures


@pytest.mark.parametrize("algorithm", KEYS)
def test_the_second_signature_is_that_of_the_specification(algorithm: str, tmp_path: Path) -> None:
    """JWS over the JSON of the card without its signatures, in the form of RFC 8785."""
    key = loaded(tmp_path, pem(KEYS[algorithm]))
    signed = key.sign(card(), URL)
    written = MessageToDict(signed)
    del written["signatures"]
    payload = json.dumps(written, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert b'"securityRequirements":[{"schemes":{"bearer":{}}}]' in payload
    second = signed.signatures[1]
    token = f"{second.protected}.{base64url_encode(payload).decode()}.{second.signature}"
    assert PyJWS().decode(token, PyJWK(dict(key.public)), [algorithm]) == payload


@pytest.mark.parametrize("change", ["name", "description", "version"])
def test_a_card_that_was_changed_is_not_valid(change: str, tmp_path: Path) -> None:
    key = loaded(tmp_path, pem(KEYS["ES256"]))
    signed = key.sign(card(), URL)
    setattr(signed, change, "another")
    with pytest.raises(InvalidSignaturesError):
        verify(signed, key)


def test_a_signature_of_before_is_replaced(tmp_path: Path) -> None:
    key = loaded(tmp_path, pem(KEYS["ES256"]))
    again = key.sign(key.sign(card(), URL), URL)
    assert len(again.signatures) == 2
    verify(again, key)


def test_the_public_key_has_nothing_of_the_private_one(tmp_path: Path) -> None:
    for algorithm, private in KEYS.items():
        public = loaded(tmp_path, pem(private)).public
        assert public.keys() & {"d", "p", "q", "dp", "dq", "qi"} == set(), algorithm
        assert "d=" not in repr(loaded(tmp_path, pem(private)))


def test_the_name_of_a_key_is_its_thumbprint() -> None:
    # RFC 8037, appendix A.3.
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
    assert thumbprint({**jwk, "use": "sig"}) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "must be a private key in PEM form, without a password."),
        (b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n", "must be a private key in PEM form"),
        (pem(KEYS["ES256"], BestAvailableEncryption(b"pass")), "must be a private key in PEM form"),
        (
            KEYS["ES256"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            "must be a private key in PEM form",
        ),
        (pem(ec.generate_private_key(ec.SECP256K1())), "must be of P-256, P-384, P-521, Ed25519, or RSA with 2048"),
        (pem(rsa.generate_private_key(65537, 1024)), "must be of P-256, P-384, P-521, Ed25519, or RSA with 2048"),
    ],
    ids=["empty", "nonsense", "password", "public", "secp256k1", "small"],
)
def test_a_key_that_signs_no_card_is_refused_with_the_name_of_its_file_alone(
    content: bytes, says: str, tmp_path: Path
) -> None:
    with pytest.raises(CardError) as refused:
        loaded(tmp_path, content)
    assert str(refused.value).startswith(f"The signing key {tmp_path}/card.pem {says}")
    assert "c2VjcmV0" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CardError, match="cannot be read: Is a directory"):
        load_card_key(tmp_path)
