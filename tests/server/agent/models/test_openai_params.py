"""A request as a chat completion has it, and what is sent to servers that demand something else."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

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
from a2a_canvas.server.agent.models.openai_params import Deviation, deviation, to_params

PNG = b"\x89PNG\r\n\x1a\n..."
PDF = b"%PDF-1.7 ..."


def user(*content: ModelContent) -> ModelMessage:
    return ModelMessage("user", content)


def assistant(*content: ModelContent) -> ModelMessage:
    return ModelMessage("assistant", content)


def sent(*messages: ModelMessage, system: str = "", deviations: tuple[Deviation, ...] = ()) -> list[dict[str, Any]]:
    params = to_params(ModelRequest(system, messages), "m", 100, deviations=deviations)
    said: list[dict[str, Any]] = params["messages"]
    return said


HI = user(ModelText("Hi."))
LIST = ToolUse("call_1", "list", {})


def test_a_request_has_its_limit_and_asks_for_the_tokens() -> None:
    spec = ToolSpec("list", "Lists.", {"type": "object"}, eager=True)
    assert to_params(ModelRequest("Be brief.", (HI,), (spec,)), "m", 100) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "list", "description": "Lists.", "parameters": {"type": "object"}},
            }
        ],
        "max_completion_tokens": 100,
        "stream_options": {"include_usage": True},
    }


def test_calls_are_in_the_answer_and_each_result_is_a_message_behind_it() -> None:
    calls = assistant(Thinking("Hm."), ModelText("Let me see."), LIST, ToolUse("call_2", "read", {"größe": "½"}))
    results = user(
        ToolResult("call_1", "none"), ToolResult("call_2", "no such file", is_error=True), ModelText("Go on.")
    )
    assert sent(HI, calls, results)[1:] == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "list", "arguments": "{}"}},
                {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": '{"größe": "½"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "none"},
        {"role": "tool", "tool_call_id": "call_2", "content": "Error: no such file"},
        {"role": "user", "content": "Go on."},
    ]


def test_an_answer_of_calls_alone_has_no_text() -> None:
    assert sent(HI, assistant(LIST), user(ToolResult("call_1", "none")))[1]["content"] is None


def test_an_answer_without_content_is_left_out_and_the_messages_around_it_are_one() -> None:
    said = sent(HI, assistant(Thinking("Hm."), ModelText(" \n")), user(ModelText("Well?"), ModelText(" ")))
    assert said == [{"role": "user", "content": "Hi.\n\nWell?"}]


def test_an_empty_message_says_that_it_is() -> None:
    assert sent(user()) == [{"role": "user", "content": "(The message was empty.)"}]
    assert sent(user(), assistant(), HI) == [{"role": "user", "content": "Hi."}]


def test_a_longer_conversation_only_appends() -> None:
    turn = (assistant(LIST), user(ToolResult("call_1", "none")), assistant(ModelText("Done.")))
    short, long = sent(HI, *turn, HI), sent(HI, *turn, HI, *turn, HI)
    assert long[: len(short)] == short


@pytest.mark.parametrize(
    ("use_id", "name"), [("", ""), ("x" * 41, "n" * 65), ("a b", "a b"), ("日本", "web.search"), ("call_1", "list")]
)
def test_ids_are_unique_and_ids_and_names_are_of_characters_that_servers_take(use_id: str, name: str) -> None:
    twice = (ToolUse(use_id, name, {}), ToolUse(use_id, name, {}))
    results = user(ToolResult(use_id, "one"), ToolResult(use_id, "two"))
    answer, *told = sent(HI, assistant(*twice), results)[1:]
    ids = [call["id"] for call in answer["tool_calls"]]
    assert len(set(ids)) == 2
    assert all(0 < len(each) <= 40 and each.isascii() and " " not in each for each in ids)
    assert all(0 < len(call["function"]["name"]) <= 64 for call in answer["tool_calls"])
    assert [(each["tool_call_id"], each["content"]) for each in told] == [(ids[0], "one"), (ids[1], "two")]


def test_what_json_does_not_have_is_not_sent() -> None:
    answer = sent(HI, assistant(ToolUse("a", "t", {"n": [float("nan"), "half \ud83d"]})), HI)[1]
    assert json.loads(answer["tool_calls"][0]["function"]["arguments"]) == {"n": [None, "half \ufffd"]}
    assert sent(user(ModelText("half \ud83d")), system="\ud83d")[0]["content"] == "\ufffd"


# ------------------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("file", "part"),
    [
        (
            Attachment("image/png", "a.png", PNG),
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"}},
        ),
        (
            Attachment("image/png", url="https://example.com/a.png"),
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        ),
        (
            Attachment("application/pdf", "a.pdf", PDF),
            {
                "type": "file",
                "file": {
                    "filename": "a.pdf",
                    "file_data": f"data:application/pdf;base64,{base64.b64encode(PDF).decode()}",
                },
            },
        ),
    ],
)
def test_images_and_pdf_files_are_parts_beside_the_text(file: Attachment, part: dict[str, Any]) -> None:
    text = {"type": "text", "text": "Look:"}
    assert sent(user(ModelText("Look:"), file)) == [{"role": "user", "content": [text, part]}]
    assert sent(HI, assistant(), user(file))[0]["content"] == [{"type": "text", "text": "Hi."}, part]


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (Attachment("", "notes.md", b"# Tides"), "File notes.md:\n\n# Tides"),
        (Attachment("audio/wav", "a.wav", b"RIFF"), "[Attached file: a.wav (audio/wav)]"),
        (Attachment("image/png", "a.png", b"no image"), "[Attached file: a.png (image/png)]"),
        (
            Attachment("application/pdf", "a.pdf", url="https://example.com/a.pdf"),
            "[Attached file: a.pdf (application/pdf) at https://example.com/a.pdf]",
        ),
    ],
)
def test_any_other_file_is_told_in_words(file: Attachment, words: str) -> None:
    assert sent(user(file)) == [{"role": "user", "content": words}]


# ------------------------------------------------------------------------- deviations


def params(*deviations: Deviation, **options: Any) -> dict[str, Any]:
    return to_params(ModelRequest("", (HI,)), "m", 100, deviations=deviations, **options)


def test_a_model_that_shall_not_think_is_told_so() -> None:
    assert "reasoning_effort" not in params()
    assert params(thinks=False)["reasoning_effort"] == "none"
    assert "reasoning_effort" not in params("without reasoning_effort", thinks=False)


@pytest.mark.parametrize(
    ("deviations", "name"),
    [
        ((), "max_completion_tokens"),
        (("max_tokens",), "max_tokens"),
        (("max_tokens", "max_completion_tokens"), "max_completion_tokens"),
        (("max_tokens", "without a limit of tokens"), None),
    ],
)
def test_the_limit_has_the_name_that_the_server_knows(deviations: tuple[Deviation, ...], name: str | None) -> None:
    assert {key for key in params(*deviations) if "max" in key} == ({name} if name else set())


def test_a_server_that_wants_its_thinking_back_gets_it_even_if_there_was_none() -> None:
    conversation = (
        HI,
        assistant(Thinking("Hm."), LIST),
        user(ToolResult("call_1", "none")),
        assistant(ModelText("No.")),
        HI,
    )
    assert all("reasoning_content" not in each for each in sent(*conversation))
    answers = [
        each for each in sent(*conversation, deviations=("with reasoning_content",)) if each["role"] == "assistant"
    ]
    assert [each["reasoning_content"] for each in answers] == ["Hm.", ""]


def test_a_server_may_want_an_answer_between_results_and_the_user() -> None:
    conversation = (HI, assistant(LIST), user(ToolResult("call_1", "none"), ModelText("Go on.")))
    assert [each["role"] for each in sent(*conversation)] == ["user", "assistant", "tool", "user"]
    said = sent(*conversation, deviations=("with an answer after results",))
    assert [each["role"] for each in said] == ["user", "assistant", "tool", "assistant", "user"]


def test_a_server_may_want_ids_of_nine_letters_and_digits() -> None:
    calls = assistant(LIST, ToolUse("AbCdEfGh1", "list", {}))
    results = user(ToolResult("call_1", "one"), ToolResult("AbCdEfGh1", "two"))
    said = sent(HI, calls, results, deviations=("with ids of nine characters",))
    assert [call["id"] for call in said[1]["tool_calls"]] == ["c00000000", "AbCdEfGh1"]
    assert [each["tool_call_id"] for each in said[2:]] == ["c00000000", "AbCdEfGh1"]


@pytest.mark.parametrize(
    ("message", "demanded"),
    [
        ("body.stream_options: Extra inputs are not permitted", ["without stream_options"]),
        ("Unsupported value: 'reasoning_effort' does not support 'none'", ["without reasoning_effort"]),
        (
            "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
            ["max_completion_tokens"],
        ),
        (
            "body.max_completion_tokens: Extra inputs are not permitted",
            ["max_tokens", "without a limit of tokens"],
        ),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", ["with reasoning_content"]),
        ("Unexpected role 'user' after role 'tool'", ["with an answer after results"]),
        (
            "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            ["with ids of nine characters"],
        ),
        ("Invalid request", []),
    ],
)
def test_what_a_server_demands_is_in_its_words_and_is_done_once(message: str, demanded: list[Deviation]) -> None:
    done: list[Deviation] = []
    while each := deviation(message, done):
        done.append(each)
    assert done == demanded
