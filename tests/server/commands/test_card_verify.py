"""`a2a-canvas card verify`, and the SDK's client, with the card of a server that signs it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from a2a.client import A2ACardResolver
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.signing import create_signature_verifier
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from jwt import PyJWK
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.wire import KEYS_PATH
from tests.loopback import serving_app
from tests.server.app_server import Served, serving
from tests.server.client.client_harness import unused_url

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY, OTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    path = tmp_path_factory.mktemp("key") / "card.pem"
    path.write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    async with serving(card_signing_key=path, shared_token="0123456789abcdef", grpc=False) as running:
        yield running


async def verified(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code, and the line that is said."""
    code = await asyncio.to_thread(main, ["card", "verify", *arguments])
    said = capsys.readouterr()
    assert (said.out + said.err).count("\n") == 1
    assert bool(said.err) == bool(code)
    return code, (said.out + said.err).strip()


async def test_a_card_is_verified_with_the_key_that_its_server_publishes(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = await verified(capsys, served.url)
    assert code == 0
    [key] = (await served.http.get(KEYS_PATH)).json()["keys"]
    assert said == f"The card of a2a-canvas is signed with the key {key['kid']} of {served.url}{KEYS_PATH}."
    assert (await verified(capsys, f"{served.url}{AGENT_CARD_WELL_KNOWN_PATH}"))[0] == 0


@pytest.mark.parametrize(("key", "code"), [(KEY, 0), (OTHER, 1)], ids=["right", "wrong"])
@pytest.mark.parametrize("form", ["pem", "set"])
async def test_a_key_of_ones_own_is_the_only_one_that_counts(
    served: Served, capsys: pytest.CaptureFixture[str], tmp_path: Path, key: Any, code: int, form: str
) -> None:
    path = tmp_path / "trusted"
    keys = (await served.http.get(KEYS_PATH)).json()
    if form == "pem":
        path.write_bytes(public_pem(key))
    else:
        path.write_text(json.dumps(keys if key is KEY else {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}))
    assert (await verified(capsys, served.url, "--key", str(path)))[0] == code


async def test_the_client_of_the_sdk_verifies_it(served: Served) -> None:
    [key] = (await served.http.get(KEYS_PATH)).json()["keys"]
    verifier = create_signature_verifier(lambda kid, jku: PyJWK(key), ["ES256"])
    async with httpx.AsyncClient(trust_env=False) as http:
        card = await A2ACardResolver(http, served.url).get_agent_card(signature_verifier=verifier)
    assert card.signatures


async def test_the_extended_card_has_the_signature_too(served: Served) -> None:
    headers = {"Authorization": "Bearer 0123456789abcdef", "A2A-Version": "1.0"}
    card = (await served.http.get("/rest/extendedAgentCard", headers=headers)).json()
    public = (await served.http.get(AGENT_CARD_WELL_KNOWN_PATH)).json()
    assert card["signatures"] == public["signatures"]


async def changed(served: Served, **fields: Any) -> Any:
    """A server with the same card, but for these fields."""
    card = {**(await served.http.get(AGENT_CARD_WELL_KNOWN_PATH)).json(), **fields}
    keys = (await served.http.get(KEYS_PATH)).json()
    return lambda _: Starlette(
        routes=[
            Route(AGENT_CARD_WELL_KNOWN_PATH, lambda _: JSONResponse(card)),
            Route(KEYS_PATH, lambda _: JSONResponse(keys)),
        ]
    )


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"signatures": []}, "is not signed."),
        ({"signatures": [{"protected": "!", "signature": "!"}]}, "has no valid signature."),
        ({"signatures": "x"}, "There is no agent card at"),
    ],
)
async def test_a_card_without_a_signature_that_can_be_read_is_not_verified(
    served: Served, capsys: pytest.CaptureFixture[str], fields: dict[str, Any], says: str
) -> None:
    async with serving_app(await changed(served, **fields)) as url:
        code, said = await verified(capsys, url)
    assert code == 1
    assert says in said


async def test_a_card_that_was_changed_is_not_verified_with_the_key_of_its_server(
    served: Served, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "trusted.pem"
    path.write_bytes(public_pem(KEY))
    async with serving_app(await changed(served, name="another")) as url:
        assert await verified(capsys, url, "--key", str(path)) == (
            1,
            f"a2a-canvas: The card at {url}{AGENT_CARD_WELL_KNOWN_PATH} has no valid signature.",
        )


async def test_what_the_signature_of_the_sdk_leaves_open_is_said(
    served: Served, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    requirements: list[Any] = [{}]
    path = tmp_path / "trusted.pem"
    path.write_bytes(public_pem(KEY))
    async with serving_app(await changed(served, securityRequirements=requirements, security=requirements)) as url:
        code, said = await verified(capsys, url, "--key", str(path))
    assert code == 0
    assert said.endswith("covers neither empty values nor the contents of securityRequirements.")


async def test_keys_that_are_elsewhere_are_not_fetched(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    async with serving_app(await changed(served)) as url:  # the signature names the keys of the first server
        code, said = await verified(capsys, url)
    assert code == 1
    assert said.endswith(f"keys at {served.url}{KEYS_PATH}, which is elsewhere: pass those you trust as --key.")


async def test_a_file_without_a_key_is_named(
    served: Served, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "trusted"
    assert await verified(capsys, served.url, "--key", str(path)) == (
        1,
        f"a2a-canvas: {path} cannot be read: No such file or directory.",
    )
    path.write_text("secret")
    assert await verified(capsys, served.url, "--key", str(path)) == (
        1,
        f"a2a-canvas: {path} has no public key, in PEM form or as a JSON Web Key Set.",
    )


async def test_a_server_that_does_not_answer_has_no_card(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = await verified(capsys, unused_url())
    assert code == 1
    assert "cannot be read" in said
