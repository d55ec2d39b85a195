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
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelText,
    TextDelta,
    TooLong,
    Usage,
)
from a2a_canvas.server.agent.models.openai_compatible import OpenAIModel, client_from
from tests.extreme_values import deep
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


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, you provided 32000.",
        "`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` for this model",
    ],
)
async def test_an_answer_is_as_long_as_the_model_can(message: str) -> None:
    requests = await asked(refusal(400, message), answer())
    assert [each["max_tokens"] for each in requests] == [32_000, 16_384]


async def test_files_that_are_refused_are_told_in_words() -> None:
    image = Attachment("image/png", "a.png", b"\x89PNG\r\n\x1a\n")
    request = ModelRequest("", (ModelMessage("user", (ModelText("Look."), image)),))
    for status, message in ((400, "Invalid content type"), (500, "image input is not supported - you may need mmproj")):
        requests = await asked(refusal(status, message), answer(), request=request)
        assert requests[-1]["messages"][-1]["content"] == "Look.\n\n[Attached file: a.png (image/png)]"


# ----------------------------------------------------- failures before the headers


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (401, "Incorrect API key", "The model provider refused the API key: check OPENAI_API_KEY."),
        (403, "", "The model provider refused the API key: check OPENAI_API_KEY and what it gives access to."),
        (
            404,
            "The model `coder` does not exist.",
            "The model provider does not know the model coder (it says: The model `coder` does not exist): choose "
            "another with --model.",
        ),
        (
            404,
            {"detail": "Not Found"},
            "The model provider has no chat completions at provider.test/v1/chat/completions: check OPENAI_BASE_URL, "
            "which often ends in /v1.",
        ),
        (429, "", "The model provider's rate limit has been reached: try again later."),
        (
            429,
            "You exceeded your quota.",
            "The model provider's rate limit has been reached (it says: You exceeded your quota): try again later.",
        ),
        (500, "", "The model provider failed (HTTP 500): try again later."),
        (400, f"the key {KEY} may not", "The model provider refused the request: the key [key] may not"),
        (400, "", "The model provider refused the request."),
    ],
)
async def test_a_refused_call_says_what_to_do(status: int, message: Any, reason: str) -> None:
    error = await failed(refusal(status, message))
    assert (str(error), error.retryable) == (reason, False)


async def test_a_call_that_the_provider_refuses_may_be_written_better() -> None:
    error = {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "{"}}
    refused = await failed(refusal(400, error))
    assert (str(refused), refused.retryable) == (
        "The model wrote a call that its provider refuses: Failed to call a function.",
        True,
    )


async def test_what_the_sdk_has_retried_in_vain_is_not_worth_another_try() -> None:
    with answering(*[refusal(503)] * 3) as route, pytest.raises(ModelError) as caught:
        await said(model(retries=2))
    assert (route.call_count, caught.value.retryable) == (3, False)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (httpx2.ConnectTimeout("slow"), "The model provider at provider.test did not answer in time."),
        (
            httpx2.ConnectError("refused"),
            "The model provider at provider.test cannot be reached: check the network and OPENAI_BASE_URL.",
        ),
    ],
)
async def test_a_provider_that_does_not_answer_is_named(error: Exception, reason: str) -> None:
    said = await failed(error)
    assert (str(said), said.retryable) == (reason, False)


@pytest.mark.parametrize(
    ("message", "tokens", "window"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            9000,
            8192,
        ),
        (
            "the request exceeds the available context size: request (9000 tokens), context size (8192 tokens)",
            9000,
            8192,
        ),
        (
            "Prompt contains 9000 tokens and 0 draft tokens, too large for model with 8192 maximum context length",
            9000,
            8192,
        ),
        ("Your input exceeds the context window of this model.", None, 128_000),
        ("Please reduce the length of the messages or completion.", None, 128_000),
    ],
)
async def test_a_request_that_is_too_long_is_one_and_the_window_is_learnt(
    message: str, tokens: int | None, window: int
) -> None:
    llm = model()
    error = await failed(refusal(400, message), llm=llm)
    assert isinstance(error, TooLong)
    assert (error.tokens, llm.window) == (tokens, window - min(32_000, window // 2))


async def test_a_request_that_fits_with_a_shorter_answer_is_sent_again() -> None:
    message = (
        "'max_tokens' is too large: 32000. This model's maximum context length is 8192 tokens and your request has 100 "
        "input tokens"
    )
    assert [each["max_tokens"] for each in await asked(refusal(400, message), answer())] == [32_000, 4_096]


# --------------------------------------------------------- breaks after the headers

BREAKS = {
    "transport": answer(body(*HELLO, done=False), then=httpx2.ReadError("reset by peer")),
    "no end": answer(body(*HELLO, done=False)),
    "unreadable": answer(body(*HELLO, "data: {not json", done=False)),
    "too deep": answer(body(*HELLO, f"data: {deep(100_000)}", done=False)),
    "an error": answer(body(*HELLO, {"error": {"message": "out of memory"}})),
    "an error as the reason": answer(body(*HELLO, chunk(finish="error"))),
    "no stream": answer(b"<html>welcome</html>"),
    "the end alone": answer(body()),
}


@pytest.mark.parametrize("broken", BREAKS)
async def test_a_stream_that_breaks_is_worth_another_try_and_was_asked_for_once(broken: str) -> None:
    events: list[ModelEvent] = []
    with answering(BREAKS[broken]) as route, pytest.raises(ModelError) as caught:
        async for event in model(retries=2).stream(REQUEST):
            events.append(event)
    said = "The model provider broke off its answer: out of memory" if broken == "an error" else BROKEN
    assert (str(caught.value), caught.value.retryable, route.call_count) == (said, True, 1)
    assert events[1:3] == (
        [] if broken in ("no stream", "the end alone") else [BlockStart(0, "text"), TextDelta(0, "Hello")]
    )


@pytest.mark.parametrize("then", [None, httpx2.ReadError("reset by peer")])
async def test_an_answer_whose_finish_reason_has_been_told_is_whole(then: Exception | None) -> None:
    with answering(answer(body(*HELLO, chunk(finish="stop"), done=False), then=then)):
        assert (await said(model()))[-1] == MessageStop("end_turn")


async def test_an_error_behind_the_finish_reason_is_ignored() -> None:
    with answering(answer(body(*HELLO, chunk(finish="stop"), {"error": "no usage"}))):
        assert (await said(model()))[-1] == MessageStop("end_turn")


async def test_how_long_the_provider_wants_to_be_left_alone_is_told() -> None:
    response = answer(body(*HELLO, {"error": "busy"}))
    response.headers.update({"retry-after": "7"})
    assert (await failed(response)).retry_after == 7


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
