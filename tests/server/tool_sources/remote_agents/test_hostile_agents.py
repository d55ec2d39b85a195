"""Agents that break the rules, over HTTP: each has a clear outcome, and nothing is lost."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from a2a.client.card_resolver import parse_agent_card
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.tool_sources.remote_agents import agent_client, remote_agent, remote_task
from a2a_canvas.server.tool_sources.remote_agents.agent_client import AgentClient
from tests.loopback import serving_app
from tests.server.tool_sources.remote_agents.asking import asked, asking, result, texts

Answers = Callable[[str, dict[str, Any], Request], Response]


def card(url: str, **more: Any) -> dict[str, Any]:
    interface = {"url": f"{url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return {"name": "Bad", "capabilities": {"streaming": True}, "supportedInterfaces": [interface], **more}


def agent(answers: Answers, **of_card: Any) -> Callable[[str], Starlette]:
    """An agent whose answer to each method is made by `answers(method, params, request)`."""

    def make(url: str) -> Starlette:
        async def called(request: Request) -> Response:
            call = json.loads(await request.body())
            return answers(call["method"], call.get("params", {}), request)

        async def told(request: Request) -> Response:
            return JSONResponse(card(url, **of_card))

        return Starlette(routes=[Route("/.well-known/agent-card.json", told), Route("/", called, methods=["POST"])])

    return make


def stream(*events: Any, broken: bool = False) -> Response:
    """A stream of results; broken: the connection breaks after them."""

    async def body() -> AsyncIterator[bytes]:
        for event in events:
            yield f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': event})}\n\n".encode()
        if broken:
            raise ConnectionResetError

    return StreamingResponse(body(), media_type="text/event-stream")


def task(state: str = "WORKING", **more: Any) -> dict[str, Any]:
    return {"id": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}, **more}


def answer(given: Any) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": 1, "result": given})


def artifact(text: str = "Half.", artifact_id: str = "report") -> dict[str, Any]:
    return {"artifactId": artifact_id, "parts": [{"text": text}]}


def chunk(text: str, **more: Any) -> dict[str, Any]:
    return {"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": artifact(text), **more}}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_task, "DELAYS", (0.01,) * 5)
    monkeypatch.setattr(remote_task, "POLLS", (0.01,) * 4)


async def run(answers: Answers, **of_card: Any) -> tuple[str, dict[str, str]]:
    """What the model reads, and the artifacts."""
    async with serving_app(agent(answers, **of_card)) as url, asking(url, seconds=20) as source:
        turn = await asked(source, "Go")
        assert turn.told.statuses == [("completed", "Done.")]
        return result(turn), await texts(turn)


LOST = "ERROR The task of Bad did not come to an end: "


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (lambda: Response("<html>hello</html>"), "its answer is not A2A"),
        (lambda: Response("[" * 200_000, media_type="application/json"), "its answer is not A2A"),
        (lambda: answer({"task": [1, 2]}), "its answer is not A2A"),
        (lambda: answer({}), "it answers "),
        (lambda: stream({"task": {"id": ["x"]}}), "its answer is not A2A"),
        (lambda: Response(b"\xff\xfe", media_type="text/event-stream"), "it ends without an answer"),
        (lambda: Response(status_code=403), "it refuses access (HTTP 403)"),
        (lambda: Response(status_code=500), "it answers with HTTP 500"),
        (
            lambda: RedirectResponse("http://169.254.169.254/latest/meta-data"),
            "it redirects (HTTP 307); redirects are not",
        ),
        (lambda: stream(), "it ends without an answer"),
        (
            lambda: Response(gzip.compress(b" " * 20_000_000), headers={"Content-Encoding": "gzip"}),
            "it compresses its answers",
        ),
        (
            lambda: JSONResponse({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "No such thing."}}),
            "it refuses: No such thing.",
        ),
    ],
)
async def test_what_is_no_answer_is_told(response: Callable[[], Response], reason: str) -> None:
    told, written = await run(lambda method, params, request: response())
    assert told.startswith(LOST + reason), told
    assert written == {}


async def test_a_stream_that_dies_is_followed_on_and_what_came_stays_when_the_agent_does_not_come_back() -> None:
    def answers(method: str, params: Any, request: Request) -> Response:
        if method == "SendStreamingMessage":
            return stream({"task": task()}, chunk("Half."), broken=True)
        return Response(status_code=503)

    assert await run(answers) == (
        f"{LOST}it answers with HTTP 503\n[Its artifacts here: 'report']\n"
        "[To continue this conversation: context_id 'c']",
        {"report": "Half."},
    )


async def test_a_task_that_is_gone_after_its_stream_told_the_end_has_its_result() -> None:
    def answers(method: str, params: Any, request: Request) -> Response:
        if method == "SendStreamingMessage":
            done = {"state": "TASK_STATE_COMPLETED", "message": {"messageId": "m", "parts": [{"text": "All."}]}}
            end = {"statusUpdate": {"taskId": "t", "contextId": "c", "status": done}}
            return stream({"task": task()}, chunk("Whole."), end)
        return JSONResponse({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "Task not found"}})

    told, written = await run(answers)
    assert told.startswith("All.")
    assert written == {"report": "Whole."}


async def test_chunks_that_come_twice_are_there_once() -> None:
    def answers(method: str, params: Any, request: Request) -> Response:
        if method == "SendStreamingMessage":
            twice = [chunk("a"), chunk("a"), chunk("b", append=True), chunk("b", append=True)]
            return stream({"task": task()}, *twice, {"task": task("COMPLETED")})
        return answer(task("COMPLETED", artifacts=[artifact("ab")]))

    assert (await run(answers))[1] == {"report": "ab"}


async def test_events_of_other_tasks_are_ignored() -> None:
    def answers(method: str, params: Any, request: Request) -> Response:
        if method == "SendStreamingMessage":
            foreign = {"artifactUpdate": {"taskId": "other", "contextId": "c", "artifact": artifact("Bad.", "x")}}
            return stream({"task": task()}, foreign)
        return answer(task("COMPLETED", artifacts=[artifact("Good.")]))

    assert (await run(answers))[1] == {"report": "Good."}


async def test_more_at_once_than_may_be_is_refused_and_the_task_cancelled() -> None:
    cancelled = []

    def answers(method: str, params: Any, request: Request) -> Response:
        if method == "SendStreamingMessage":
            return stream({"task": task()}, chunk("Half."), chunk("x" * 20_000_000))
        if method == "CancelTask":
            cancelled.append(params["id"])
        return answer(task("COMPLETED", artifacts=[artifact("x" * 20_000_000)]))

    told, written = await run(answers)
    assert told.startswith(f"{LOST}it sends more than 16 MB at once")
    assert written == {"report": "Half."}
    assert cancelled == ["t"]


async def test_an_endless_flood_of_events_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_agent, "CANCEL_TIMEOUT", 0.1)

    def answers(method: str, params: Any, request: Request) -> Response:
        async def flood() -> AsyncIterator[bytes]:
            event = {"task": task()}
            while True:
                await asyncio.sleep(0)  # it shares its loop with the client
                yield f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': event})}\n\n".encode()

        return StreamingResponse(flood(), media_type="text/event-stream")

    async with serving_app(agent(answers)) as url, asking(url, seconds=0.5) as source:
        turn = await asked(source, "Go")
    assert result(turn).startswith("ERROR The task of Bad took longer than 0.5 seconds and was cancelled")


async def test_a_look_that_is_answered_by_an_endless_stream_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_client, "MAX_MESSAGE", 100_000)

    def answers(method: str, params: Any, request: Request) -> Response:
        async def endless() -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(0)
                yield b"data: {}\n\n" * 100

        if method == "SendStreamingMessage":
            return stream({"task": task()}, chunk("Half."), broken=True)
        return StreamingResponse(endless(), media_type="text/event-stream")

    told, written = await run(answers)
    assert told.startswith(f"{LOST}it sends more than 0 MB at once")
    assert written == {"report": "Half."}


async def test_an_agent_that_is_silent_is_looked_at() -> None:
    looks = []

    def answers(method: str, params: Any, request: Request) -> Response:
        if method == "GetTask":
            looks.append(method)
            return answer(task("COMPLETED" if len(looks) > 2 else "WORKING", artifacts=[artifact("Whole.")]))

        async def silent() -> AsyncIterator[bytes]:
            yield f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': {'task': task()}})}\n\n".encode()
            while not await request.is_disconnected():
                yield b""

        return StreamingResponse(silent(), media_type="text/event-stream")

    async with serving_app(agent(answers)) as url, asking(url, seconds=20) as source:
        for client in source._clients.values():
            client._http.timeout = httpx.Timeout(0.2)
        turn = await asked(source, "Go")
    assert await texts(turn) == {"report": "Whole."}


# ------------------------------------------------------------------------------ cards


@pytest.mark.parametrize(
    ("of_card", "reason"),
    [
        ({"name": " "}, "its card has no name"),
        ({"supportedInterfaces": []}, "its card offers neither of JSONRPC and HTTP+JSON"),
        (
            {"supportedInterfaces": [{"url": "file:///etc/passwd", "protocolBinding": "JSONRPC"}]},
            "its card offers neither",
        ),
        ({"supportedInterfaces": "x"}, "its answer is not A2A"),
        ({"skills": [None]}, "its answer is not A2A"),
    ],
)
async def test_a_card_that_cannot_be_used_makes_no_tool_and_the_server_starts(of_card, reason, caplog) -> None:
    async with serving_app(agent(lambda *_: answer({}), **of_card)) as url, asking(url) as source:
        assert source.tools() == ()
    assert reason in caplog.text


async def test_an_agent_on_the_internet_cannot_lead_us_into_a_private_network(monkeypatch) -> None:
    hosts = {"agent.example": ["93.184.215.14"], "internal.example": ["93.184.215.14", "10.0.0.7"]}

    async def addresses(host: str, port: int) -> list[str]:
        return hosts[host]

    async def read(self: AgentClient) -> Any:
        return parse_agent_card(card("http://internal.example"))

    monkeypatch.setattr(AgentClient, "_card", read)
    with pytest.raises(AgentFault, match=r"leads to internal\.example, which is in a private network"):
        await AgentClient("https://agent.example", lookup=addresses).read_card()


async def test_a_name_that_moves_into_a_private_network_is_not_connected_to(monkeypatch) -> None:
    """It is public when the card is checked, and where the connection is made it is not."""
    seen = []

    def answers(method: str, params: Any, request: Request) -> Response:
        seen.append(method)
        return answer(task("COMPLETED"))

    async with serving_app(agent(answers)) as url:
        port = url.rpartition(":")[2]
        moves = {"agent.example": ["93.184.215.14"] * 9, "rebind.example": ["93.184.215.15", "127.0.0.1"]}

        async def lookup(host: str, port: int) -> list[str]:
            return [moves[host].pop(0)]

        async def read(self: AgentClient) -> Any:
            return parse_agent_card(card(f"http://rebind.example:{port}"))

        monkeypatch.setattr(AgentClient, "_card", read)
        client = AgentClient(f"http://agent.example:{port}", lookup=lookup)
        await client.read_card()
        with pytest.raises(AgentFault, match=r"leads to rebind\.example, which is in a private network"):
            await client.get("t")
        await client.close()
    assert seen == []


async def test_an_agent_in_a_private_network_is_connected_to_by_its_name() -> None:
    async def lookup(host: str, port: int) -> list[str]:
        return ["127.0.0.2", "127.0.0.1"]  # nobody listens at the first

    hosts = []

    def answers(method: str, params: Any, request: Request) -> Response:
        hosts.append(request.headers["host"])
        return answer(task("COMPLETED"))

    async with serving_app(agent(answers)) as url:
        port = url.rpartition(":")[2]
        client = AgentClient(f"http://agent.internal:{port}", lookup=lookup)
        await client.read_card()
        assert (await client.get("t")).id == "t"
        await client.close()
    assert hosts == [f"127.0.0.1:{port}"]  # as its card names it


async def test_an_answer_that_drips_is_left(monkeypatch) -> None:
    def answers(method: str, params: Any, request: Request) -> Response:
        async def drip() -> AsyncIterator[bytes]:
            while not await request.is_disconnected():
                yield b" "
                await asyncio.sleep(0.01)

        return StreamingResponse(drip(), media_type="application/json")

    async with serving_app(agent(answers)) as url:
        client = AgentClient(url, silence=0.3)
        await client.read_card()
        with pytest.raises(AgentFault, match="it does not answer"):
            await client.get("t")
        await client.close()


REQUIRED = {
    "securitySchemes": {"key": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
    "securityRequirements": [{"schemes": {"key": {}}}],
}


@pytest.mark.parametrize(
    ("of_card", "tokens", "warned"),
    [
        (REQUIRED, {}, True),
        (REQUIRED, {"127.0.0.1": "s3cret"}, False),
        (REQUIRED, {"127.0.0.1:9": "s3cret"}, True),
        ({**REQUIRED, "securityRequirements": [{}, *REQUIRED["securityRequirements"]]}, {}, False),
        ({}, {}, False),
    ],
)
async def test_a_token_that_a_card_requires_and_nobody_has_set_is_logged(of_card, tokens, warned, caplog) -> None:
    async with serving_app(agent(lambda *_: answer({}), **of_card)) as url, asking(url, tokens=tokens):
        where = url.removeprefix("http://")
        told = f"The agent at {where} requires credentials: set A2A_CANVAS_AGENT_TOKENS={where}=TOKEN"
        assert (told in caplog.messages) is warned


@pytest.mark.parametrize(("tokens", "given"), [({}, "no token"), ({"127.0.0.1": "x"}, "the token that it was sent")])
async def test_an_agent_that_refuses_access_is_logged_with_the_setting(tokens, given, caplog) -> None:
    refusing = agent(lambda *_: Response(status_code=401))
    async with serving_app(refusing) as url, asking(url, tokens=tokens) as source:
        turn = await asked(source, "Go")
        where = url.removeprefix("http://")
    assert "it refuses access (HTTP 401)" in result(turn)
    assert (
        f"The agent at {where} refuses access (HTTP 401) with {given}: set A2A_CANVAS_AGENT_TOKENS={where}=TOKEN"
    ) in caplog.messages


async def test_an_agent_with_tls_whose_card_names_an_address_without_gets_no_token(monkeypatch, caplog) -> None:
    async def lookup(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    for urls, told in ((["http://a.example"], True), (["http://a.example", "https://a.example/rest"], False)):
        interfaces = [{"url": each, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} for each in urls]

        async def read(self: AgentClient, interfaces: Any = interfaces) -> Any:
            return parse_agent_card(card("", **REQUIRED, supportedInterfaces=interfaces))

        monkeypatch.setattr(AgentClient, "_card", read)
        caplog.clear()
        read_card = await AgentClient("https://a.example", {"a.example": "s3cret"}, lookup=lookup).read_card()
        assert [each.url for each in read_card.supported_interfaces] == urls[-1:]
        assert ("an address without TLS in its card: no token is sent there" in caplog.text) is told


@pytest.mark.parametrize(
    ("schemes", "header"),
    [
        ({}, ("authorization", "Bearer s3cret")),
        ({"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}}, ("x-key", "s3cret")),
    ],
)
async def test_a_token_is_sent_in_the_header_that_the_card_names_and_to_its_host_only(schemes, header) -> None:
    seen = []

    def answers(method: str, params: Any, request: Request) -> Response:
        seen.append((header[0], request.headers.get(header[0])))
        return answer(task("COMPLETED"))

    made = agent(answers, securitySchemes=schemes)
    async with serving_app(made) as url, asking(url, tokens={"127.0.0.1": "s3cret"}) as source:
        await asked(source, "Go")
        assert set(seen) == {header}
        [client] = source._clients.values()
        elsewhere = httpx.Request("GET", "http://elsewhere.example")
        await client._authorize(elsewhere)
        assert header[0] not in elsewhere.headers


async def test_an_agent_that_is_not_there_at_the_start_becomes_a_tool_when_it_is(monkeypatch) -> None:
    there = []

    def make(url: str) -> Starlette:
        async def told(request: Request) -> Response:
            there.append(1)
            return JSONResponse(card(url)) if len(there) > 2 else Response(status_code=502)

        return Starlette(routes=[Route("/.well-known/agent-card.json", told)])

    monkeypatch.setattr("a2a_canvas.server.tool_sources.remote_agents.agents_source.RETRIES", (0.01,))
    async with serving_app(make) as url, asking(url) as source:
        assert source.tools() == ()
        [trying] = source._trying.values()
        await trying
        [tool] = source.tools()
        assert tool.name == "ask_bad"
