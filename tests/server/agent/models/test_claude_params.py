"""What the Messages API is sent."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.model import (
    Attachment,
    ModelContent,
    ModelMessage,
    ModelRequest,
    ModelText,
    Thinking,
    ToolResult,
    ToolSpec,
    ToolUse,
)
from a2a_canvas.server.agent.models.claude_params import to_params, without_thinking

CACHED = {"type": "ephemeral"}
EMPTY = {"type": "text", "text": "(The message was empty.)"}


def params(*messages: ModelMessage, system: str = "", tools: tuple[ToolSpec, ...] = ()) -> dict:
    return to_params(ModelRequest(system, messages, tools), "claude-sonnet-5-5", 100)


def user(*content: ModelContent) -> ModelMessage:
    return ModelMessage("user", content)


def assistant(*content: ModelContent) -> ModelMessage:
    return ModelMessage("assistant", content)


def block(content: ModelContent) -> dict | None:
    """What one piece of content becomes when it does not stand at the conversation's end."""
    messages = params(assistant(ModelText("yes")), user(content), assistant(ModelText("no")), user(ModelText("end")))[
        "messages"
    ]
    return None if messages[1]["content"] == [EMPTY] else messages[1]["content"][0]


def test_a_request_without_system_and_tools_has_neither() -> None:
    assert params(user(ModelText("hi"))) == {
        "model": "claude-sonnet-5-5",
        "max_tokens": 100,
        "thinking": {"type": "adaptive", "display": "summarized"},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": CACHED}]}],
    }


def test_the_system_prompt_is_a_cached_text_block() -> None:
    assert params(user(ModelText("hi")), system="Be brief.")["system"] == [
        {"type": "text", "text": "Be brief.", "cache_control": CACHED}
    ]


def test_a_blank_system_prompt_is_left_out() -> None:
    assert "system" not in params(user(ModelText("hi")), system=" \n")


def test_eager_tools_say_so_and_the_last_tool_is_cached() -> None:
    schema = {"type": "object", "properties": {}}
    tools = (ToolSpec("write", "Writes.", schema, eager=True), ToolSpec("read", "Reads.", schema))

    assert params(user(ModelText("hi")), tools=tools)["tools"] == [
        {"name": "write", "description": "Writes.", "input_schema": schema, "eager_input_streaming": True},
        {"name": "read", "description": "Reads.", "input_schema": schema, "cache_control": CACHED},
    ]


def test_a_round_with_thinking_and_calls_goes_back_as_it_came() -> None:
    sent = params(
        user(ModelText("Write.")),
        assistant(
            Thinking("Hm.", signature="sig"),
            Thinking("", redacted="opaque"),
            ModelText("Now."),
            ToolUse("toolu_1", "write", {"a": [1]}),
            ToolUse("toolu_2", "read", {}),
        ),
        user(ToolResult("toolu_1", "ok"), ToolResult("toolu_2", "no such", is_error=True)),
    )["messages"]

    assert sent[1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "text", "text": "Now."},
            {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {"a": [1]}},
            {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}},
        ],
    }
    assert sent[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok", "is_error": False},
        {
            "type": "tool_result",
            "tool_use_id": "toolu_2",
            "content": "no such",
            "is_error": True,
            "cache_control": CACHED,
        },
    ]


def test_tool_results_come_first_in_a_user_message_and_nothing_else_changes_places() -> None:
    sent = params(user(ModelText("one"), ToolResult("a", "1"), ModelText("two"), ToolResult("b", "2")))["messages"][0][
        "content"
    ]

    assert [each.get("text") or each["tool_use_id"] for each in sent] == ["a", "b", "one", "two"]


def test_an_error_result_never_is_empty() -> None:
    result = block(ToolResult("a", "", is_error=True))

    assert result is not None
    assert result["content"] == "The tool failed."


