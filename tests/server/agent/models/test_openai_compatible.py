"""OpenAI's API over the wire: streams of its servers, cut and broken in every way, and the failures before them."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import openai
import pytest
import respx
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.model import (
    Attachment,
    BlockStart,
    MessageStart,
    MessageStop,
    ModelError,
    ModelMessage,
    ModelRequest,
    ModelText,
    TextDelta,
    Usage,
)
from a2a_canvas.server.agent.models.openai_compatible import OpenAIModel, client_from
from tests.server.agent.models.chat_chunks import Json, body, calling, chunk, folded, piece, usage
from tests.server.agent.models.provider_answers import REQUEST, said, streamed
from tests.server.agent.models.strict_chat_completions import ChatCompletionsApi
from tests.server.agent.models.strict_messages_api import Answer, calls, says, sealed

BASE = "http://provider.test/v1"
KEY = "sk-a-secret-of-ours"
HELLO = [chunk({"role": "assistant", "content": ""}), chunk({"content": "Hello"}), chunk({"content": "."})]
WHOLE = body(*HELLO, chunk(finish="stop"), usage(7, 2))
BROKEN = "The connection to the model provider broke before the answer was complete."


def answer(content: bytes = WHOLE, cuts: list[int] | None = None, then: Exception | None = None) -> httpx.Response:
    return streamed(content, cuts, then)


def refusal(status: int, message: Any = "", **headers: str) -> httpx.Response:
    error = {"error": {"message": message, "type": "some_error"}} if isinstance(message, str) else message
    return httpx.Response(status, headers={"retry-after-ms": "1", **headers}, json=error)


def model(retries: int = 0, base_url: str = BASE, **options: Any) -> OpenAIModel:
    # It asks no real server: to load all authorities would take 20 ms for each of these clients.
    http = httpx2.AsyncClient(trust_env=False, verify=False)
    client = openai.AsyncOpenAI(api_key=KEY, base_url=base_url, max_retries=retries, http_client=http)
    return OpenAIModel(**{"model": "coder", "context_window": 128_000, "client": client, **options})


@contextlib.contextmanager
def answering(*answers: httpx.Response | Exception, base_url: str = BASE) -> Iterator[respx.Route]:
    with respx.mock(using="httpcore2") as router:
        yield router.post(f"{base_url}/chat/completions").mock(side_effect=list(answers))


async def failed(*answers: httpx.Response | Exception, llm: OpenAIModel | None = None) -> ModelError:
    with answering(*answers), pytest.raises(ModelError) as caught:
        await said(llm or model())
    return caught.value


async def asked(
    *answers: httpx.Response, llm: OpenAIModel | None = None, request: ModelRequest = REQUEST
) -> list[Json]:
    """The requests that one call makes."""
    with answering(*answers) as route:
        await said(llm or model(), request)
    return [json.loads(call.request.content) for call in route.calls]


# ------------------------------------------------------------------ what is said


async def test_an_answer_is_what_the_server_sends() -> None:
    with answering(answer()):
        events = await said(model())
    assert events[:3] == [MessageStart(), BlockStart(0, "text"), TextDelta(0, "Hello")]
    assert events[-1] == MessageStop("end_turn", Usage(7, 2))


SERVERS = {
    "OpenAI": body(
        chunk({"role": "assistant", "content": None}),
        calling(piece("", "list", index=0, id="call_1", type="function")),
        *(calling(piece(part, index=0)) for part in ('{"', "größe", '": 1}')),
        chunk(finish="tool_calls", usage=None),
        usage(9, 5),
    ),
    "vLLM": body(
        chunk({"role": "assistant", "content": ""}),
        calling(piece(None, "list", index=0, id="call_1", type="function")),
        *(calling(piece(part, index=0)) for part in ('{"größe": ', "1", "}", "")),
        chunk({"content": ""}, "tool_calls", stop_reason=None),
        usage(9, 5),
    ),
    "llama.cpp": body(
        chunk({"role": "assistant", "content": None}),
        calling(piece("{", "list", index=0, id="call_1", type="function")),
        calling(piece('"größe": 1}', index=0)),
        chunk({}, "tool_calls", timings={"prompt_n": 9}),
        usage(9, 5),
    ),
    "OpenRouter": body(
        ": OPENROUTER PROCESSING",
        chunk({"role": "assistant", "content": "", "reasoning": None, "reasoning_details": []}),
        calling(piece("", "list", index=0, id="call_1")),
        calling(piece('{"größe": 1}', None, index=0, id=None)),
        ": OPENROUTER PROCESSING",
        chunk({"content": ""}, "tool_calls", native_finish_reason="stop"),
        {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": None}], "usage": usage(9, 5)["usage"]},
    ),
    "Groq": body(
        chunk({"role": "assistant", "content": None}, x_groq={"id": "req_1"}),
        calling(piece('{"größe": 1}', "list", index=0, id="call_1", type="function")),
        chunk(finish="tool_calls", x_groq={"usage": usage(9, 5)["usage"]}),
    ),
    "Mistral": body(
        chunk({"role": "assistant", "content": ""}),
        chunk(
            {"content": "", "tool_calls": [piece('{"größe": 1}', "list", index=0, id="call_1")]},
            "tool_calls",
            usage=usage(9, 5)["usage"],
        ),
    ),
    "Ollama": body(
        chunk({"role": "assistant", "content": "", "tool_calls": [piece('{"größe": 1}', "list", id="call_1")]}),
        chunk({"role": "assistant", "content": ""}, "stop"),
        usage(9, 5),
        done=False,
    ),
    "LM Studio": body(
        chunk({"role": "assistant"}),
        calling(piece("", "list", index=0, id="call_1", type="function")),
        *(calling(piece(part, "", index=0, id=f"other_{part}")) for part in ('{"größe"', ": 1}")),
        chunk(finish="tool_calls"),
        usage(9, 5),
    ),
}


@pytest.mark.parametrize("server", SERVERS)
async def test_a_call_is_the_same_from_every_server(server: str) -> None:
    with answering(answer(SERVERS[server])):
        [call], stop = folded(await said(model()))
    assert (*call[:3], json.loads(call[3])) == ("tool_use", "call_1", "list", {"größe": 1})
    assert stop == MessageStop("tool_use", Usage(9, 5))


@given(st.sampled_from(sorted(SERVERS)), st.lists(st.integers(0, 1200), max_size=8))
async def test_wherever_the_bytes_are_cut_the_events_are_the_same(server: str, cuts: list[int]) -> None:
    content = SERVERS[server]
    with answering(answer(content), answer(content, [min(cut, len(content)) for cut in cuts])):
        assert await said(model()) == await said(model())


async def test_the_strict_server_says_what_it_is_told_to() -> None:
    api = ChatCompletionsApi(lambda _: Answer([sealed("Hm."), says("Hello."), calls("a", "list", {})], "tool_use", 2))
    assert folded(await said(api.model())) == (
        [("thinking", "", "", "Hm."), ("text", "", "", "Hello."), ("tool_use", "a", "list", "{}")],
        MessageStop("tool_use", Usage(100, 20)),
    )


# ------------------------------------------- what is omitted because a server refuses it

EXTRA = {
    "object": "error",
    "message": {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]},
}


async def test_a_field_that_is_refused_is_left_out_from_then_on(caplog: pytest.LogCaptureFixture) -> None:
    llm = model()
    with caplog.at_level(logging.WARNING):
        first = await asked(refusal(422, EXTRA), answer(), llm=llm)
        second = await asked(answer(), llm=llm)
    assert ["stream_options" in each for each in (*first, *second)] == [True, False, False]
    assert caplog.messages == [
        "Repeating the request to the provider, without stream_options: "
        "body.stream_options: Extra inputs are not permitted"
    ]


async def test_everything_that_is_refused_is_left_out_one_after_the_other() -> None:
    llm = model(thinks=False)
    names = ("stream_options", "reasoning_effort")
    refusals = [refusal(400, f"Unsupported parameter: {name}") for name in names]
    requests = await asked(
        *refusals, refusal(400, "max_tokens is not supported, use max_completion_tokens"), answer(), llm=llm
    )
    assert requests[-1].keys() == {"model", "messages", "stream", "max_completion_tokens"}


@pytest.mark.parametrize(
    ("base_url", "name"), [(BASE, "max_tokens"), ("https://api.openai.com/v1", "max_completion_tokens")]
)
async def test_the_limit_has_its_newer_name_at_openai(base_url: str, name: str) -> None:
    with answering(answer(), base_url=base_url) as route:
        await said(model(base_url=base_url))
    assert json.loads(route.calls.last.request.content)[name] == 32_000


async def test_files_that_are_refused_are_told_in_words() -> None:
    image = Attachment("image/png", "a.png", b"\x89PNG\r\n\x1a\n")
    request = ModelRequest("", (ModelMessage("user", (ModelText("Look."), image)),))
    for status, message in ((400, "Invalid content type"), (500, "image input is not supported - you may need mmproj")):
        requests = await asked(refusal(status, message), answer(), request=request)
        assert requests[-1]["messages"][-1]["content"] == "Look.\n\n[Attached file: a.png (image/png)]"


# ----------------------------------------------------- failures before the headers


async def test_an_address_without_the_api_is_named() -> None:
    assert str(await failed(refusal(404, {"detail": "Not Found"}))) == (
        "The model provider has no chat completions at provider.test/v1/chat/completions: check OPENAI_BASE_URL, which "
        "often ends in /v1."
    )


async def test_a_call_that_the_provider_refuses_may_be_written_better() -> None:
    error = {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "{"}}
    refused = await failed(refusal(400, error))
    assert (str(refused), refused.retryable) == (
        "The model wrote a call that its provider refuses: Failed to call a function.",
        True,
    )


# --------------------------------------------------------- breaks after the headers


async def test_an_error_as_the_finish_reason_and_an_end_without_an_answer_are_breaks() -> None:
    for content in (body(*HELLO, chunk(finish="error")), body()):
        error = await failed(answer(content))
        assert (str(error), error.retryable) == (BROKEN, True)


async def test_an_error_behind_the_finish_reason_is_ignored() -> None:
    with answering(answer(body(*HELLO, chunk(finish="stop"), {"error": "no usage"}))):
        assert (await said(model()))[-1] == MessageStop("end_turn")


# ------------------------------------------------------------------- environment


async def key_sent(environ: dict[str, str], url: str) -> str:
    llm = OpenAIModel(model="m", context_window=9000, client=client_from(environ, httpx2.AsyncClient()))
    with answering(answer(), base_url=url) as route:
        await said(llm)
    return str(route.calls.last.request.headers["authorization"])


async def test_the_environment_names_key_and_address() -> None:
    assert await key_sent({"OPENAI_API_KEY": f" {KEY}\n"}, "https://api.openai.com/v1") == f"Bearer {KEY}"
    assert await key_sent({"OPENAI_BASE_URL": BASE}, BASE) == "Bearer none"


async def test_a_password_in_the_address_is_for_the_server_in_front() -> None:
    assert (await key_sent({"OPENAI_BASE_URL": "http://me:secret@provider.test/v1"}, BASE)).startswith("Basic ")
