"""How every command reaches a server: its address, and headers whose values nobody is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from a2a.client import A2AClientError
from a2a.types import a2a_pb2_grpc
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from a2a_canvas.server.a2a_client.agent_fault import fault_of
from a2a_canvas.server.client.conversation.address import RequestHeader, RequestHeaders
from a2a_canvas.server.client.conversation.connection import explain
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.wire import CANVAS, TOKEN_VARIABLE
from tests.certificates import issue
from tests.loopback import serving_app
from tests.server.client.client_harness import Result, Script, card, card_route, typed, update
from tests.server.push.receiver import receiving

TOKEN = RequestHeader("Authorization", "Bearer s3cr3t", "--token …")
KEY = RequestHeader("X-Api-Key", "k3y", "--header 'X-Api-Key: …'")
FROM_ENVIRONMENT = RequestHeader("Authorization", "Bearer s3cr3t")
SECRETS = ("s3cr3t", "k3y")

COMMANDS = {
    "send": ["go"],
    "edit": ["doc", "shorter", "--lines", "1"],
    "undo": ["doc"],
    "redo": ["doc"],
    "restore": ["doc", "1"],
    "put": ["doc", "-"],
    "artifacts": [],
    "show": ["doc"],
    "versions": ["doc"],
    "diff": ["doc"],
}


async def run(name: str, url: str, *headers: RequestHeader, task: str = "") -> Result:
    options = [word for header in headers for word in ("--header", f"{header.name}: {header.value}")]
    more = ["--task", task] if task and name == "send" else []
    return await typed(name, *COMMANDS[name], "--context", "c", "--url", url, *options, *more, stdin="new")


@pytest.mark.parametrize("code", grpc.StatusCode, ids=lambda code: code.name)
def test_an_answer_of_grpc_is_no_lost_connection(code: grpc.StatusCode) -> None:
    error = A2AClientError("gRPC failed")
    error.__cause__ = grpc.aio.AioRpcError(
        code, grpc.aio.Metadata(), grpc.aio.Metadata(), details="Send its contextId."
    )
    said = explain(error, "http://there")
    answers = ["ALREADY", "FAILED", "INVALID", "NOT", "OUT", "PERMISSION", "UNAUTHENTICATED", "UNIMPLEMENTED"]
    assert fault_of(error).retryable == (code.name.partition("_")[0] not in answers)
    assert said.startswith(
        "The connection to http://there was lost" if fault_of(error).retryable else "The server refused: Send its"
    )
    assert (TOKEN_VARIABLE in said) == (code is grpc.StatusCode.UNAUTHENTICATED)


class Guarded:
    """An app that answers 401 to every request without the headers, as a proxy that authenticates does."""

    def __init__(self, app: ASGIApp, headers: RequestHeaders) -> None:
        self._app = app
        self._wanted = {(header.name.lower().encode(), header.value.encode()) for header in headers}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        known = self._wanted <= set(scope["headers"])
        await (self._app if known else PlainTextResponse("Who are you?", 401))(scope, receive, send)


def guarded(*headers: RequestHeader, path: str = "") -> Callable[[str], ASGIApp]:
    """A server of artifacts, which does every operation at once; its base address is `path` below the given one."""

    async def artifact(_: Request) -> JSONResponse:
        known = [{"artifactId": "doc", "version": 1}]
        return JSONResponse({"version": 1, "parts": [{"text": "one"}], "artifacts": known, "versions": [], "diff": ""})

    def make(url: str) -> ASGIApp:
        script = Script([[update("COMPLETED", "Done.")]] * 2)
        routes = [
            card_route(card(f"{url}{path}", extension=CANVAS), path=path),
            Route(path or "/", script.answer, methods=["POST"]),
            Route(f"{path}/artifacts/{{_:path}}", artifact),
        ]
        return Guarded(Starlette(routes=routes), headers)

    return make


@pytest.mark.parametrize("name", COMMANDS)
async def test_the_headers_go_with_every_request_of_every_command(name: str) -> None:
    async with serving_app(guarded(TOKEN, KEY)) as url:
        assert (await run(name, url, TOKEN, KEY)).code == 0


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_server_that_wants_credentials_is_told_with_the_way_to_send_them(name: str) -> None:
    async with serving_app(guarded(TOKEN, KEY)) as url:
        got = await run(name, url, KEY)
    line = f"No agent card at {url}: HTTP 401 (credentials are sent with --token, --header or A2A_CANVAS_TOKEN)\n"
    assert (got.code, got.out, got.err.removeprefix("a2a-canvas: ")) == (1, "", line)


async def test_the_headers_go_over_grpc_too() -> None:
    seen: dict[str, str] = {}

    class Servicer(a2a_pb2_grpc.A2AServiceServicer):
        async def SendStreamingMessage(self, _: Any, context: Any) -> Any:
            seen.update(context.invocation_metadata())
            yield update("COMPLETED", "Done.")

    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(Servicer(), server)  # type: ignore[no-untyped-call]
    await server.start()
    try:
        content = card(f"127.0.0.1:{port}", "GRPC")
        async with serving_app(lambda _: Starlette(routes=[card_route(content)])) as url:
            assert (await run("send", url, TOKEN, KEY)).code == 0
    finally:
        await server.stop(None)
    assert (seen["authorization"], seen["x-api-key"]) == (TOKEN.value, KEY.value)


@pytest.mark.parametrize("name", COMMANDS)
async def test_no_failure_shows_a_secret(name: str) -> None:
    for answer in (401, 500, [], {"error": {"code": -32001, "message": "Task not found"}}):
        async with serving_app(Script([answer] * 9, extension=CANVAS).app) as url:
            got = await run(name, url, TOKEN, KEY, task="t1")
        assert got.code == 1
        assert not any(secret in got.out + got.err for secret in SECRETS)


def test_a_secret_is_in_no_representation() -> None:
    assert not any(secret in repr(Invocation(headers=(TOKEN, KEY))) for secret in SECRETS)


def test_a_suggested_command_names_the_headers_that_were_typed_without_their_values() -> None:
    for headers, options in (((TOKEN, KEY), " --token … --header 'X-Api-Key: …'"), ((FROM_ENVIRONMENT,), "")):
        assert Invocation(headers=headers).line("watch", "a b") == f"a2a-canvas watch 'a b'{options}"


def test_a_suggested_command_leaves_the_address_out_that_the_environment_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for named, option in (("", " --url http://localhost:9"), ("localhost:9", ""), ("http://localhost:9", "")):
        monkeypatch.setenv("A2A_CANVAS_URL", named)
        assert Invocation(url="http://localhost:9").line("contexts") == f"a2a-canvas contexts{option}"


def test_a_command_for_the_prompt_of_a_chat_begins_with_a_slash() -> None:
    assert Invocation(url="http://localhost:9", in_chat=True).line("watch", "1f16") == "/watch 1f16"


# ----------------------------------------------------------------------- the address


@pytest.mark.parametrize("path", ["", "/agents/one"])
@pytest.mark.parametrize("name", COMMANDS)
async def test_the_address_may_be_that_of_the_card(name: str, path: str) -> None:
    async with serving_app(guarded(path=path)) as url:
        for address in (f"{url}{path}", f"{url}{path}/.well-known/agent-card.json"):
            assert (await run(name, address)).code == 0


async def test_a_card_of_another_name_is_read_where_it_is() -> None:
    content = Route("/.well-known/agent.json", lambda _: JSONResponse(card("http://127.0.0.1:1", "PIGEON")))
    async with serving_app(lambda _: Starlette(routes=[content])) as url:
        got = await run("send", f"{url}/.well-known/agent.json")
    assert got.err == "a2a-canvas: The agent offers no supported transport (its card lists: PIGEON)\n"


async def test_a_certificate_that_is_not_trusted_is_told_with_the_setting_that_trusts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, served_with = issue("localhost", tmp_path)
    async with receiving(served_with) as server:
        url = f"https://localhost:{server.port}"
        refused = await run("send", url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        trusted = await run("send", url)
    why = "its certificate is not trusted (self-signed certificate): set SSL_CERT_FILE to the file of its issuer"
    assert refused.err == f"a2a-canvas: {url} answers, but {why}\n"
    assert trusted.err.startswith(f"a2a-canvas: The agent card at {url} is not valid")