def blocks(*content: ModelContent) -> list[str]:
    """What of an answer of the model is sent, by the types of its blocks; nothing if the answer is left out."""
    messages = params(user(ModelText("a")), assistant(*content), user(ModelText("b")))["messages"]
    return [each["type"] for message in messages if message["role"] == "assistant" for each in message["content"]]


SEALED, REDACTED, CALL = Thinking("Hm.", signature="sig"), Thinking("", redacted="x"), ToolUse("a", "t", {})


def test_thinking_whose_text_was_omitted_goes_back_with_its_signature() -> None:
    sent = params(assistant(Thinking("", signature="sig"), ModelText("a")))["messages"][0]["content"]

    assert sent[0] == {"type": "thinking", "thinking": "", "signature": "sig"}


@pytest.mark.parametrize("content", [ModelText(""), ModelText(" \n\t"), Thinking("unsigned"), SEALED, REDACTED])
def test_an_answer_with_nothing_left_in_it_is_left_out_and_what_stands_around_it_is_one_message(content) -> None:
    sent = params(user(ModelText("a")), assistant(content), user(ModelText("b")))["messages"]

    assert [each["role"] for each in sent] == ["user"]
    assert [each["text"] for each in sent[0]["content"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        ((SEALED, ModelText("a"), SEALED, REDACTED), ["thinking", "text"]),
        ((SEALED, CALL, SEALED), ["thinking", "tool_use"]),
        ((ModelText("a"), REDACTED, ModelText(" ")), ["text"]),
        ((SEALED, ModelText("a")), ["thinking", "text"]),
    ],
)
def test_thinking_that_nothing_follows_is_left_out(answer: tuple[ModelContent, ...], sent: list[str]) -> None:
    assert blocks(*answer) == sent


def test_where_one_block_of_thinking_cannot_go_back_none_of_that_answer_does() -> None:
    assert blocks(SEALED, Thinking("unsigned"), ModelText("a"), CALL) == ["text", "tool_use"]


@pytest.mark.parametrize("content", [ModelText(""), ModelText(" \n\t")])
def test_a_blank_message_of_the_user_is_said_to_be_one(content: ModelContent) -> None:
    assert params(user(content))["messages"] == [
        {"role": "user", "content": [{**EMPTY, "cache_control": CACHED}]},
    ]


# ------------------------------------------------------------------ odd ids, names and inputs


def sent_calls(*answers: tuple[str, ...]) -> list[list[tuple[str, str]]]:
    """The ids that calls with these ids and their results are sent with, answer by answer."""
    said = []
    for ids in answers:
        said += [assistant(*(ToolUse(i, "t", {}) for i in ids)), user(*(ToolResult(i, "ok") for i in ids))]
    sent = params(user(ModelText("a")), *said)["messages"][1:]
    made = [[each["id"] for each in message["content"]] for message in sent[::2]]
    answered = [[each["tool_use_id"] for each in message["content"]] for message in sent[1::2]]
    return [list(zip(one, other, strict=True)) for one, other in zip(made, answered, strict=True)]


@pytest.mark.parametrize(
    ("ids", "sent"),
    [
        ((("toolu_1", "toolu-2"),), [["toolu_1", "toolu-2"]]),
        ((("functions.x:0", "a b"),), [["functions_x_0", "a_b"]]),
        ((("", "日本"),), [["call", "__"]]),
        ((("x" * 80,),), [["x" * 64]]),
        ((("a.b", "a_b"),), [["a_b", "a_b_2"]]),
        ((("call_0", "call_1"), ("call_0",), ("call_0",)), [["call_0", "call_1"], ["call_0_2"], ["call_0_3"]]),
    ],
)
def test_every_call_has_an_id_that_the_api_takes_and_none_has_anothers(ids, sent) -> None:
    assert sent_calls(*ids) == [[(each, each) for each in answer] for answer in sent]


@pytest.mark.parametrize(
    ("name", "sent"),
    [("artifact_list", "artifact_list"), ("artifact list", "artifact_list"), ("", "unnamed"), ("n" * 200, "n" * 128)],
)
def test_a_name_that_the_api_does_not_take_is_said_otherwise(name: str, sent: str) -> None:
    assert params(assistant(ToolUse("a", name, {})))["messages"][0]["content"][0]["name"] == sent


