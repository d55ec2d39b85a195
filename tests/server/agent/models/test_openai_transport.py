"""OpenAI's API over real connections, with the transport of production. `test_openai_compatible.py` has the answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from a2a_canvas.server.agent.model import MessageStart, MessageStop, ModelError
from a2a_canvas.server.agent.models.openai_compatible import OpenAIModel, client_from
from tests.server.agent.models.chat_chunks import body, folded, usage
from tests.server.agent.models.chat_chunks import chunk as completion
from tests.server.agent.models.loopback_provider import END, STREAM, Provider, chunk
from tests.server.agent.models.provider_answers import REQUEST

HELLO = [completion({"content": "Grüße"}), completion({"content": ", Welt 👋"})]
WHOLE = body(*HELLO, completion(finish="stop"), usage(7, 2))
BEGUN = STREAM + chunk(body(*HELLO, done=False))
BROKEN = "The connection to the model provider broke before the answer was complete."


@contextlib.asynccontextmanager
async def asking(provider: Provider, silence: float = 60) -> AsyncIterator[OpenAIModel]:
    """A model as the server makes it."""
    environ = {"OPENAI_API_KEY": "sk-a-secret-of-ours", "OPENAI_BASE_URL": f"{provider.url}/v1"}
    model = OpenAIModel(model="m", context_window=9000, client=client_from(environ).with_options(timeout=silence))
    try:
        yield model
    finally:
        await model.aclose()


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_an_answer_is_the_same_however_the_network_cuts_it(size: int) -> None:
    async with Provider(STREAM + chunk(WHOLE) + END, size=size) as provider, asking(provider) as model:
        blocks, stop = folded([event async for event in model.stream(REQUEST)])
    assert blocks == [("text", "", "", "Grüße, Welt 👋")]
    assert isinstance(stop, MessageStop)
    assert provider.requests[0].startswith(b"POST /v1/chat/completions ")


async def test_a_provider_that_is_overloaded_is_asked_again_over_the_same_model() -> None:
    refused = b"HTTP/1.1 503 Busy\r\nRetry-After-Ms: 1\r\nContent-Length: 2\r\n\r\n{}"
    async with Provider(refused, *[STREAM + chunk(WHOLE) + END] * 2) as provider, asking(provider) as model:
        for _ in range(2):
            assert isinstance([event async for event in model.stream(REQUEST)][-1], MessageStop)
    assert len(provider.requests) == 3


@pytest.mark.parametrize("end", [b"", b"5\r\nhal", END, b"no chunk\r\n"])
async def test_a_stream_that_breaks_or_falls_silent_is_worth_another_try(end: bytes) -> None:
    async with Provider(BEGUN + end, size=len(STREAM)) as provider, asking(provider, silence=0.5) as model:
        with pytest.raises(ModelError) as caught:
            [event async for event in model.stream(REQUEST)]
    assert (str(caught.value), caught.value.retryable) == (BROKEN, True)
    assert len(provider.requests) == 1


async def test_closing_the_iterator_closes_the_connection_at_once() -> None:
    async with Provider(BEGUN, waits=True) as provider, asking(provider) as model:
        stream = model.stream(REQUEST)
        assert await anext(stream) == MessageStart()
        await stream.aclose()
        await asyncio.wait_for(provider.gone.wait(), 10)
