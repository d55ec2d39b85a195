"""What the models of every provider have in common, over the wire: refusals, limits, breaks and the transport."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
import respx

from a2a_canvas.server.agent.model import (
    LLM,
    BlockStart,
    MessageStart,
    MessageStop,
    ModelError,
    ModelEvent,
    TextDelta,
    TooLong,
)
from a2a_canvas.server.agent.models import claude, openai_compatible
from a2a_canvas.server.agent.models.claude import ClaudeModel
from a2a_canvas.server.agent.models.openai_compatible import OpenAIModel
from tests.extreme_values import deep
from tests.free_port import free_port
from tests.server.agent.models.chat_chunks import body, usage
from tests.server.agent.models.chat_chunks import chunk as completion
from tests.server.agent.models.loopback_provider import END, STREAM, Provider, chunk
from tests.server.agent.models.provider_answers import REQUEST, said, streamed

KEY = "sk-a-secret-of-ours"
BROKEN = "The connection to the model provider broke before the answer was complete."
TOO_LONG = "The request is too long for the model: send less at a time, or raise --context-window if it takes more."
TEXT = (Path(__file__).parent / "fixtures/text.sse").read_bytes()
HELLO = [completion({"content": "Grüße"}), completion({"content": ", Welt 👋"})]


@dataclass(frozen=True)
class Adapter:
    """The model of one API, and what its provider sends.

    Attributes:
        over: a model that asks through a client of httpx2, or through that of production if it is None.
        begun: the answer up to its text; `told` up to its stop reason.
        overloaded: `begun`, and an error.
    """

    path: str
    variable: str
    over: Callable[[str, httpx2.AsyncClient | None, int, float], LLM]
    begun: bytes
    told: bytes
    whole: bytes
    overloaded: bytes


def claude_over(url: str, http: httpx2.AsyncClient | None, retries: int, silence: float) -> LLM:
    client = claude.client_from({"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url}, http)
    client = client.with_options(max_retries=retries, timeout=silence)
    return ClaudeModel(model="coder", context_window=128_000, client=client)


def openai_over(url: str, http: httpx2.AsyncClient | None, retries: int, silence: float) -> LLM:
    client = openai_compatible.client_from({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1"}, http)
    client = client.with_options(max_retries=retries, timeout=silence)
    return OpenAIModel(model="coder", context_window=128_000, client=client)


CLAUDE = Adapter(
    "/v1/messages",
    "ANTHROPIC",
    claude_over,
    TEXT.partition(b"event: content_block_stop")[0],
    TEXT.partition(b"event: message_stop")[0],
    TEXT,
    TEXT.partition(b"event: content_block_stop")[0]
    + b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"busy"}}\n\n',
)
OPENAI = Adapter(
    "/v1/chat/completions",
    "OPENAI",
    openai_over,
    body(*HELLO, done=False),
    body(*HELLO, completion(finish="stop"), done=False),
    body(*HELLO, completion(finish="stop"), usage(12, 15)),
    body(*HELLO, {"error": {"message": "busy"}}),
)


@pytest.fixture(params=[CLAUDE, OPENAI], ids=["claude", "openai"])
def adapter(request: pytest.FixtureRequest) -> Adapter:
    chosen: Adapter = request.param
    return chosen


def model(adapter: Adapter, retries: int = 0) -> LLM:
    # It asks no real server: to load all authorities would take 20 ms for each of these clients.
    return adapter.over("http://provider.test", httpx2.AsyncClient(trust_env=False, verify=False), retries, 60)


def refusal(status: int, message: str = "", **headers: str) -> httpx.Response:
    error = {"type": "error", "error": {"type": "some_error", "message": message}}
    return httpx.Response(status, headers={"retry-after-ms": "1", **headers}, json=error)


@contextlib.contextmanager
def answering(adapter: Adapter, *answers: httpx.Response | Exception) -> Iterator[respx.Route]:
    with respx.mock(using="httpcore2") as router:
        yield router.post(f"http://provider.test{adapter.path}").mock(side_effect=list(answers))


async def failed(adapter: Adapter, *answers: httpx.Response | Exception) -> ModelError:
    with answering(adapter, *answers), pytest.raises(ModelError) as caught:
        await said(model(adapter))
    return caught.value


# ----------------------------------------------------- failures before the headers


@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_an_overloaded_provider_is_asked_again_by_the_sdk(adapter: Adapter, status: int) -> None:
    with answering(adapter, refusal(status), streamed(adapter.whole)) as route:
        events = await said(model(adapter, retries=2))
    assert isinstance(events[-1], MessageStop)
    assert route.call_count == 2


@pytest.mark.parametrize("sdk", ["anthropic", "openai"])
async def test_a_connection_that_cannot_be_made_is_tried_again_by_the_sdk(
    sdk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{sdk}._base_client.INITIAL_RETRY_DELAY", 0)
    adapter = {"anthropic": CLAUDE, "openai": OPENAI}[sdk]
    with answering(adapter, httpx2.ConnectError("refused"), streamed(adapter.whole)) as route:
        events = await said(model(adapter, retries=2))
    assert isinstance(events[-1], MessageStop)
    assert route.call_count == 2


async def test_what_the_sdk_has_retried_in_vain_is_not_worth_another_try(adapter: Adapter) -> None:
    with answering(adapter, *[refusal(529)] * 3) as route, pytest.raises(ModelError) as caught:
        await said(model(adapter, retries=2))
    assert (route.call_count, caught.value.retryable) == (3, False)
    assert str(caught.value) == "The model provider is overloaded: try again later."


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (401, "Incorrect API key", "The model provider refused the API key: check {}_API_KEY."),
        (402, "", "The model provider asks for payment: check the account's credit."),
        (403, "", "The model provider refused the API key: check {}_API_KEY and what it gives access to."),
        (
            404,
            "The model `coder` does not exist.",
            "The model provider does not know the model coder (it says: The model `coder` does not exist): choose "
            "another with --model.",
        ),
        (413, "", TOO_LONG),
        (429, "", "The model provider's rate limit has been reached: try again later."),
        (
            429,
            "You exceeded your quota.",
            "The model provider's rate limit has been reached (it says: You exceeded your quota): try again later.",
        ),
        (500, "", "The model provider failed (HTTP 500): try again later."),
        (418, "", "The model provider answered with HTTP 418."),
        (400, f"the key {KEY} may not", "The model provider refused the request: the key [key] may not"),
        (400, "", "The model provider refused the request."),
    ],
)
async def test_a_refused_call_says_what_to_do(adapter: Adapter, status: int, message: str, reason: str) -> None:
    error = await failed(adapter, refusal(status, message))
    assert (str(error), error.retryable) == (reason.format(adapter.variable), False)


async def test_a_refused_request_repeats_the_providers_words_trimmed_and_on_one_line(adapter: Adapter) -> None:
    error = await failed(adapter, refusal(400, "tools:\n  too many " + "x" * 1000))
    assert str(error).startswith("The model provider refused the request: tools: too many xxx")
    assert "\n" not in str(error)
    assert len(str(error)) < 400


async def test_an_error_page_that_is_not_json_is_a_failure_like_any_other(adapter: Adapter) -> None:
    error = await failed(adapter, httpx.Response(502, html="<h1>Bad gateway</h1>"))
    assert str(error).startswith("The model provider failed (HTTP 502)")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (httpx2.ConnectTimeout("slow"), "The model provider at provider.test did not answer in time."),
        (
            httpx2.ConnectError("refused"),
            "The model provider at provider.test cannot be reached: check the network and {}_BASE_URL.",
        ),
    ],
)
async def test_a_provider_that_does_not_answer_is_named(adapter: Adapter, error: Exception, reason: str) -> None:
    failure = await failed(adapter, error)
    assert (str(failure), failure.retryable) == (reason.format(adapter.variable), False)


# -------------------------------------------------------------------------- limits


async def test_an_answer_is_as_long_as_the_model_can(adapter: Adapter) -> None:
    words = "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for coder"
    llm = model(adapter)
    with answering(adapter, refusal(400, words), *(streamed(adapter.whole) for _ in range(2))) as route:
        for _ in range(2):
            assert isinstance((await said(llm))[-1], MessageStop)
    assert [json.loads(call.request.content)["max_tokens"] for call in route.calls] == [32_000, 8_192, 8_192]


@pytest.mark.parametrize(
    ("status", "words", "tokens", "window"),
    [
        (400, "prompt is too long: 210000 tokens > 100000 maximum", 210_000, 100_000),
        (400, "input length and `max_tokens` exceed context limit: 90000 + 32000 > 100000", 90_000, 100_000),
        (400, "This model's maximum context length is 8192 tokens. Your messages resulted in 9000 tokens.", 9000, 8192),
        (400, "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it", 9000, 8192),
        (400, "Prompt contains 9000 tokens, too large for model with 8192 maximum context length", 9000, 8192),
        (400, "Your input exceeds the context window of this model.", None, 128_000),
        (400, "Please reduce the length of the messages or completion.", None, 128_000),
        (400, "Input is too long for requested model.", None, 128_000),
        (413, "Request exceeds the maximum size", None, 128_000),
    ],
)
async def test_a_request_that_is_too_long_is_for_its_sender_to_shorten_and_the_window_is_learnt(
    adapter: Adapter, status: int, words: str, tokens: int | None, window: int
) -> None:
    llm = model(adapter)
    with answering(adapter, *[refusal(status, words)] * 2), pytest.raises(TooLong) as caught:
        await said(llm)
    assert (str(caught.value), caught.value.tokens, caught.value.retryable) == (TOO_LONG, tokens, False)
    assert llm.window == window - min(32_000, window // 2)  # type: ignore[attr-defined]


async def test_a_request_that_fits_with_a_shorter_answer_is_sent_again(adapter: Adapter) -> None:
    words = "'max_tokens' is too large: 32000. The maximum context length is 32768 tokens; your request has "
    llm = model(adapter)
    with answering(adapter, refusal(400, words + "900 input tokens"), streamed(adapter.whole)) as route:
        assert isinstance((await said(llm))[-1], MessageStop)
    assert [json.loads(call.request.content)["max_tokens"] for call in route.calls] == [32_000, 16_384]
    assert llm.window == 16_384  # type: ignore[attr-defined]


# --------------------------------------------------------- breaks after the headers

BREAKS: dict[str, Callable[[Adapter], httpx.Response]] = {
    "transport": lambda adapter: streamed(adapter.begun, then=httpx2.ReadError("reset by peer")),
    "no end": lambda adapter: streamed(adapter.begun),
    "unreadable": lambda adapter: streamed(adapter.begun + b"event: ping2\ndata: {not json\n\n"),
    "too deep": lambda adapter: streamed(adapter.begun + b"event: ping2\ndata: " + deep(100_000).encode() + b"\n\n"),
    "an error": lambda adapter: streamed(adapter.overloaded),
    "no stream": lambda adapter: streamed(b"<html>welcome</html>"),
}
BEGUN = [MessageStart(), BlockStart(0, "text"), TextDelta(0, "Grüße"), TextDelta(0, ", Welt 👋")]


@pytest.mark.parametrize("broken", BREAKS)
async def test_a_stream_that_breaks_is_worth_another_try_and_was_asked_for_once(adapter: Adapter, broken: str) -> None:
    events: list[ModelEvent] = []
    with answering(adapter, BREAKS[broken](adapter)) as route, pytest.raises(ModelError) as caught:
        async for event in model(adapter, retries=2).stream(REQUEST):
            events.append(event)
    reason = "The model provider broke off its answer: busy" if broken == "an error" else BROKEN
    assert (str(caught.value), caught.value.retryable, route.call_count) == (reason, True, 1)
    assert events[:4] == BEGUN or broken == "no stream"
    assert not any(isinstance(event, MessageStop) for event in events)


@pytest.mark.parametrize("then", [None, httpx2.ReadError("reset by peer")])
async def test_an_answer_whose_stop_reason_has_been_told_is_whole(adapter: Adapter, then: Exception | None) -> None:
    with answering(adapter, streamed(adapter.told, then=then)):
        stop = (await said(model(adapter)))[-1]
    assert isinstance(stop, MessageStop)
    assert stop.stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [({"retry-after": "7"}, 7), ({"retry-after-ms": "250"}, 0.25), ({"retry-after": "x"}, None)],
)
async def test_how_long_the_provider_wants_to_be_left_alone_is_told(
    adapter: Adapter, header: dict[str, str], seconds: float | None
) -> None:
    response = streamed(adapter.overloaded)
    response.headers.update(header)
    assert (await failed(adapter, response)).retry_after == seconds


# ----------------------------------------------- real connections, as in production


@contextlib.asynccontextmanager
async def asking(
    adapter: Adapter, provider: Provider, silence: float = 60, http: httpx2.AsyncClient | None = None
) -> AsyncIterator[LLM]:
    llm = adapter.over(provider.url, http, 2, silence)
    try:
        yield llm
    finally:
        await llm.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_an_answer_is_the_same_however_the_network_cuts_it(adapter: Adapter, size: int) -> None:
    pieces = b"".join(chunk(adapter.whole[at : at + 11]) for at in range(0, len(adapter.whole), 11))
    async with Provider(STREAM + pieces + END, size=size) as provider, asking(adapter, provider) as llm:
        events = await said(llm)
    with answering(adapter, streamed(adapter.whole)):
        assert events == await said(model(adapter))
    assert provider.requests[0].startswith(f"POST {adapter.path} ".encode())


async def test_a_provider_that_is_overloaded_is_asked_again_over_the_same_model(adapter: Adapter) -> None:
    refused = b"HTTP/1.1 503 Busy\r\nRetry-After-Ms: 1\r\nContent-Length: 2\r\n\r\n{}"
    whole = STREAM + chunk(adapter.whole) + END
    async with Provider(refused, whole, whole) as provider, asking(adapter, provider) as llm:
        for _ in range(2):
            assert isinstance((await said(llm))[-1], MessageStop)
    assert len(provider.requests) == 3


@pytest.mark.parametrize(
    "end",
    [b"", b"5\r\nhal", chunk(b"event: \xff\n\n"), END, b"no chunk\r\n"],
    ids=["between chunks", "in a chunk", "not text", "without a stop reason", "silence"],
)
async def test_a_connection_that_breaks_or_falls_silent_is_worth_another_try(adapter: Adapter, end: bytes) -> None:
    answer = STREAM + chunk(adapter.begun) + end
    async with Provider(answer, size=len(STREAM)) as provider, asking(adapter, provider, silence=0.5) as llm:
        with pytest.raises(ModelError) as caught:
            await said(llm)
    assert (str(caught.value), caught.value.retryable) == (BROKEN, True)
    assert len(provider.requests) == 1


async def test_a_body_that_is_shorter_than_was_announced_is_broken(adapter: Adapter) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n"
    async with Provider(head + adapter.begun) as provider, asking(adapter, provider) as llm:
        with pytest.raises(ModelError, match="broke before the answer was complete"):
            await said(llm)


async def test_an_address_where_nobody_listens_is_named(adapter: Adapter) -> None:
    port = free_port()
    llm: Any = adapter.over(f"http://127.0.0.1:{port}", None, 0, 60)
    with pytest.raises(ModelError) as caught:
        await said(llm)
    await llm.aclose()
    assert str(caught.value) == (
        f"The model provider at 127.0.0.1:{port} cannot be reached: check the network and {adapter.variable}_BASE_URL."
    )
    assert not caught.value.retryable


async def test_a_connection_that_breaks_after_the_stop_reason_has_broken_nothing(adapter: Adapter) -> None:
    async with Provider(STREAM + chunk(adapter.told)) as provider, asking(adapter, provider) as llm:
        assert isinstance((await said(llm))[-1], MessageStop)


TRANSPORTS = {
    "aiohttp": {"ANTHROPIC": anthropic.DefaultAioHttpClient, "OPENAI": openai.DefaultAioHttpClient},
    "httpx2": {"ANTHROPIC": httpx2.AsyncClient, "OPENAI": httpx2.AsyncClient},
}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("by", ["closing the iterator", "cancelling the task"])
async def test_who_stops_listening_closes_the_connection_at_once(adapter: Adapter, transport: str, by: str) -> None:
    http = TRANSPORTS[transport][adapter.variable](trust_env=False)
    answer = STREAM + chunk(adapter.begun)
    async with Provider(answer, waits=True) as provider, asking(adapter, provider, http=http) as llm:
        if by == "closing the iterator":
            stream = llm.stream(REQUEST)
            assert await anext(stream) == MessageStart()
            assert not provider.gone.is_set()
            await stream.aclose()
        else:
            waiting = asyncio.Event()

            async def listen() -> None:
                async for event in llm.stream(REQUEST):
                    if event == BEGUN[-1]:
                        waiting.set()

            task = asyncio.create_task(listen())
            await waiting.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await asyncio.wait_for(provider.gone.wait(), 10)