def test_an_input_with_numbers_that_json_does_not_have_is_sent_without_them() -> None:
    given = {"a": [1.5, float("nan"), {"b": float("-inf")}]}

    assert params(assistant(ToolUse("a", "t", given)))["messages"][0]["content"][0]["input"] == {
        "a": [1.5, None, {"b": None}]
    }


@pytest.mark.parametrize(
    "content",
    [
        ModelText("a\ud800"),
        ToolResult("a", "\udfff"),
        Attachment("a/b", "\ud800"),
        Attachment("text/x", "\ud800", b"x"),
    ],
)
def test_half_characters_are_sent_as_the_mark_that_stands_for_them(content: ModelContent) -> None:
    assert "\ufffd" in json.dumps(block(content), ensure_ascii=False)
    json.dumps(block(content), ensure_ascii=False).encode()


PNG, JPEG, GIF, WEBP = b"\x89PNG\r\n\x1a\n...", b"\xff\xd8\xff\xe0...", b"GIF89a...", b"RIFF\n\x00\x00\x00WEBPVP8 "


def image(content: bytes, media_type: str) -> dict:
    data = base64.b64encode(content).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


@pytest.mark.parametrize(
    ("media_type", "content", "sent_as"),
    [
        ("image/png", PNG, "image/png"),
        ("image/jpg", JPEG, "image/jpeg"),
        ("image/gif", GIF, "image/gif"),
        ("IMAGE/WebP; q=1", WEBP, "image/webp"),
    ],
)
def test_an_image_goes_as_an_image(media_type: str, content: bytes, sent_as: str) -> None:
    assert block(Attachment(media_type, "a", content=content)) == image(content, sent_as)


def test_an_image_goes_as_what_its_bytes_are() -> None:
    assert block(Attachment("image/png", "a", content=JPEG)) == image(JPEG, "image/jpeg")


LARGEST = 5 * 1024 * 1024 // 4 * 3
"""Bytes whose base64 has 5 MiB, which is what the API measures."""


def test_an_image_that_is_too_large_for_the_api_is_named() -> None:
    fits, exceeds = (PNG.ljust(size, b".") for size in (LARGEST, LARGEST + 1))

    assert block(Attachment("image/png", "a.png", content=fits)) == image(fits, "image/png")
    assert block(Attachment("image/png", "a.png", content=exceeds)) == {
        "type": "text",
        "text": "[Attached file: a.png (image/png)]",
    }


def test_an_image_may_stand_at_an_address() -> None:
    assert block(Attachment("image/gif", url="https://example.com/a.gif")) == {
        "type": "image",
        "source": {"type": "url", "url": "https://example.com/a.gif"},
    }


def test_a_pdf_goes_as_a_document_with_its_name() -> None:
    data = base64.b64encode(b"%PDF-1.7").decode()

    assert block(Attachment("application/pdf", "a.pdf", content=b"%PDF-1.7")) == {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": data},
        "title": "a.pdf",
    }


def test_a_pdf_without_a_name_has_no_title() -> None:
    assert block(Attachment("application/pdf", url="https://example.com/a")) == {
        "type": "document",
        "source": {"type": "url", "url": "https://example.com/a"},
    }


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        ("text/markdown", "Grüße".encode()),
        ("text/plain; charset=latin-1", "Grüße".encode("latin-1")),
        ('text/plain; charset="UTF-8"; format=flowed', "Grüße".encode()),
        ("text/plain;charset=no-such", "Grüße".encode()),
    ],
)
def test_text_goes_as_text_under_its_name(media_type: str, content: bytes) -> None:
    assert block(Attachment(media_type, "a.md", content=content)) == {"type": "text", "text": "File a.md:\n\nGrüße"}


