"""A strict stand-in for the chat completions API: it refuses what the strictest servers of it refuse, and says what it
is told to, in the form of `strict_messages_api.Answer`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import httpx2
import openai

from a2a_canvas.server.agent.models.openai_compatible import OpenAIModel
from tests.server.agent.models.chat_chunks import body, chunk, usage
from tests.server.agent.models.strict_messages_api import Answer, Json, Refused, Wire, demand, parsed, pieces_of

KEY: Final = "sk-test-0123456789"
_FIELDS: Final = {
    "request": {"model", "messages", "tools", "max_tokens", "stream", "stream_options"},
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "tool_call_id", "content"},
}
_PARTS: Final = {"text": "text", "image_url": "image_url", "file": "file"}
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FINISH: Final = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
    "pause_turn": "stop",
    "stop_sequence": "stop",
}


# ---------------------------------------------------------------------- what it says


def stream_of(answer: Answer) -> bytes:
    """The body of a streamed answer, up to where it is cut off."""
    sent = body(*_chunks(answer), done=answer.ends and not answer.error)
    return sent[: round(len(sent) * answer.keep)]


def _chunks(answer: Answer) -> Iterator[Json | str]:
    yield ": processing"
    yield chunk({"role": "assistant", "content": ""})
    made = 0
    for number, block in enumerate(answer.blocks):
        match block["type"]:
            case "text":
                yield from (chunk({"content": piece}) for piece in pieces_of(block["text"], answer.step))
            case "thinking":
                yield from (chunk({"reasoning_content": each}) for each in pieces_of(block["thinking"], answer.step))
            case "tool_use":
                index = answer.indices[number] if answer.indices else made
                made += 1
                yield from _call(block, index, answer.step)
    if answer.error:
        yield {"error": {"message": "Overloaded", "code": 502}}
        return
    if answer.stop:
        yield chunk(finish=_FINISH.get(answer.stop, answer.stop))
    yield usage()


def _call(block: Json, index: int, step: int) -> Iterator[Json]:
    given = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
    begins = {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": ""}}
    yield chunk({"tool_calls": [{"index": index, **begins}]})
    for piece in pieces_of(given, step):
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})


# ------------------------------------------------------------------- what it refuses


def check(request: Json) -> None:
    """Raises `Refused` if it is not a request that the API takes."""
    _known(request, "request")
    demand(request.get("stream_options") in (None, {"include_usage": True}), "stream_options: invalid")
    for tool in request.get("tools", ()):
        demand(tool["type"] == "function" and _NAME.fullmatch(tool["function"]["name"]), "Invalid 'tools[0].function'")
        demand(tool["function"]["parameters"]["type"] == "object", "Invalid schema for function")
    messages = request["messages"]
    for n, message in enumerate(messages):
        demand(message["role"] in _FIELDS, f"messages[{n}]: invalid role")
        _known(message, message["role"])
        demand(message["role"] != "system" or n == 0, "System message must be at the beginning")
        _check_content(message, n)
    _check_roles([message["role"] for message in messages if message["role"] != "system"])
    _check_calls(messages)


def _known(value: Json, kind: str) -> None:
    for name in value:
        demand(name in _FIELDS[kind], f"{kind}.{name}: Extra inputs are not permitted")


def _check_content(message: Json, n: int) -> None:
    content = message["content"]
    if message["role"] == "assistant":
        demand(content or message.get("tool_calls"), "Assistant message must have either content or tool_calls")
        demand("tool_calls" not in message or message["tool_calls"], f"messages[{n}].tool_calls: too short")
    if isinstance(content, list):
        demand(message["role"] == "user", f"messages[{n}]: content must be a string")
        demand(content, f"messages[{n}]: content must not be empty")
        for part in content:
            demand(part["type"] in _PARTS and part[_PARTS[part["type"]]], f"messages[{n}]: Unknown part type")
    elif message["role"] != "tool":
        demand(content is None or content.strip(), f"messages[{n}]: content must not be blank")
        demand(content is not None or message["role"] == "assistant", f"messages[{n}]: content must be a string")


def _check_roles(roles: list[str]) -> None:
    demand(roles and roles[0] == "user", "The first message must be the user's")
    demand(roles[-1] in ("user", "tool"), "Expected last role User or Tool")
    turns = [role for n, role in enumerate(roles) if role != "tool" or roles[n - 1] != "tool"]
    follows = {"user": ("assistant",), "assistant": ("user", "tool"), "tool": ("user", "assistant")}
    for before, role in pairwise(turns):
        demand(role in follows[before], f"Unexpected role '{role}' after role '{before}'")


def _check_calls(messages: list[Json]) -> None:
    seen: set[str] = set()
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            use_id = message["tool_call_id"]
            demand(use_id in waiting, "messages with role 'tool' must be a response to a preceding 'tool_calls'")
            waiting.remove(use_id)
            continue
        demand(not waiting, f"These tool_call_ids did not have response messages: {', '.join(waiting)}")
        for call in message.get("tool_calls", ()):
            demand(0 < len(call["id"]) <= 40 and call["id"] not in seen, f"Invalid tool_call id: {call['id']}")
            demand(_NAME.fullmatch(call["function"]["name"]), "Invalid function name")
            demand(isinstance(json.loads(call["function"]["arguments"]), dict), "arguments must be a JSON object")
            seen.add(call["id"])
            waiting.add(call["id"])
    demand(not waiting, f"These tool_call_ids did not have response messages: {', '.join(waiting)}")


# ---------------------------------------------------------------------- the provider


@dataclass
class ChatCompletionsApi:
    """A provider with one model.

    Attributes:
        answer: what it says to a request that it takes.
        requests: those that it has taken, as JSON.
        refusals: what it has said to those that it has not.
    """

    answer: Callable[[Json], Answer]
    requests: list[Json] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def reply(self, content: bytes) -> tuple[int, bytes, bool]:
        """The status and the body of the response, and whether the connection breaks behind it."""
        try:
            request = parsed(content)
            check(request)
        except Refused as error:
            self.refusals.append(error.message)
            return error.status, json.dumps({"error": {"message": error.message}}).encode(), False
        self.requests.append(request)
        answer = self.answer(request)
        if answer.status != 200:
            return answer.status, b'{"error": {"message": "Overloaded"}}', False
        return 200, stream_of(answer), answer.breaks

    def model(self) -> OpenAIModel:
        """A model of this provider."""
        http = httpx2.AsyncClient(transport=Wire(self))
        client = openai.AsyncOpenAI(api_key=KEY, base_url="http://provider.test/v1", max_retries=0, http_client=http)
        return OpenAIModel(model="m", context_window=200_000, client=client)
