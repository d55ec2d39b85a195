"""What the Messages API is sent."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.agent.llm_params import to_params, without_media, without_thinking
from server.agent.model import (
    Attachment,
    Content,
    ModelMessage,
    ModelRequest,
    Text,
    Thinking,
    ToolResult,
    ToolSpec,
    ToolUse,
)

CACHED = {"type": "ephemeral"}


def params(*messages: ModelMessage, system: str = "", tools: tuple[ToolSpec, ...] = ()) -> dict:
    return to_params(ModelRequest(system, messages, tools), "claude-sonnet-5-5", 100)


def user(*content: Content) -> ModelMessage:
    return ModelMessage("user", content)


def assistant(*content: Content) -> ModelMessage:
    return ModelMessage("assistant", content)


def block(content: Content) -> dict | None:
    """What one piece of content becomes when it does not stand at the conversation's end."""
    messages = params(user(content), user(Text("end")))["messages"]
    return messages[0]["content"][0] if len(messages) == 2 else None


def test_a_request_without_system_and_tools_has_neither() -> None:
    assert params(user(Text("hi"))) == {
        "model": "claude-sonnet-5-5",
        "max_tokens": 100,
        "thinking": {"type": "adaptive", "display": "summarized"},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": CACHED}]}],
    }


def test_the_system_prompt_is_a_cached_text_block() -> None:
    assert params(user(Text("hi")), system="Be brief.")["system"] == [
        {"type": "text", "text": "Be brief.", "cache_control": CACHED}
    ]


def test_a_blank_system_prompt_is_left_out() -> None:
    assert "system" not in params(user(Text("hi")), system=" \n")


def test_eager_tools_say_so_and_the_last_tool_is_cached() -> None:
    schema = {"type": "object", "properties": {}}
    tools = (ToolSpec("write", "Writes.", schema, eager=True), ToolSpec("read", "Reads.", schema))

    assert params(user(Text("hi")), tools=tools)["tools"] == [
        {"name": "write", "description": "Writes.", "input_schema": schema, "eager_input_streaming": True},
        {"name": "read", "description": "Reads.", "input_schema": schema, "cache_control": CACHED},
    ]


def test_a_round_with_thinking_and_calls_goes_back_as_it_came() -> None:
    sent = params(
        user(Text("Write.")),
        assistant(
            Thinking("Hm.", signature="sig"),
            Thinking("", redacted="opaque"),
            Text("Now."),
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
    sent = params(user(Text("one"), ToolResult("a", "1"), Text("two"), ToolResult("b", "2")))["messages"][0]["content"]

    assert [each.get("text") or each["tool_use_id"] for each in sent] == ["a", "b", "one", "two"]


def test_an_error_result_never_is_empty() -> None:
    result = block(ToolResult("a", "", is_error=True))

    assert result is not None
    assert result["content"] == "The tool failed."


def test_thinking_whose_text_was_omitted_goes_back_with_its_signature() -> None:
    assert block(Thinking("", signature="sig")) == {"type": "thinking", "thinking": "", "signature": "sig"}


@pytest.mark.parametrize("content", [Text(""), Text(" \n\t"), Thinking("unsigned")])
def test_what_the_api_refuses_is_left_out_and_so_is_a_message_without_anything_else(content: Content) -> None:
    assert block(content) is None


def test_the_mark_at_the_conversations_end_never_is_on_thinking() -> None:
    sent = params(assistant(Text("said"), Thinking("Hm.", signature="sig"), Thinking("", redacted="x")))["messages"]

    assert [("cache_control" in each) for each in sent[0]["content"]] == [True, False, False]


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


def test_bytes_that_are_not_the_text_they_claim_to_be_do_not_fail_the_call() -> None:
    assert block(Attachment("text/plain", "a", content=b"a\xff")) == {"type": "text", "text": "File a:\n\na\ufffd"}


@pytest.mark.parametrize(
    ("file", "line"),
    [
        (Attachment("application/zip", "a.zip", content=b"PK"), "[Attached file: a.zip (application/zip)]"),
        (Attachment("image/svg+xml", content=b"<svg/>"), "[Attached file: unnamed (image/svg+xml)]"),
        (Attachment("image/png", "a.png", content=b"<svg/>"), "[Attached file: a.png (image/png)]"),
        (Attachment("image/webp", "a", content=b"RIFF\n\x00\x00\x00WAVEfmt "), "[Attached file: a (image/webp)]"),
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
    "model", ["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-opus-4-6", "claude-fable-5-2"]
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
        "qwen3:8b",
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

texts = st.builds(Text, st.text(max_size=5))
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
    request = ModelRequest("s", (assistant(Thinking("Hm.", "sig"), Text("a")), user(Text("b"))))

    assert without_thinking(request) == ModelRequest("s", (assistant(Text("a")), user(Text("b"))))


def test_images_and_documents_can_be_taken_out_of_a_request_and_are_named_instead() -> None:
    text = Attachment("text/plain", "a.txt", content=b"a")
    shown = Attachment("image/png", "a.png", content=PNG)
    linked = Attachment("application/pdf", "a.pdf", url="https://example.com/a")
    request = ModelRequest("s", (user(Text("See."), shown, text), assistant(Text("Yes.")), user(linked)))

    assert without_media(request) == ModelRequest(
        "s",
        (
            user(Text("See."), Text("[Attached file: a.png (image/png)]"), text),
            assistant(Text("Yes.")),
            user(Text("[Attached file: a.pdf (application/pdf) at https://example.com/a]")),
        ),
    )
