"""A server that asks who calls: every method of every binding and version, and every route, with no credential, a wrong
one and a right one."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import httpx
import pytest
import pytest_asyncio
from a2a.client import ClientCallContext
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.errors import MethodNotFoundError, TaskNotFoundError
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from a2a_canvas.server.accounts.api_key import hash_of
from a2a_canvas.server.app import create_app
from a2a_canvas.server.protocols.guard.calls import LEGACY_METHODS, REQUESTS
from a2a_canvas.server.protocols.guard.rest_calls import REST_ROUTES
from a2a_canvas.server.protocols.identity.attempts import BURST
from a2a_canvas.server.protocols.identity.authenticator import Authenticator
from a2a_canvas.server.protocols.identity.security import DISCOVERY_PATH
from a2a_canvas.server.settings.settings import Settings, SettingsError
from a2a_canvas.store.errors import Unavailable
from tests.fakes import API_KEYS
from tests.free_port import free_port
from tests.loopback import serving_app
from tests.server.app_server import WAYS, Served, asking, envelope, every_way, sent, serving
from tests.server.protocols.identity.tokens import SigningKey

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN = "0123456789abcdef"
KEY, HASHED, UNKNOWN = API_KEYS
RIGHT = {"token": TOKEN, "key": KEY, "hashed key": HASHED}
"""Each kind of credential."""
WRONG = {"token": TOKEN[::-1], "key": UNKNOWN, "jwt": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.c2ln"}
INVALID = 'Bearer realm="a2a-canvas", error="invalid_token"'
MALFORMED = ["Bearer", "Basic c2hhcmVkOjAxMjM", TOKEN]

SERVICES = [module.DESCRIPTOR.services_by_name["A2AService"] for module in (pb, pb03)]
GRPC = [f"/{service.full_name}/{method.name}" for service in SERVICES for method in service.methods]
Request = tuple[str, str, Any]
JSONRPC: list[Request] = [("POST", "/", envelope(method, {})) for method in (*REQUESTS, *LEGACY_METHODS)]
REST: list[Request] = [
    (route.method, "/rest/" + re.sub(r"\(\?P<\w+>[^)]*\)", "x", route.path).replace("\\", ""), None)
    for route in REST_ROUTES
]
OTHERS: list[Request] = [
    *(("GET", f"/artifacts{below}", None) for below in ("", "/c", "/c/events", "/c/a", "/c/a/versions/1/diff")),
    *((method, "/artifacts/c", None) for method in ("PATCH", "DELETE", "PUT")),
    ("POST", "/canvas/stream", {}),
    ("GET", "/canvas/stream", None),
    ("DELETE", "/", None),
    ("GET", "/nothing", None),
    ("POST", "/healthz", None),
    ("GET", "/page", None),
    ("GET", "/authentic", None),
    ("GET", "/auth/nothing", None),
    ("POST", "/auth/session", {}),
]
HTTP = [*JSONRPC, *REST, *OTHERS]


def described(request: Request) -> str:
    method, path, body = request
    return f"{method} {path} {body.get('method', '') if body else ''}".strip()


every_request = pytest.mark.parametrize("request_", HTTP, ids=described)
every_call = pytest.mark.parametrize("method", GRPC)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server() -> AsyncIterator[Served]:
    async with serving(shared_token=TOKEN, api_keys=f"ann={KEY},joe=sha256:{hash_of(HASHED)}") as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def unguarded() -> AsyncIterator[Served]:
    """A server without authentication."""
    async with serving() as running:
        yield running


async def test_while_its_keys_cannot_be_read_a_call_is_told_to_come_back(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise Unavailable("connection refused")

    monkeypatch.setattr(Authenticator, "authenticate", away)
    error = await call(served, GRPC[0], bearer(KEY))
    assert error
    assert error.code() is grpc.StatusCode.UNAVAILABLE


def bearer(credential: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {credential}"}


async def answer(served: Served, request: Request, headers: Mapping[str, str]) -> httpx.Response:
    method, path, body = request
    async with served.http.stream(method, path, json=body, headers=headers) as response:
        if "event-stream" not in response.headers.get("content-type", ""):
            await response.aread()
        assert may_be_shared_with_nobody(response)
        return response


def may_be_shared_with_nobody(response: httpx.Response) -> bool:
    """Whether a proxy that caches gives this answer to no other caller."""
    caching, vary = response.headers["cache-control"], response.headers.get("vary", "")
    return caching == "no-store" or ("private" in caching and "Authorization, Cookie" in vary)


async def call(served: Served, method: str, metadata: Mapping[str, str]) -> grpc.aio.AioRpcError | None:
    """The error of a call with an empty request."""
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        given = [(name.lower(), value) for name, value in metadata.items()]
        try:
            await channel.unary_unary(method)(b"", metadata=given, timeout=10)
        except grpc.aio.AioRpcError as error:
            return error
    return None


def assert_refused(response: httpx.Response, challenge: str) -> None:
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == challenge
    assert response.headers["cache-control"] == "no-store"


# -------------------------------------------------------------------------- refused


@every_request
async def test_without_a_credential_a_request_is_refused_in_the_form_of_its_binding(
    served: Served, request_: Request
) -> None:
    response = await answer(served, request_, {})
    assert_refused(response, 'Bearer realm="a2a-canvas"')
    error = response.json()["error"]
    assert error["message"].startswith("This agent needs credentials")
    if request_[1] == "/":
        assert (response.json()["jsonrpc"], response.json()["id"], error["code"]) == ("2.0", None, -32000)
    else:
        assert (error["code"], error["status"]) == (401, "UNAUTHENTICATED")


@every_call
async def test_without_a_credential_a_call_is_refused(served: Served, method: str) -> None:
    error = await call(served, method, {})
    assert error
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    assert "This agent needs credentials" in (error.details() or "")


@every_call
async def test_a_call_is_refused_before_its_message_is_there(served: Served, method: str) -> None:
    """So the server holds no messages of strangers, who may send any number of large ones."""
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        refused = channel.stream_stream(method)(timeout=10)
        assert await refused.code() is grpc.StatusCode.UNAUTHENTICATED
        unsaid = channel.stream_stream(method)(metadata=[("authorization", f"Bearer {TOKEN}")], timeout=10)
        await unsaid.done_writing()
        assert await unsaid.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_call_of_what_is_not_there_is_refused_as_any_other(served: Served) -> None:
    here, nowhere = await call(served, GRPC[0], {}), await call(served, "/nothing/Here", {})
    assert here
    assert nowhere
    assert here.code() is nowhere.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("credential", [*(f"Bearer {each}" for each in WRONG.values()), *MALFORMED])
async def test_what_is_wrong_with_a_credential_is_not_said(credential: str) -> None:
    # A server of its own, on which not too many attempts have failed yet.
    async with serving(shared_token=TOKEN, api_keys=f"ann={KEY}") as served:
        headers = {"Authorization": credential}
        rpc = await answer(served, JSONRPC[0], headers)
        rest = await answer(served, REST[0], headers)
        error = await call(served, GRPC[0], headers)
    for response in (rpc, rest):
        assert_refused(response, INVALID)
        assert response.json()["error"]["message"] == "These credentials are not valid. Use a valid key or token."
    assert error
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    assert "These credentials are not valid." in (error.details() or "")


async def test_who_tries_many_has_to_wait_in_every_binding() -> None:
    async with serving(shared_token=TOKEN) as served:
        assert (await served.http.get("/artifacts", headers=bearer(TOKEN))).status_code == 200
        for number in range(BURST):
            assert (await served.http.get("/artifacts", headers=bearer(f"wrong{number}"))).status_code == 401
        rest = await served.http.get("/artifacts", headers=bearer("wrong"))
        rpc = await answer(served, JSONRPC[0], bearer("wrong"))
        error = await call(served, GRPC[0], bearer("wrong"))
        known = await served.http.get("/artifacts", headers=bearer(TOKEN))
    for response in (rest, rpc):
        assert response.status_code == 429
        assert 0 < int(response.headers["retry-after"]) <= 6
    assert rest.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert (rpc.json()["error"]["code"], "retryable" in rpc.text) == (-32603, True)
    assert error
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert known.status_code == 200


async def test_behind_a_proxy_each_client_has_to_wait_for_itself_and_a_valid_key_for_nobody() -> None:
    async with serving(shared_token=TOKEN, api_keys=f"ann={KEY}") as served:
        for _ in range(BURST):
            await call(served, GRPC[0], bearer("wrong") | {"X-Forwarded-For": "203.0.113.1, 192.0.2.1"})
        attacker = await call(served, GRPC[0], bearer("wrong") | {"X-Forwarded-For": "203.0.113.2, 192.0.2.1"})
        same = await served.http.get("/artifacts", headers=bearer("wrong") | {"X-Forwarded-For": "192.0.2.1"})
        with_key = await call(served, GRPC[0], bearer(KEY) | {"X-Forwarded-For": "192.0.2.1"})
        other = await call(served, GRPC[0], bearer("wrong") | {"X-Forwarded-For": "192.0.2.2"})
    assert attacker
    assert attacker.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert same.status_code == 429
    assert with_key
    assert with_key.code() is grpc.StatusCode.INVALID_ARGUMENT  # the call is empty
    assert other
    assert other.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_no_credential_reaches_the_log(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for credential in (*RIGHT.values(), *WRONG.values()):
        await answer(served, REST[0], bearer(credential))
        await answer(served, JSONRPC[0], bearer(credential))
        await call(served, GRPC[0], bearer(credential))
    said = "".join(record.getMessage() for record in caplog.records if not record.name.startswith("httpcore"))
    assert not [each for each in (*RIGHT.values(), *WRONG.values()) if each in said or hash_of(each) in said]


# --------------------------------------------------------------------------- let in


@every_request
async def test_with_a_credential_it_is_answered_as_without_authentication(
    served: Served, unguarded: Served, request_: Request
) -> None:
    response, without = await answer(served, request_, bearer(TOKEN)), await answer(unguarded, request_, {})
    assert "www-authenticate" not in response.headers
    extended = request_[1] == "/rest/v1/card"  # it is only there where callers have names
    assert response.status_code == (200 if extended else without.status_code) < 500


@every_call
async def test_with_a_credential_a_call_is_answered_as_without_authentication(
    served: Served, unguarded: Served, method: str
) -> None:
    error, without = await call(served, method, bearer(TOKEN)), await call(unguarded, method, {})
    if "Card" in method:  # the extended one, which is only there where callers have names
        assert error is None
    else:
        assert (error and error.code()) == (without and without.code())
        assert error is None or error.code() not in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)


@every_way
@pytest.mark.parametrize("credential", RIGHT.values(), ids=RIGHT)
async def test_a_client_of_the_sdk_talks_with_each_kind_of_credential(
    served: Served, way: tuple[str, str], credential: str
) -> None:
    task = await with_credential(served, way, credential)
    assert task.status.state == pb.TASK_STATE_COMPLETED


async def with_credential(served: Served, way: tuple[str, str], credential: str) -> pb.Task:
    context = ClientCallContext(service_parameters=bearer(credential))
    client = served.client(*way, streaming=False)
    [event] = [event async for event in client.send_message(asking("write report"), context=context)]
    return event.task


@every_way
async def test_what_one_user_makes_another_does_not_see(served: Served, way: tuple[str, str]) -> None:
    task = await with_credential(served, way, KEY)
    client = served.client(*way)
    own, other = (ClientCallContext(service_parameters=bearer(each)) for each in (KEY, HASHED))
    assert (await client.get_task(pb.GetTaskRequest(id=task.id), context=own)).id == task.id
    # The SDK's client for HTTP+JSON of 0.3 knows no error but by the status of HTTP.
    with pytest.raises(MethodNotFoundError if way == ("HTTP+JSON", "0.3") else TaskNotFoundError):
        await client.get_task(pb.GetTaskRequest(id=task.id), context=other)


# ------------------------------------------------------------------------------ open


@pytest.mark.parametrize("path", [AGENT_CARD_WELL_KNOWN_PATH, "/healthz", "/readyz", "/"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_card_the_health_and_the_page_need_no_credential(served: Served, method: str, path: str) -> None:
    response = await served.http.request(method, path, headers={"Accept": "text/html"})
    assert response.status_code == (200 if method == "GET" or path == "/" else response.status_code)
    assert response.status_code != 401


async def test_the_files_of_the_page_need_no_credential(served: Served) -> None:
    assets = (await served.http.get("/")).json()["assets"]
    assert (await served.http.get(f"/{assets}/main.js")).status_code == 200


async def test_the_card_says_what_a_request_needs_in_both_versions(served: Served) -> None:
    card = (await served.http.get(AGENT_CARD_WELL_KNOWN_PATH)).json()
    assert list(card["securitySchemes"]) == ["bearer"]
    assert card["securityRequirements"] == [{"schemes": {"bearer": {}}}]
    assert card["security"] == [{"bearer": []}]


# ------------------------------------------------------------------ without a credential


async def test_anonymous_callers_are_served_beside_others_if_the_operator_says_so() -> None:
    async with serving(shared_token=TOKEN, allow_anonymous=True) as served:
        task = await sent(served, WAYS[0], asking("write report"))
        assert task.status.state == pb.TASK_STATE_COMPLETED
        assert (await served.http.get("/artifacts", headers=bearer("wrong"))).status_code == 401
        card = (await served.http.get(AGENT_CARD_WELL_KNOWN_PATH)).json()
        assert card["securityRequirements"] == [{"schemes": {"bearer": {}}}, {}]


async def test_a_server_without_authentication_serves_everybody_whatever_they_send() -> None:
    async with serving(grpc=False) as served:
        assert (await served.http.get("/artifacts", headers=bearer("anything"))).status_code == 200
        card = (await served.http.get(AGENT_CARD_WELL_KNOWN_PATH)).json()
        assert "securitySchemes" not in card
        assert json.dumps(card["capabilities"]).count("extendedAgentCard") <= 1


# ----------------------------------------------------------------------- the extended card


async def extended(served: Served, way: tuple[str, str], credential: str = "") -> pb.AgentCard:
    context = ClientCallContext(service_parameters=bearer(credential) if credential else {})
    client = served.client(*way)
    return await client.get_extended_agent_card(pb.GetExtendedAgentCardRequest(), context=context)


@every_way
async def test_the_extended_card_is_for_callers_with_credentials(served: Served, way: tuple[str, str]) -> None:
    card = await extended(served, way, KEY)
    assert card.name
    assert card.capabilities.extended_agent_card
    assert list(card.security_schemes) == ["bearer"]


async def test_without_the_interfaces_of_0_3_its_clients_get_the_card_nevertheless() -> None:
    async with serving(shared_token=TOKEN, advertise_0_3=False, grpc=False) as served:
        for way in (("JSONRPC", "0.3"), ("HTTP+JSON", "0.3")):
            assert (await extended(served, way, TOKEN)).name


EXTENDED: list[Request] = [
    ("POST", "/", envelope("GetExtendedAgentCard", {})),
    ("POST", "/", envelope("agent/getAuthenticatedExtendedCard", {})),
    ("GET", "/rest/extendedAgentCard", None),
    ("GET", "/rest/v1/card", None),
]


async def test_where_anonymous_callers_are_served_the_extended_card_still_needs_credentials() -> None:
    async with serving(shared_token=TOKEN, allow_anonymous=True) as served:
        for request in EXTENDED:
            version = "0.3" if "Authenticated" in str(request) or "v1" in request[1] else "1.0"
            response = await answer(served, request, {"A2A-Version": version})
            assert response.status_code == 401, response.text
        for method in GRPC:
            if method.endswith("Card"):
                error = await call(served, method, {})
                assert error
                assert error.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_the_page_learns_whom_the_server_takes_it_for(server: Served) -> None:
    nobody = await server.http.get("/auth/session")
    assert (nobody.status_code, nobody.json()) == (200, {"signedIn": False, "required": True, "user": ""})
    for credential, user in {TOKEN: "shared", KEY: "ann", HASHED: "joe"}.items():
        answer = await server.http.get("/auth/session", headers=bearer(credential))
        assert answer.json() == {"signedIn": True, "required": False, "user": user}
        assert answer.headers["Cache-Control"] == "no-store"
    assert (await server.http.get("/auth/session", headers=bearer(UNKNOWN))).status_code == 401


async def test_nobody_has_to_sign_in_where_anonymous_callers_are_let_in() -> None:
    async with serving(shared_token=TOKEN, allow_anonymous=True, grpc=False) as open_server:
        told = (await open_server.http.get("/auth/session")).json()
    assert told == {"signedIn": False, "required": False, "user": ""}


# --------------------------------------------------------------------------- JSON Web Tokens


@asynccontextmanager
async def issuing(key: SigningKey) -> AsyncIterator[str]:
    """An issuer on this machine; its name."""

    def app(url: str) -> Starlette:
        described = {"issuer": url, "jwks_uri": f"{url}/keys"}
        return Starlette(
            routes=[
                Route(DISCOVERY_PATH, lambda _: JSONResponse(described)),
                Route("/keys", lambda _: JSONResponse({"keys": [key.public]})),
            ]
        )

    async with serving_app(app) as url:
        yield url


async def test_tokens_of_the_issuer_are_taken_in_every_binding_and_others_are_not() -> None:
    key = SigningKey("1")
    async with issuing(key) as url, serving(jwt_issuer=url, jwt_audience="canvas") as served:
        for way in WAYS:
            assert (await with_credential(served, way, key.token(iss=url))).status.state == pb.TASK_STATE_COMPLETED
        wrong = [key.token(iss=url, exp=1), key.token(iss=url, aud="another"), SigningKey("1").token(iss=url)]
        for token in wrong * BURST:
            assert_refused(await answer(served, REST[0], bearer(token)), INVALID)
        error = await call(served, GRPC[0], bearer(wrong[0]))
        assert error
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED
        card = (await served.http.get(AGENT_CARD_WELL_KNOWN_PATH)).json()
        assert card["securitySchemes"]["openId"]["openIdConnectUrl"] == f"{url}{DISCOVERY_PATH}"
        assert card["security"] == [{"openId": []}]


async def test_while_the_issuer_cannot_be_asked_nobody_is_told_that_a_token_is_wrong() -> None:
    key, nowhere = SigningKey("1"), f"http://127.0.0.1:{free_port()}"
    async with serving(jwt_issuer=nowhere, jwt_audience="canvas", shared_token=TOKEN) as served:
        rest = await answer(served, REST[0], bearer(key.token(iss=nowhere)))
        assert (rest.status_code, rest.headers["retry-after"]) == (503, "1")
        rpc = await answer(served, JSONRPC[0], bearer(key.token(iss=nowhere)))
        assert (rpc.status_code, rpc.json()["error"]["code"]) == (200, -32603)
        error = await call(served, GRPC[0], bearer(key.token(iss=nowhere)))
        assert error
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert nowhere not in rest.text + rpc.text + str(error.details())
        assert (await answer(served, OTHERS[0], bearer(TOKEN))).status_code == 200


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"jwt_issuer": "https://i.example.com"}, "--jwt-issuer needs --jwt-audience: otherwise tokens that it issues"),
        ({"jwt_audience": "canvas"}, "--jwt-audience needs --jwt-issuer: who issues the tokens."),
        ({"jwt_jwks_url": "https://i.example.com"}, "--jwt-jwks-url needs --jwt-issuer: who issues the tokens."),
    ],
)
async def test_half_of_what_tokens_need_is_refused_at_the_start(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=f"^{says}"):
        create_app(Settings(model="rehearsal", database="memory", **settings))
