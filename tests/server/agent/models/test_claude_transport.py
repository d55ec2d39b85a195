"""Claude over real connections: what the transport of production makes of a provider's bytes and of a connection's end.

`test_claude.py` has the answers themselves, over a transport that can be intercepted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anthropic
import httpx2
import pytest

from a2a_canvas.server.agent.model import (
    BlockStart,
    MessageStart,
    MessageStop,
    ModelError,
    ModelEvent,
    TextDelta,
)
from a2a_canvas.server.agent.models.claude import ClaudeModel, client_from
from tests.free_port import free_port
from tests.server.agent.models.loopback_provider import END, STREAM, Provider, chunk
from tests.server.agent.models.provider_answers import REQUEST

KEY = "sk-ant-a-secret-of-ours"
BROKEN = "The connection to the model provider broke before the answer was complete."


def recorded(name: str) -> bytes:
    return (Path(__file__).parent / "fixtures" / f"{name}.sse").read_bytes()


BEGUN = chunk(recorded("text").partition(b"event: content_block_stop")[0])


@contextlib.asynccontextmanager
async def asking(url: str) -> AsyncIterator[ClaudeModel]:
    """A model as the server makes it."""
    model = ClaudeModel(client=client_from({"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url}))
    try:
        yield model
    finally:
        await model.aclose()


async def said(provider: Provider) -> list[ModelEvent]:
    async with asking(provider.url) as model:
        return [event async for event in model.stream(REQUEST)]


async def failed(provider: Provider) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await said(provider)
    return caught.value


# ------------------------------------------------------------------ answers


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("name", ["text", "tool_call"])
async def test_an_answer_is_the_same_however_the_network_cuts_it(name: str, size: int) -> None:
    whole = STREAM + chunk(recorded(name)) + END
    async with Provider(whole, size=size) as cut, Provider(whole) as uncut:
        events = await said(cut)
        assert events == await said(uncut)
    assert isinstance(events[-1], MessageStop)


async def test_the_chunks_of_an_answer_need_not_be_its_events() -> None:
    body = recorded("tool_call")
    chunks = b"".join(chunk(body[at : at + 11]) for at in range(0, len(body), 11))
    async with Provider(STREAM + chunks + END) as cut, Provider(STREAM + chunk(body) + END) as uncut:
        assert await said(cut) == await said(uncut)


@pytest.mark.parametrize("status", [b"529 Overloaded", b"429 Too Many Requests", b"500 Internal Server Error"])
async def test_a_provider_that_is_overloaded_is_asked_again(status: bytes) -> None:
    refused = b"HTTP/1.1 " + status + b"\r\nRetry-After-Ms: 1\r\nContent-Length: 2\r\n\r\n{}"
    async with Provider(refused, STREAM + chunk(recorded("text")) + END) as provider:
        assert isinstance((await said(provider))[-1], MessageStop)
    assert len(provider.requests) == 2


async def test_two_answers_come_over_one_connection() -> None:
    whole = STREAM + chunk(recorded("text")) + END
    async with Provider(whole, whole) as provider, asking(provider.url) as model:
        for _ in range(2):
            assert isinstance([event async for event in model.stream(REQUEST)][-1], MessageStop)
    assert len(provider.requests) == 2


async def test_a_password_in_the_address_is_sent() -> None:
    provider = Provider(STREAM + chunk(recorded("text")) + END)
    async with provider, asking(provider.url.replace("//", "//me:secret@")) as model:
        assert isinstance([event async for event in model.stream(REQUEST)][-1], MessageStop)
    assert b"authorization: Basic " in provider.requests[0]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"ANTHROPIC_API_KEY": "key"}, b"key"),
        ({"ANTHROPIC_AUTH_TOKEN": "token"}, b"token"),
        ({"ANTHROPIC_API_KEY": "key", "ANTHROPIC_AUTH_TOKEN": "token"}, b"key"),
        ({}, b"none"),
    ],
)
async def test_key_and_token_are_sent_as_docs_models_says(given: dict[str, str], sent: bytes) -> None:
    async with Provider(STREAM + chunk(recorded("text")) + END) as provider:
        model = ClaudeModel(client=client_from({"ANTHROPIC_BASE_URL": provider.url, **given}))
        assert isinstance([event async for event in model.stream(REQUEST)][-1], MessageStop)
        await model.aclose()
    [head, _] = provider.requests[0].lower().split(b"\r\n\r\n", 1)
    credentials = [line for line in head.split(b"\r\n") if line.startswith((b"authorization:", b"x-api-key:"))]
    assert credentials == [b"authorization: bearer " + sent]


# ------------------------------------------------------------------ breaks


@pytest.mark.parametrize(
    "end",
    [b"", b"5\r\nhal", chunk(b"event: \xff\n\n"), END],
    ids=["between chunks", "in a chunk", "not text", "without a stop reason"],
)
async def test_a_stream_that_breaks_is_worth_another_try_and_is_asked_for_once(end: bytes) -> None:
    async with Provider(STREAM + BEGUN + end, size=len(STREAM)) as provider:
        error = await failed(provider)
    assert (error.retryable, str(error)) == (True, BROKEN)
    assert len(provider.requests) == 1


async def test_a_connection_that_says_nothing_more_for_too_long_is_broken() -> None:
    # aiohttp, too, says nothing more after a chunk that is none.
    async with Provider(STREAM + BEGUN + b"no chunk\r\n", size=len(STREAM)) as provider:
        client = client_from({"ANTHROPIC_BASE_URL": provider.url}).with_options(timeout=0.2)
        model = ClaudeModel(client=client)
        with pytest.raises(ModelError) as caught:
            [event async for event in model.stream(REQUEST)]
        await model.aclose()
    assert (caught.value.retryable, str(caught.value)) == (True, BROKEN)


async def test_a_body_that_is_shorter_than_was_announced_is_broken() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n"
    async with Provider(head + recorded("text").partition(b"event: message_delta")[0]) as provider:
        error = await failed(provider)
    assert (error.retryable, str(error)) == (True, BROKEN)


async def test_what_came_before_the_break_was_passed_on() -> None:
    events: list[ModelEvent] = []
    async with Provider(STREAM + BEGUN) as provider, asking(provider.url) as model:
        with pytest.raises(ModelError):
            async for event in model.stream(REQUEST):
                events.append(event)
    assert events == [MessageStart(), BlockStart(0, "text"), TextDelta(0, "Grüße"), TextDelta(0, ", Welt 👋")]


async def test_an_error_in_the_stream_says_what_the_provider_says() -> None:
    async with Provider(STREAM + chunk(recorded("error")) + END) as provider:
        error = await failed(provider)
    assert (error.retryable, str(error)) == (True, "The model provider is overloaded: try again later.")


async def test_a_connection_that_breaks_after_the_stop_reason_has_broken_nothing() -> None:
    async with Provider(STREAM + chunk(recorded("text").partition(b"event: message_stop")[0])) as provider:
        assert isinstance((await said(provider))[-1], MessageStop)


async def test_an_address_where_nobody_listens_is_named() -> None:
    port = free_port()
    client = client_from({"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}"}).with_options(max_retries=0)
    model = ClaudeModel(client=client)
    with pytest.raises(ModelError) as caught:
        [event async for event in model.stream(REQUEST)]
    await model.aclose()
    assert (str(caught.value), caught.value.retryable) == (
        f"The model provider at 127.0.0.1:{port} cannot be reached: check the network and ANTHROPIC_BASE_URL.",
        False,
    )


# ------------------------------------------------------------------ cancel

TRANSPORTS: list[Callable[..., httpx2.AsyncClient]] = [anthropic.DefaultAioHttpClient, httpx2.AsyncClient]
over_each_transport = pytest.mark.parametrize("transport", TRANSPORTS, ids=["aiohttp", "httpx2"])


def model_over(url: str, transport: Callable[..., httpx2.AsyncClient]) -> ClaudeModel:
    http_client = transport(trust_env=False)
    return ClaudeModel(client=anthropic.AsyncAnthropic(api_key=KEY, base_url=url, http_client=http_client))


@over_each_transport
async def test_closing_the_iterator_closes_the_connection_at_once(transport: Callable[..., httpx2.AsyncClient]) -> None:
    async with Provider(STREAM + BEGUN, waits=True) as provider:
        model = model_over(provider.url, transport)
        stream = model.stream(REQUEST)
        assert await anext(stream) == MessageStart()
        assert not provider.gone.is_set()

        await stream.aclose()

        await asyncio.wait_for(provider.gone.wait(), 10)
        await model.aclose()


@over_each_transport
async def test_cancelling_the_task_that_waits_for_the_next_event_closes_the_connection_at_once(
    transport: Callable[..., httpx2.AsyncClient],
) -> None:
    async with Provider(STREAM + BEGUN, waits=True) as provider:
        model = model_over(provider.url, transport)
        waiting = asyncio.Event()

        async def listen() -> None:
            async for event in model.stream(REQUEST):
                if event == TextDelta(0, ", Welt 👋"):
                    waiting.set()

        task = asyncio.create_task(listen())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        await asyncio.wait_for(provider.gone.wait(), 10)
        await model.aclose()
