"""The stand-in for the Messages API: over loopback it is what it is in the process, and it does refuse."""

import anthropic
import httpx2
import pytest

from a2a_canvas.server.agent.model import MessageStop, ModelError, ModelMessage, ModelRequest, ModelText, TextDelta
from a2a_canvas.server.agent.models.claude import ClaudeModel
from tests.server.agent.models.strict_messages_api import (
    KEY,
    Answer,
    Json,
    MessagesApi,
    Refused,
    calls,
    check,
    says,
    sealed,
    serving,
)

HI = ModelRequest("", (ModelMessage("user", (ModelText("Hi."),)),))


async def test_over_loopback_it_is_what_it_is_in_the_process() -> None:
    api = MessagesApi(lambda _: Answer([sealed("Hm."), says("Hello.")]))
    async with serving(api) as url, httpx2.AsyncClient(trust_env=False) as http:
        client = anthropic.AsyncAnthropic(api_key=KEY, base_url=url, http_client=http)
        far = [event async for event in ClaudeModel(client=client).stream(HI)]
    assert far == [event async for event in ClaudeModel(client=api.client()).stream(HI)]
    assert TextDelta(1, "Hello.") in far
    assert isinstance(far[-1], MessageStop)
    assert api.requests[0] == api.requests[1]


@pytest.mark.parametrize(
    ("answer", "retryable"), [(Answer([says("Hel")], keep=0.5, breaks=True), True), (Answer(status=529), False)]
)
async def test_over_loopback_it_breaks_as_well(answer: Answer, retryable: bool) -> None:
    async with serving(MessagesApi(lambda _: answer)) as url, httpx2.AsyncClient(trust_env=False) as http:
        client = anthropic.AsyncAnthropic(api_key=KEY, base_url=url, http_client=http, max_retries=0)
        with pytest.raises(ModelError) as caught:
            [event async for event in ClaudeModel(client=client).stream(HI)]
    assert caught.value.retryable is retryable


def user(*content: Json) -> Json:
    return {"role": "user", "content": [*content]}


def assistant(*content: Json) -> Json:
    return {"role": "assistant", "content": [*content]}


def result(use_id: str, **more: object) -> Json:
    return {"type": "tool_result", "tool_use_id": use_id, "content": "ok", "is_error": False, **more}


HELLO, CALL = user(says("Hi.")), calls("a", "t", {})
MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "messages: Field required"),
        ([assistant(says("a"))], 'must use the "user" role'),
        ([HELLO, assistant(says("a"))], "prefill"),
        ([HELLO, HELLO], "roles must alternate"),
        ([user()], "non-empty content"),
        ([user(says(""))], "must be non-empty"),
        ([user(says(" \n"))], "non-whitespace"),
        ([user({"type": "video"})], "does not match any of the expected tags"),
        ([user({**says("a"), "name": "b"})], "messages.0.content.0.text.name: Extra inputs"),
        ([HELLO, assistant(sealed("a")), HELLO], "cannot be `thinking`"),
        ([HELLO, assistant({**sealed("a"), "thinking": "b"}, says("a")), HELLO], "Invalid `signature`"),
        ([HELLO, assistant({"type": "redacted_thinking", "data": "x"}, says("a")), HELLO], "Invalid `data`"),
        ([HELLO, assistant(CALL), HELLO], "without `tool_result` blocks immediately after: a"),
        ([HELLO, assistant(CALL), user(says("a"), result("a"))], "without `tool_result` blocks immediately after: a"),
        ([user(result("a"))], "unexpected `tool_use_id`"),
        ([HELLO, assistant(CALL), user(result("a"), result("a"))], "a single result"),
        ([HELLO, assistant(CALL, CALL), user(result("a"))], "ids must be unique"),
        ([HELLO, assistant(calls("a.b", "t", {})), user(result("a.b"))], "tool_use.id"),
        ([HELLO, assistant(calls("a", "t t", {})), user(result("a"))], "tool_use.name"),
        ([HELLO, assistant(CALL), user(result("a", is_error=True, content=""))], "cannot be empty"),
        ([user(*[{**says("a"), **MARK}] * 5)], "A maximum of 4 blocks with cache_control may be provided. Found 5."),
        ([user(says("a " * 9_000))], "prompt is too long: 9"),
        ([user(says("a " * 4_000))], "exceed context limit: 4"),
    ],
)
def test_it_refuses_in_the_words_of_the_api(messages: list[Json], words: str) -> None:
    with pytest.raises(Refused) as caught:
        check({"model": "m", "max_tokens": 4_500, "messages": messages}, window=8_000)
    assert words in caught.value.message


def test_thinking_that_led_to_a_call_must_stay_as_it_was() -> None:
    api = MessagesApi(lambda _: Answer([sealed("one"), sealed("two"), CALL]))
    with pytest.raises(Refused, match="cannot be modified"):
        api._remember(api.answer({}).blocks)
        api._check_thinking([HELLO, assistant(sealed("two"), CALL), user(result("a"))])