@pytest.mark.parametrize(
    "file",
    [
        Attachment("application/octet-stream", "notes.md", content=b"# a"),
        Attachment("", "NOTES.MD", content=b"# a"),
        Attachment("application/octet-stream", "main.rs", content=b"# a"),
        Attachment("application/json", "a", content=b"# a"),
        Attachment("application/vnd.api+json; charset=utf-8", "a", content=b"# a"),
        Attachment("application/x-yaml", "a", content=b"\xef\xbb\xbf# a"),
    ],
)
def test_what_is_text_by_its_type_or_its_name_goes_as_text(file: Attachment) -> None:
    assert block(file) == {"type": "text", "text": f"File {file.name}:\n\n# a"}


@pytest.mark.parametrize(
    ("charset", "content", "text"),
    [
        ("utf-7", b"+2AA-", "\ufffd"),
        ("unicode_escape", rb"\ud800", r"\ud800"),
        ("idna", b"xn--a", "xn--a"),
        ("punycode", b"a-b", "a-b"),
        ("a\0b", b"a", "a"),
        ("hex", b"61", "61"),
        ("utf-16", "Grüße".encode("utf-16"), "Grüße"),
    ],
)
def test_no_charset_fails_the_call(charset: str, content: bytes, text: str) -> None:
    sent = block(Attachment(f"text/plain; charset={charset}", "a", content=content))

    assert sent == {"type": "text", "text": f"File a:\n\n{text}"}


def test_bytes_that_are_not_the_text_they_claim_to_be_do_not_fail_the_call() -> None:
    assert block(Attachment("text/plain", "a", content=b"a\xff")) == {"type": "text", "text": "File a:\n\na\ufffd"}


@pytest.mark.parametrize(
    ("file", "line"),
    [
        (Attachment("application/zip", "a.zip", content=b"PK"), "[Attached file: a.zip (application/zip)]"),
        (Attachment("image/svg+xml", content=b"<svg/>"), "[Attached file: unnamed (image/svg+xml)]"),
        (Attachment("image/png", "a.png", content=b"<svg/>"), "[Attached file: a.png (image/png)]"),
        (Attachment("image/webp", "a", content=b"RIFF\n\x00\x00\x00WAVEfmt "), "[Attached file: a (image/webp)]"),
        (Attachment("application/octet-stream", "a", content=b"a"), "[Attached file: a (application/octet-stream)]"),
        (
            Attachment("application/octet-stream", "a.md", content=b"\xff"),
            "[Attached file: a.md (application/octet-stream)]",
        ),
        (Attachment("", "a.txt", content=b"\xff\xfea\0"), "[Attached file: a.txt ()]"),
        (Attachment("application/pdf", "a.pdf", content=b"<html>"), "[Attached file: a.pdf (application/pdf)]"),
        (Attachment("text/csv", "a.csv", content=b""), "[Attached file: a.csv (text/csv)]"),
        (
            Attachment("image/png", "a.png", url="http://example.com/a.png"),
            "[Attached file: a.png (image/png) at http://example.com/a.png]",
        ),
    ],
)
def test_any_other_file_is_named(file: Attachment, line: str) -> None:
    assert block(file) == {"type": "text", "text": line}


@pytest.mark.parametrize(
    "model",
    [
        "claude-sonnet-5-5",
        "claude-opus-5-5",
        "claude-haiku-5-5",
        "claude-opus-4-6",
        "claude-fable-5-2",
        "claude-opus-4-6@20260205",
        "us.anthropic.claude-opus-4-6-v1:0",
        "anthropic/claude-sonnet-5.5",
        "bedrock/eu.anthropic.claude-sonnet-5-5-20260701-v1:0",
        "arn:aws:bedrock:us-east-1:123:inference-profile/global.anthropic.claude-opus-5-5",
    ],
)
def test_models_that_think_adaptively_are_asked_to_and_to_show_it(model: str) -> None:
    assert to_params(ModelRequest("", ()), model, 1)["thinking"] == {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    "model",
    [
        "claude-haiku-4-5-20251001",
        "claude-sonnet-4-5",
        "claude-opus-4-1-20250805",
        "claude-3-haiku-20240307",
        "claude-sonnet-4-5@20250929",
        "claude-3-5-sonnet-v2@20241022",
        "claude-sonnet-4.5",
        "anthropic/claude-3.7-sonnet:thinking",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "anthropic.claude-3-haiku-20240307-v1:0",
        "global.anthropic.claude-haiku-4-5-20251001-v1:0",
        "vertex_ai/claude-opus-4@20250514",
        "claude-sonnet-4-latest",
        "qwen3:8b",
        "not-claude-5",
    ],
)
def test_older_and_other_models_are_not_asked_what_they_would_refuse(model: str) -> None:
    assert "thinking" not in to_params(ModelRequest("", ()), model, 1)


