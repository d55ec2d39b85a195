"""Providers that would fill the memory, or lead elsewhere: the same for both APIs."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import AsyncIterator, Callable, Iterator

import httpx
import httpx2
import pytest
import respx

from a2a_canvas.server.agent.model import LLM, ModelError
from a2a_canvas.server.agent.models import claude, openai_compatible
from a2a_canvas.server.agent.models.claude import ClaudeModel
from a2a_canvas.server.agent.models.openai_compatible import OpenAIModel
from tests.server.agent.models.provider_answers import said

BASE = "http://provider.test"


def claude_there() -> LLM:
    environ = {"ANTHROPIC_API_KEY": "sk-a", "ANTHROPIC_BASE_URL": BASE}
    client = claude.client_from(environ, httpx2.AsyncClient(trust_env=False))
    return ClaudeModel(client=client.with_options(max_retries=0))


def openai_there() -> LLM:
    environ = {"OPENAI_API_KEY": "sk-a", "OPENAI_BASE_URL": BASE}
    client = openai_compatible.client_from(environ, httpx2.AsyncClient(trust_env=False))
    return OpenAIModel(model="m", context_window=128_000, client=client.with_options(max_retries=0))


@contextlib.contextmanager
def answering(answer: httpx.Response) -> Iterator[respx.MockRouter]:
    with respx.mock(using="httpcore2", assert_all_called=False) as router:
        router.route(host="elsewhere.test").respond(200)
        router.post(host="provider.test").mock(return_value=answer)
        yield router


async def flood() -> AsyncIterator[bytes]:
    for _ in range(100):
        yield b": " + b"x" * 2**20 + b"\n\n"


def bomb(status: int) -> httpx.Response:
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    return httpx.Response(status, headers=headers, content=gzip.compress(b" " * 10_000_000))


@pytest.mark.parametrize("there", [claude_there, openai_there])
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            lambda: httpx.Response(200, content=flood()),
            "more than 64 MB",
        ),
        (lambda: httpx.Response(400, content=flood()), "more than 64 MB"),
        (lambda: bomb(200), "it compresses its answers although it was asked not to"),
        (lambda: bomb(400), "it compresses its answers although it was asked not to"),
    ],
    ids=["endless", "endless error", "compressed", "compressed error"],
)
async def test_an_answer_beyond_the_limit_is_not_read_nor_asked_for_again(
    there: Callable[[], LLM], answer: Callable[[], httpx.Response], why: str
) -> None:
    with answering(answer()) as router:
        with pytest.raises(ModelError, match=why) as caught:
            await said(there())
        assert router.calls.call_count == 1
        assert router.calls.last.request.headers["accept-encoding"] == "identity"
    assert str(caught.value).startswith("The answer of the model provider at provider.test cannot be read: it ")
    assert not caught.value.retryable


@pytest.mark.parametrize("there", [claude_there, openai_there])
async def test_a_redirect_is_not_followed_so_that_no_key_goes_elsewhere(there: Callable[[], LLM]) -> None:
    redirect = httpx.Response(307, headers={"location": "http://elsewhere.test/"})
    with answering(redirect) as router:
        with pytest.raises(ModelError, match="HTTP 307"):
            await said(there())
        assert [call.request.url.host for call in router.calls] == ["provider.test"]
