"""The stand-in for the chat completions API does refuse."""

from __future__ import annotations

import pytest

from tests.server.agent.models.strict_chat_completions import check
from tests.server.agent.models.strict_messages_api import Json, Refused

HELLO: Json = {"role": "user", "content": "Hi."}
SAID: Json = {"role": "assistant", "content": "Hello."}


def call(use_id: str = "a", name: str = "t", arguments: str = "{}") -> Json:
    return {"id": use_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: Json) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": [*calls]}


def result(use_id: str = "a") -> Json:
    return {"role": "tool", "tool_call_id": use_id, "content": "ok"}


def test_it_takes_a_conversation() -> None:
    check({"model": "m", "messages": [HELLO, calling(call("a"), call("b")), result("b"), result("a"), HELLO]})


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "first message"),
        ([SAID], "first message"),
        ([HELLO, SAID], "last role"),
        ([HELLO, HELLO], "role 'user' after role 'user'"),
        ([HELLO, SAID, SAID, HELLO], "role 'assistant' after role 'assistant'"),
        ([HELLO, {"role": "system", "content": "a"}], "at the beginning"),
        ([{"role": "user", "content": " "}], "blank"),
        ([{"role": "user", "content": []}], "empty"),
        ([{"role": "user", "content": [{"type": "video", "video": "a"}]}], "part type"),
        ([{**HELLO, "name": "b"}], "user.name: Extra inputs"),
        ([HELLO, {"role": "assistant", "content": None}, HELLO], "either content or tool_calls"),
        ([HELLO, calling(call()), HELLO], "did not have response messages: a"),
        ([HELLO, calling(call(), call("b")), result()], "did not have response messages: b"),
        ([HELLO, calling(call()), result(), result()], "must be a response"),
        ([HELLO, calling(call(), call()), result()], "Invalid tool_call id: a"),
        ([HELLO, calling(call("a" * 41)), result("a" * 41)], "Invalid tool_call id"),
        ([HELLO, calling(call(name="t t")), result()], "Invalid function name"),
        ([HELLO, calling(call(arguments="[]")), result()], "must be a JSON object"),
    ],
)
def test_it_refuses(messages: list[Json], words: str) -> None:
    with pytest.raises(Refused, match=words):
        check({"model": "m", "messages": messages})