def test_thinking_can_be_chosen() -> None:
    chosen = {mode: to_params(ModelRequest("", ()), "qwen3:8b", 1, mode)["thinking"] for mode in MODES}

    assert chosen == {
        "adaptive": {"type": "adaptive", "display": "summarized"},
        "between_tools": {"type": "between_tools"},
        "disabled": {"type": "disabled"},
    }


MODES = ("adaptive", "between_tools", "disabled")

OPTIONAL = ("eager_input_streaming", "cache_control", "display", "thinking")


@pytest.mark.parametrize("name", OPTIONAL)
def test_an_optional_field_can_be_left_out_and_nothing_else_goes(name: str) -> None:
    tool = ToolSpec("write", "Writes.", {"type": "object", "properties": {name: {"thinking": 1}}}, eager=True)
    request = ModelRequest(
        "s", (user(ModelText(name)), assistant(ToolUse("a", "write", {name: 1})), user(ModelText("b"))), (tool,)
    )
    whole, less = (to_params(request, "claude-sonnet-5-5", 1, without=without) for without in ((), (name,)))

    assert whole != less
    assert without_field(whole, name) == less


def without_field(value, name: str):
    """The parameters without a field, wherever it stands, but for what the model and the tools have said."""
    match value:
        case dict():
            kept = {key: inner for key, inner in value.items() if key != name}
            return {
                key: inner if key in ("input", "input_schema") else without_field(inner, name)
                for key, inner in kept.items()
            }
        case list():
            return [without_field(inner, name) for inner in value]
        case _:
            return value


texts = st.builds(ModelText, st.text(max_size=5))
turns = st.one_of(
    st.tuples(texts, texts).map(lambda both: (user(both[0]), assistant(both[1]))),
    st.builds(
        lambda text: (assistant(Thinking("Hm.", "sig"), ToolUse("a", "t", {})), user(ToolResult("a", text))), st.text()
    ),
)
conversations = st.lists(turns, max_size=6).map(lambda pairs: tuple(each for pair in pairs for each in pair))


def bare(sent: dict) -> list[str]:
    """The blocks as the model reads them: which of them are marked for the cache is not part of that."""
    blocks = [each for message in sent["messages"] for each in message["content"]]
    return [json.dumps({k: v for k, v in each.items() if k != "cache_control"}) for each in blocks]


@given(conversations, conversations)
def test_a_longer_conversation_only_adds_to_what_was_sent(before: tuple, after: tuple) -> None:
    shorter, longer = bare(params(*before)), bare(params(*before, *after))

    assert longer[: len(shorter)] == shorter


@given(conversations)
def test_one_block_at_most_is_marked_and_it_is_the_last(messages: tuple) -> None:
    blocks = [each for message in params(*messages)["messages"] for each in message["content"]]

    assert [i for i, each in enumerate(blocks) if "cache_control" in each] == [len(blocks) - 1][: len(blocks)]


def test_thinking_can_be_taken_out_of_a_request() -> None:
    request = ModelRequest("s", (assistant(Thinking("Hm.", "sig"), ModelText("a")), user(ModelText("b"))))

    assert without_thinking(request) == ModelRequest("s", (assistant(ModelText("a")), user(ModelText("b"))))
