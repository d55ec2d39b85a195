"""`a2a-canvas card verify`: whether an agent card is signed, and by which key.

Rule 1: without --key, the keys are read from where the signature says, if that is the host of the card. A signature
        then proves only that the card is as its server made it; TLS proves which server that is.
Rule 2: a signature counts in the form of A2A 1.0, else in that of a2a-sdk, which does not cover empty values
        (`card_canonical.py`): what it leaves open is said.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urljoin, urlsplit

import httpx
from a2a.client.card_resolver import parse_agent_card
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from google.protobuf.json_format import ParseError
from jwt import PyJWK, PyJWS, PyJWTError
from jwt.exceptions import InvalidKeyError
from jwt.utils import base64url_decode, base64url_encode

from a2a_canvas.server.outbound.over_httpx import client, json_of
from a2a_canvas.server.protocols.a2a_v1.card.card_canonical import canonical_json
from a2a_canvas.server.settings.value_types import is_trusted_url

ALGORITHMS = ("ES256", "ES384", "ES512", "EdDSA", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
TIMEOUT = 10.0


class CardNotVerified(Exception):
    """The card has no valid signature, or is unreadable; `str()` is one line."""


def verify_card(url: str, key: Path | None, out: TextIO) -> int:
    """Run `card verify`.

    Args:
        url: of the server, or of the card.
        key: a file with the public keys that are trusted, PEM or a JSON Web Key Set; None for those that the signature
            names.

    Raises:
        CardNotVerified: it is not valid.
    """
    where = url if url.endswith(".json") else url.rstrip("/") + AGENT_CARD_WELL_KNOWN_PATH
    found = asyncio.run(_read(where))
    card = _card(deepcopy(found), where)  # which changes what it reads
    signed = [(signature, _header(signature)) for signature in card.signatures]
    published = cache(partial(_fetch_named_keys, where))
    for verifies, leaves_open in ((partial(_is_valid, found, card), ""), (partial(_is_valid_for_sdk, card), _OPEN)):
        for signature, header in signed:
            jku, kid = (str(header.get(name, "")) for name in ("jku", "kid"))
            if verifies(signature, _keys_in(key) if key else published(jku, kid)):
                by = f"The card of {card.name} is signed with the key {kid} of {key or jku}."
                out.write(f"{by}{leaves_open}\n")
                return 0
    why = "has no valid signature" if card.signatures else "is not signed"
    raise CardNotVerified(f"The card at {where} {why}.")


_OPEN = " This signature, in the form of a2a-sdk, covers neither empty values nor the contents of securityRequirements."


def _is_valid(found: Any, card: pb.AgentCard, signature: pb.AgentCardSignature, keys: Sequence[Any]) -> bool:
    """Whether a signature is one of A2A 1.0, over the card as it was served, or over its fields of 1.0."""
    return any(_signs(payload, signature, key) for payload in _payloads(found, card) for key in keys)


def _payloads(found: Any, card: pb.AgentCard) -> Iterator[bytes]:
    for form in (found, card):
        with suppress(ValueError):
            yield canonical_json(form)


def _signs(payload: bytes, signature: pb.AgentCardSignature, key: Any) -> bool:
    token = f"{signature.protected}.{base64url_encode(payload).decode()}.{signature.signature}"
    try:
        PyJWS().decode(token, key, list(ALGORITHMS))
    # PyJWT passes what a key of another type raises.
    except (PyJWTError, TypeError, ValueError):
        return False
    return True


def _is_valid_for_sdk(card: pb.AgentCard, signature: pb.AgentCardSignature, keys: Sequence[Any]) -> bool:
    alone = pb.AgentCard()
    alone.CopyFrom(card)
    del alone.signatures[:]
    alone.signatures.append(signature)
    return any(_verifies(alone, key) for key in keys)


def _verifies(card: pb.AgentCard, key: Any) -> bool:
    try:
        create_signature_verifier(lambda _kid, _jku: key, list(ALGORITHMS))(card)
    # The SDK passes what a key of another type raises.
    except (SignatureVerificationError, InvalidKeyError, TypeError, ValueError):
        return False
    return True


def _header(signature: pb.AgentCardSignature) -> Mapping[str, Any]:
    try:
        header = json.loads(base64url_decode(signature.protected.encode()))
    except ValueError:
        return {}
    return header if isinstance(header, dict) else {}


def _fetch_named_keys(card_url: str, jku: str, kid: str) -> Sequence[Any]:
    """The keys where the signature says that they are (rule 1)."""
    url = urljoin(card_url, jku)
    if urlsplit(url)[:2] != urlsplit(card_url)[:2] or not is_trusted_url(url):
        raise CardNotVerified(f"The signature names keys at {url}, which is elsewhere: pass those you trust as --key.")
    return list(_keys_of_set(asyncio.run(_read(url)), kid))


def _keys_in(path: Path) -> Sequence[Any]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise CardNotVerified(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return [load_pem_public_key(text)]
    except ValueError:
        pass
    try:
        return list(_keys_of_set(json.loads(text), ""))
    except ValueError:
        raise CardNotVerified(f"{path} has no public key, in PEM form or as a JSON Web Key Set.") from None


def _keys_of_set(found: Any, key_id: str) -> Iterator[Any]:
    keys = found.get("keys") if isinstance(found, dict) else None
    for each in keys if isinstance(keys, list) else ():
        if isinstance(each, dict) and each.get("kty") != "oct" and (not key_id or each.get("kid") == key_id):
            try:
                yield PyJWK(each)
            except PyJWTError:
                continue


def _card(found: Any, url: str) -> pb.AgentCard:
    try:
        return parse_agent_card(found)
    except (ParseError, AttributeError, TypeError):
        raise CardNotVerified(f"There is no agent card at {url}.") from None


async def _read(url: str) -> Any:
    try:
        async with asyncio.timeout(TIMEOUT), client() as http:
            return json_of((await http.get(url, headers={"Accept": "application/json"})).raise_for_status())
    except httpx.HTTPStatusError as error:
        raise CardNotVerified(f"{url} answers with HTTP {error.response.status_code}.") from None
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        raise CardNotVerified(f"{url} cannot be read: {str(error) or type(error).__name__}.") from None
