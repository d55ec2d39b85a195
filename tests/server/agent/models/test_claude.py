"""Claude over the wire: recorded streams, cut and broken in every way, and the failures before them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import anthropic
import httpx
import httpx2
import pytest
import respx
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.model import (
    LLM,
    Attachment,
    BlockStart,
    BlockStop,
    InputDelta,
    MessageStart,
    MessageStop,
    ModelError,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelText,
    SignatureDelta,
    StopReasonDelta,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolSpec,
    Usage,
)
from a2a_canvas.server.agent.models import claude as llm
from a2a_canvas.server.agent.models.claude import ClaudeModel
from a2a_canvas.server.agent.models.claude_params import is_configured
from tests.property_examples import examples
from tests.server.agent.models.provider_answers import REQUEST, said, streamed
from tests.server.agent.models.strict_messages_api import Answer, MessagesApi, says

BASE = "http://provider.test"
KEY = "sk-ant-a-secret-of-ours"


def recorded(name: str) -> bytes:
    return (Path(__file__).parent / "fixtures" / f"{name}.sse").read_bytes()


def refusal(status: int, message: str = "", **headers: str) -> httpx.Response:
    error = {"type": "error", "error": {"type": "some_error", "message": message}}
    return httpx.Response(status, headers={"retry-after-ms": "1", **headers}, json=error)


def claude(retries: int = 0, base_url: str = BASE, model: str = "claude-sonnet-5-5") -> ClaudeModel:
    # It asks no real server: to load all authorities would take 20 ms for each of these clients.
    http = httpx2.AsyncClient(trust_env=False, verify=False)
    client = anthropic.AsyncAnthropic(api_key=KEY, base_url=base_url, max_retries=retries, http_client=http)
    return ClaudeModel(model=model, client=client)


def configured() -> ClaudeModel:
    """As the environment says, over the transport that can be intercepted."""
    return ClaudeModel(client=llm.client_from(os.environ, httpx2.AsyncClient()))


@contextlib.contextmanager
def answering(*answers: httpx.Response | Exception) -> Iterator[respx.Route]:
    with respx.mock(using="httpcore2") as router:
        yield router.post(f"{BASE}/v1/messages").mock(side_effect=list(answers))


async def played(name: str, cuts: list[int] | None = None) -> list[ModelEvent]:
    with answering(streamed(recorded(name), cuts)):
        return await said(claude())


async def failed(*answers: httpx.Response | Exception, model: ClaudeModel | None = None) -> ModelError:
    with answering(*answers), pytest.raises(ModelError) as caught:
        await said(model or claude())
    return caught.value


def input_of(events: list[ModelEvent], index: int) -> str:
    return "".join(e.partial_json for e in events if isinstance(e, InputDelta) and e.llm_index == index)


# ------------------------------------------------------------------ what is said


async def test_a_text_reply_comes_delta_by_delta_and_pings_say_nothing() -> None:
    assert await played("text") == [
        MessageStart(),
        BlockStart(0, "text"),
        TextDelta(0, "Grüße"),
        TextDelta(0, ", Welt 👋"),
        BlockStop(0),
        StopReasonDelta("end_turn"),
        MessageStop("end_turn", Usage(12, 15, cache_read_tokens=400, cache_write_tokens=30)),
    ]


async def test_thinking_comes_as_deltas_sealed_by_its_signature_and_redacted_thinking_as_its_data() -> None:
    assert await played("thinking") == [
        MessageStart(),
        BlockStart(0, "thinking"),
        ThinkingDelta(0, "First an outline"),
        ThinkingDelta(0, ", then the text."),
        SignatureDelta(0, "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"),
        BlockStop(0),
        BlockStart(1, "thinking"),
        SignatureDelta(1, redacted="EmwKAhgBEgy3va3pzix"),
        BlockStop(1),
        BlockStart(2, "text"),
        TextDelta(2, "Done."),
        BlockStop(2),
        StopReasonDelta("end_turn"),
        MessageStop("end_turn", Usage(25, 40)),
    ]


async def test_thinking_whose_text_is_omitted_still_has_its_signature() -> None:
    assert (await played("omitted_thinking"))[1:4] == [
        BlockStart(0, "thinking"),
        SignatureDelta(0, "EosnCkYICxIMMb3LzNrMu"),
        BlockStop(0),
    ]


async def test_a_tool_call_split_inside_escapes_and_surrogate_pairs_comes_through_as_it_was_split() -> None:
    events = await played("tool_call")

    assert events[4] == BlockStart(1, "tool_use", tool_use_id="toolu_01Report", name="artifact_update")
    assert InputDelta(1, "83d") in events
    assert json.loads(input_of(events, 1)) == {
        "append": False,
        "artifact": {"artifact_id": "report", "parts": [{"kind": "text", "text": 'Say "hi"\n😀 é'}]},
    }
    assert events[-1] == MessageStop("tool_use", Usage(25, 89))


async def test_several_tools_in_one_message_each_have_their_block() -> None:
    events = await played("several_tools")

    assert [(e.llm_index, e.tool_use_id, e.name) for e in events if isinstance(e, BlockStart)] == [
        (0, "toolu_01A", "artifact_read"),
        (1, "toolu_01B", "artifact_list"),
        (2, "toolu_01C", "artifact_read"),
    ]
    assert [input_of(events, index) for index in range(3)] == ['{"artifact_id": "a"}', "", '{"artifact_id": "c"}']


async def test_a_call_without_an_id_or_a_name_has_empty_ones() -> None:
    body = recorded("several_tools").replace(b'"toolu_01A"', b"null").replace(b'"artifact_list"', b"null")
    with answering(streamed(body)):
        starts = [event for event in await said(claude()) if isinstance(event, BlockStart)]

    assert [(e.tool_use_id, e.name) for e in starts] == [
        ("", "artifact_read"),
        ("toolu_01B", ""),
        ("toolu_01C", "artifact_read"),
    ]


async def test_max_tokens_inside_a_tool_input_leaves_it_unfinished_and_says_why() -> None:
    events = await played("max_tokens_in_tool")

    assert input_of(events, 0).endswith('"text": "half a sen')
    assert events[-2:] == [StopReasonDelta("max_tokens"), MessageStop("max_tokens", Usage(25, 64))]
    assert BlockStop(0) in events


async def test_a_refusal_is_a_stop_reason_and_not_a_failure() -> None:
    assert (await played("refusal"))[-1] == MessageStop("refusal", Usage(25, 3))


async def test_unknown_events_blocks_and_deltas_are_left_out_whole_and_each_type_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await played("unknown") == [
        MessageStart(),
        BlockStart(0, "text"),
        TextDelta(0, "Found it."),
        BlockStop(0),
        StopReasonDelta("end_turn"),
        MessageStop("end_turn", Usage(25, 30)),
    ]
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("a2a_canvas.")]
    assert len(logged) == 2
    assert "'server_tool_use'" in logged[0]
    assert "'web_search_tool_result'" in logged[1]


async def test_what_a_block_start_already_carries_is_its_first_fragment() -> None:
    assert (await played("prefilled"))[1:-2] == [
        BlockStart(0, "thinking"),
        ThinkingDelta(0, "Hm."),
        SignatureDelta(0, "c2lnbmVk"),
        BlockStop(0),
        BlockStart(1, "text"),
        TextDelta(1, "Hello"),
        TextDelta(1, " there"),
        BlockStop(1),
        BlockStart(2, "tool_use", tool_use_id="toolu_01Whole", name="artifact_read"),
        InputDelta(2, '{"artifact_id": "é"}'),
        BlockStop(2),
    ]


async def test_a_server_that_sends_only_the_needful_is_understood() -> None:
    assert await played("sparse") == [
        MessageStart(),
        BlockStart(0, "thinking"),
        ThinkingDelta(0, "Hm."),
        BlockStop(0),
        BlockStart(1, "text"),
        TextDelta(1, "Hi."),
        BlockStop(1),
        MessageStop("end_turn", Usage()),
    ]


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("stop_sequence", "stop_sequence"),
        ("model_context_window_exceeded", "max_tokens"),
        ("pause_turn", "end_turn"),
        ("tired", "end_turn"),
    ],
)
async def test_every_stop_reason_is_one_of_ours(told: str, meant: str) -> None:
    with answering(streamed(recorded("text").replace(b'"end_turn"', f'"{told}"'.encode()))):
        events = await said(claude())

    assert events[-2:] == [StopReasonDelta(meant), MessageStop(meant, Usage(12, 15, 400, 30))]


@settings(max_examples=examples(40))
@given(st.sampled_from(["text", "tool_call", "unknown"]), st.data())
async def test_however_the_bytes_are_cut_the_events_are_the_same(name: str, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(recorded(name))), max_size=40))

    assert await played(name, cuts) == await played(name)


async def test_one_byte_at_a_time_is_the_same_too() -> None:
    assert await played("text", list(range(len(recorded("text"))))) == await played("text")


# ------------------------------------------------------------------ what is sent


async def test_the_request_is_streamed_with_the_tools_asked_for_and_our_key() -> None:
    tool = ToolSpec("artifact_update", "Writes.", {"type": "object"}, eager=True)
    with answering(streamed(recorded("text"))) as route:
        await said(claude(), ModelRequest("Be brief.", REQUEST.messages, (tool,)))

    sent = route.calls.last.request
    body = json.loads(sent.content)
    assert body["stream"] is True
    assert body["model"] == "claude-sonnet-5-5"
    assert body["max_tokens"] == 32_000
    assert body["tools"][0]["eager_input_streaming"] is True
    assert body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert KEY in str(sent.headers.raw)


async def test_earlier_thinking_that_the_provider_cannot_read_is_left_out_and_the_call_made_again() -> None:
    refused = refusal(400, "messages.1.content.0: Invalid `signature` in `thinking` block.")
    thought = ModelMessage("assistant", (Thinking("Hm.", "sig"), ModelText("Yes.")))
    with answering(refused, streamed(recorded("text"))) as route:
        events = await said(claude(), ModelRequest("", (*REQUEST.messages, thought, *REQUEST.messages)))

    assert isinstance(events[-1], MessageStop)
    first, second = (json.loads(call.request.content)["messages"][1]["content"] for call in route.calls)
    assert [each["type"] for each in first] == ["thinking", "text"]
    assert [each["type"] for each in second] == ["text"]


PICTURE = Attachment("image/png", "a.png", content=b"\x89PNG\r\n\x1a\n, but not really")
SHOWN = ModelRequest("", (ModelMessage("user", (ModelText("Look."), PICTURE)),))


def kinds(call: respx.models.Call) -> list[str]:
    return [each["type"] for message in json.loads(call.request.content)["messages"] for each in message["content"]]


async def test_an_attachment_that_the_provider_refuses_is_named_instead_and_the_call_made_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with answering(refusal(400, "Could not process image"), streamed(recorded("text"))) as route:
        events = await said(claude(), SHOWN)

    assert isinstance(events[-1], MessageStop)
    assert [kinds(call) for call in route.calls] == [["text", "image"], ["text", "text"]]
    assert "[Attached file: a.png (image/png)]" in route.calls.last.request.content.decode()
    logged = [record for record in caplog.records if record.name == "a2a_canvas.server.agent.models.claude"]
    assert [(record.levelname, record.getMessage()) for record in logged] == [
        (
            "WARNING",
            "Repeating the request to the provider without the attached images and documents: Could not process image",
        )
    ]


async def test_a_request_may_lose_its_thinking_and_then_its_attachments() -> None:
    thinking = refusal(400, "messages.0.content.0: Invalid `signature` in `thinking` block.")
    thought = ModelMessage("assistant", (Thinking("Hm.", "sig"), ModelText("Yes.")))
    request = ModelRequest("", (*SHOWN.messages, thought, *REQUEST.messages))
    with answering(thinking, refusal(400, "Could not process image"), streamed(recorded("text"))) as route:
        await said(claude(), request)

    assert ["thinking" in kinds(call) for call in route.calls] == [True, False, False]
    assert ["image" in kinds(call) for call in route.calls] == [True, True, False]


async def test_what_is_refused_without_attachments_too_is_asked_twice_at_most() -> None:
    with answering(*[refusal(400, "no")] * 2) as route, pytest.raises(ModelError) as caught:
        await said(claude(), SHOWN)

    assert route.call_count == 2
    assert str(caught.value) == "The model provider refused the request: no"


async def test_a_small_window_can_be_said() -> None:
    model = ClaudeModel(context_window=32_768, client=anthropic.AsyncAnthropic(api_key=KEY, base_url=BASE))
    with answering(streamed(recorded("text"))) as route:
        await said(model)

    assert json.loads(route.calls.last.request.content)["max_tokens"] == model.window == 16_384


# ---------------------------------------------------------------------- gateways

EAGER = ToolSpec("artifact_update", "Writes.", {"type": "object"}, eager=True)


@pytest.mark.parametrize(
    ("status", "words", "left_out"),
    [
        (400, "tools.0.custom.eager_input_streaming: Extra inputs are not permitted", "eager_input_streaming"),
        (400, 'Unknown name "eager_input_streaming"', "eager_input_streaming"),
        (422, "body.thinking: Extra inputs are not permitted", '"thinking": '),
        (400, "adaptive thinking is not supported on this model", '"thinking": '),
        (400, "thinking.adaptive.display: Extra inputs are not permitted", "display"),
        (400, "system.0.cache_control: Extra inputs are not permitted", "cache_control"),
    ],
)
async def test_a_field_that_a_gateway_does_not_know_is_left_out_from_then_on(status, words, left_out) -> None:
    model, request = claude(), ModelRequest("Be brief.", REQUEST.messages, (EAGER,))
    with answering(refusal(status, words), *[streamed(recorded("text")) for _ in range(2)]) as route:
        for _ in range(2):
            assert isinstance((await said(model, request))[-1], MessageStop)

    bodies = [json.dumps(json.loads(call.request.content)) for call in route.calls]
    assert [left_out in body for body in bodies] == [True, False, False]


async def test_a_gateway_may_know_none_of_them() -> None:
    fields = ("eager_input_streaming", "cache_control", "display", "thinking")
    api = MessagesApi(lambda _: Answer([says("Hi.")]), unknown=frozenset(fields))
    model, request = ClaudeModel(client=api.client()), ModelRequest("Be brief.", REQUEST.messages, (EAGER,))
    for _ in range(2):
        await said(model, request)

    assert len(api.refusals) <= len(fields)
    assert len(api.requests) == 2


@pytest.mark.parametrize(
    "words",
    [
        "messages.1: The final block in an assistant message cannot be `thinking`.",
        "messages.1.content.0: Invalid `data` in `redacted_thinking` block",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.",
        "messages.1.content.0: `thinking` blocks in the latest assistant message cannot be modified.",
    ],
)
async def test_any_refusal_that_names_thinking_is_answered_by_a_try_without_that_of_the_conversation(words) -> None:
    thought = ModelMessage("assistant", (Thinking("Hm.", "sig"), ModelText("Yes.")))
    request = ModelRequest("", (*REQUEST.messages, thought, *REQUEST.messages))
    with answering(refusal(400, words), streamed(recorded("text"))) as route:
        await said(claude(), request)

    assert ["thinking" in kinds(call) for call in route.calls] == [True, False]
    assert all("thinking" in json.loads(call.request.content) for call in route.calls)


# ----------------------------------------------------- failures before the headers


async def test_where_there_is_no_key_the_word_none_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", BASE)
    error = await failed(refusal(400, "none of the tools is known"), model=configured())

    assert str(error) == "The model provider refused the request: none of the tools is known"


@pytest.mark.parametrize("key", ["x", "ollama", "EMPTY", "sk-12345678"])
async def test_what_is_too_short_for_a_key_is_a_word_like_any_other(key: str) -> None:
    client = anthropic.AsyncAnthropic(api_key=key, base_url=BASE, max_retries=0)
    error = await failed(refusal(400, f"Extra words, {key} too"), model=ClaudeModel(client=client))

    assert str(error) == f"The model provider refused the request: Extra words, {key} too"


async def test_an_address_where_nobody_listens_is_named_without_its_password() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    with pytest.raises(ModelError) as caught:
        await said(claude(base_url=f"http://me:secret@127.0.0.1:{port}"))

    assert str(caught.value) == (
        f"The model provider at 127.0.0.1:{port} cannot be reached: check the network and ANTHROPIC_BASE_URL."
    )
    assert not caught.value.retryable


# --------------------------------------------------------- breaks after the headers


def error_event() -> httpx.Response:
    return streamed(recorded("error"))


async def test_an_error_event_says_what_the_provider_says() -> None:
    overloaded = await failed(error_event())
    other = await failed(streamed(recorded("error").replace(b"overloaded_error", b"api_error")))

    assert str(overloaded) == "The model provider is overloaded: try again later."
    assert str(other) == "The model provider broke off its answer: Overloaded"


async def test_nothing_is_read_after_message_stop() -> None:
    with answering(streamed(recorded("text"), then=httpx2.ReadError("late"))):
        assert isinstance((await said(claude()))[-1], MessageStop)


# ------------------------------------------------------------------- environment


def test_it_is_a_language_model_that_sends_thinking_as_deltas() -> None:
    model: LLM = claude(model="claude-opus-5-5")

    assert (model.name, model.thinking) == ("claude-opus-5-5", "delta")


@pytest.mark.parametrize(
    ("environ", "there"),
    [
        ({}, False),
        ({"ANTHROPIC_API_KEY": "", "ANTHROPIC_BASE_URL": " "}, False),
        ({"ANTHROPIC_API_KEY": "sk"}, True),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:11434"}, True),
    ],
)
def test_it_is_available_when_the_environment_names_a_key_or_a_server(environ: dict[str, str], there: bool) -> None:
    assert is_configured(environ) is there


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


async def sent_key(url: str) -> str:
    with respx.mock(using="httpcore2") as router:
        route = router.post(f"{url}/v1/messages").mock(side_effect=[streamed(recorded("text"))])
        await said(configured())
    return str(route.calls.last.request.headers.raw)


async def test_a_server_that_needs_no_key_is_asked_without_one(environ: pytest.MonkeyPatch) -> None:
    environ.setenv("ANTHROPIC_BASE_URL", BASE)

    assert "sk-" not in await sent_key(BASE)


async def test_an_empty_address_is_the_default_one_and_blanks_around_a_key_are_not_part_of_it(
    environ: pytest.MonkeyPatch,
) -> None:
    environ.setenv("ANTHROPIC_BASE_URL", "")
    environ.setenv("ANTHROPIC_API_KEY", f" {KEY}\n")

    assert KEY in await sent_key("https://api.anthropic.com")


@pytest.mark.parametrize("address", ["127.0.0.1:11434", "http://", "ftp://x"])
def test_an_address_that_is_none_is_refused_at_once(environ: pytest.MonkeyPatch, address: str) -> None:
    environ.setenv("ANTHROPIC_BASE_URL", address)

    with pytest.raises(ValueError, match="ANTHROPIC_BASE_URL is not an address"):
        ClaudeModel()


def test_the_default_model_is_the_documented_one(environ: pytest.MonkeyPatch) -> None:
    assert (ClaudeModel().name, llm.DEFAULT_MODEL) == ("claude-sonnet-5-5", "claude-sonnet-5-5")
