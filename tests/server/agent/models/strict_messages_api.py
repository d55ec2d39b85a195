"""A strict stand-in for the Messages API: it refuses what the API refuses, in its words, and says what it is told to.

Rule 1: a request is judged by itself (`check`), but for thinking: of each tool call that it made, the API remembers the
        thinking that led to it.
Rule 2: every refusal is kept (`refusals`), so that a test can demand that there was none, also of a client that asks
        again without what was refused.
Rule 3: it is used in the process (`MessagesApi.client`) or over loopback (`serving`); it says the same in both.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

import anthropic
import httpx2

from a2a_canvas.server.agent.models.claude import ClaudeModel
from tests.loopback import serving_app

Json = dict[str, Any]

MAX_BODY: Final = 32 * 1024 * 1024
MAX_IMAGE: Final = 5 * 1024 * 1024
KEY: Final = "sk-ant-test-0123456789"

_FIELDS: Final = {
    "request": {"model", "max_tokens", "messages", "stream", "system", "tools", "thinking"},
    "message": {"role", "content"},
    "tool": {"name", "description", "input_schema", "cache_control", "eager_input_streaming"},
    "text": {"type", "text", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "title", "cache_control"},
}
_OF_USERS: Final = {"text", "tool_result", "image", "document"}
_OF_ASSISTANTS: Final = {"text", "thinking", "redacted_thinking", "tool_use"}
_THINKING: Final = ("thinking", "redacted_thinking")
_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_BEGINNINGS: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF")

# ---------------------------------------------------------------------- what it says


def sealed(thought: str) -> Json:
    """A thinking block with the signature that the API gives it."""
    return {"type": "thinking", "thinking": thought, "signature": _seal(thought)}


def redacted(number: int) -> Json:
    return {"type": "redacted_thinking", "data": f"{number}.{_seal(str(number))}"}


def says(words: str) -> Json:
    return {"type": "text", "text": words}


def calls(use_id: str | None, name: str | None, given: Json | str) -> Json:
    """A tool call; its input, or the JSON text of it as the model writes it."""
    return {"type": "tool_use", "id": use_id, "name": name, "input": given}


def _seal(text: str) -> str:
    return "s" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


@dataclass(frozen=True)
class Answer:
    """What the model says to one request.

    Attributes:
        blocks: content blocks, in order.
        stop: the stop reason; None for an answer that ends without one.
        step: characters in one delta.
        unstopped: the blocks, by number, whose `content_block_stop` is not sent.
        indices: the number that each block is sent under, if it is not 0, 1, 2…
        keep: the share of the stream's bytes that is sent; less than 1 cuts it off.
        breaks: whether the connection breaks where the answer ends, instead of being closed.
        error: an SSE `error` event of this type ends the answer.
        status: of the response; anything but 200 is an error and says nothing else.
        ends: whether `message_stop` is sent.
    """

    blocks: Sequence[Json] = ()
    stop: str | None = "end_turn"
    step: int = 1000
    unstopped: frozenset[int] = frozenset()
    indices: Sequence[int] = ()
    keep: float = 1.0
    breaks: bool = False
    error: str = ""
    status: int = 200
    ends: bool = True


def stream_of(answer: Answer, usage: Json) -> bytes:
    """The body of a streamed answer, up to where it is cut off."""
    body = b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in _events(answer, usage))
    return body[: round(len(body) * answer.keep)]


def _events(answer: Answer, usage: Json) -> Iterator[Json]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": []}
    yield {"type": "message_start", "message": {**message, "usage": usage, "stop_reason": None, "stop_sequence": None}}
    yield {"type": "ping"}
    for number, block in enumerate(answer.blocks):
        index = answer.indices[number] if answer.indices else number
        yield {"type": "content_block_start", "index": index, "content_block": _opening(block)}
        for delta in _deltas(block, answer.step):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if number not in answer.unstopped:
            yield {"type": "content_block_stop", "index": index}
    if answer.error:
        yield {"type": "error", "error": {"type": answer.error, "message": "Overloaded"}}
        return
    if answer.stop:
        delta = {"stop_reason": answer.stop, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}}
    if answer.stop and answer.ends:
        yield {"type": "message_stop"}


def _opening(block: Json) -> Json:
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _deltas(block: Json, step: int) -> Iterator[Json]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in pieces_of(block["text"], step))
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces_of(block["thinking"], step))
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            given = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces_of(given, step))


def pieces_of(text: str, step: int) -> list[str]:
    return [text[i : i + step] for i in range(0, len(text), step)]


# ------------------------------------------------------------------- what it refuses


class Refused(Exception):
    """A request that the API does not take."""

    def __init__(self, message: str, status: int = 400, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.message, self.status, self.kind = message, status, kind


def demand(holds: object, message: str) -> None:
    if not holds:
        raise Refused(message)


def parsed(body: bytes) -> Json:
    def no_number(name: str) -> object:
        raise ValueError(f"{name} is no JSON")

    if len(body) > MAX_BODY:
        raise Refused("Request exceeds the maximum size", 413, "request_too_large")
    try:
        request = json.loads(body.decode(), parse_constant=no_number)
    except ValueError as error:
        raise Refused(f"The request body is not valid JSON: {error}") from None
    demand(isinstance(request, dict), "The request body is not an object")
    return dict(request)


def check(request: Json, window: int = 200_000, unknown: Iterable[str] = ()) -> int:
    """The tokens of a request.

    Args:
        window: tokens that it and its answer may have.
        unknown: fields that this API does not know, wherever they stand (gateways are behind).

    Raises:
        Refused: it is not one that the API takes.
    """
    for place, name in _fields(request):
        demand(name not in unknown, f"{place}{name}: Extra inputs are not permitted")
    _known(request, "request", "")
    for name in ("model", "max_tokens", "messages"):
        demand(request.get(name), f"{name}: Field required")
    _check_tools(request)
    _check_marks(request)
    _check_messages(request["messages"])
    return _check_size(request, window)


def _fields(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(key, str):
            yield place, key
        if key not in ("input", "input_schema"):
            yield from _fields(inner, f"{place}{key}.")


def _known(value: Json, kind: str, place: str) -> None:
    for name in value:
        demand(name in _FIELDS[kind], f"{place}{name}: Extra inputs are not permitted")


def _check_tools(request: Json) -> None:
    for n, tool in enumerate(request.get("tools", ())):
        _known(tool, "tool", f"tools.{n}.custom.")
        demand(_NAME.fullmatch(tool["name"]), f"tools.{n}.custom.name: String should match pattern")
        demand(tool["input_schema"].get("type") == "object", f"tools.{n}.custom.input_schema.type: Field required")


def _check_marks(request: Json) -> None:
    blocks = [block for message in request["messages"] for block in message["content"]]
    marked = [each for each in (*request.get("system", ()), *request.get("tools", ()), *blocks) if _marked(each)]
    demand(len(marked) <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}.")


def _marked(value: Json) -> bool:
    return "cache_control" in value


def _check_messages(messages: list[Json]) -> None:
    roles = [message["role"] for message in messages]
    demand(roles[0] == "user", 'messages: first message must use the "user" role')
    demand(roles[-1] == "user", "This model does not support assistant message prefill.")
    for n, message in enumerate(messages):
        role = ("user", "assistant")[n % 2]
        demand(message["role"] == role, f'messages: roles must alternate between "user" and "assistant": {roles}')
        _known(message, "message", f"messages.{n}.")
        demand(message["content"], f"messages.{n}: all messages must have non-empty content")
        for m, block in enumerate(message["content"]):
            _check_block(block, f"messages.{n}.content.{m}", _OF_USERS if role == "user" else _OF_ASSISTANTS)
        last = message["content"][-1]["type"]
        demand(last not in _THINKING, f"messages.{n}: The final block in an assistant message cannot be `{last}`.")
    _check_calls(messages)


def _check_block(block: Json, at: str, allowed: set[str]) -> None:
    kind = block["type"]
    demand(kind in allowed, f"{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    _known(block, kind, f"{at}.{kind}.")
    match kind:
        case "text":
            demand(block["text"], "messages: text content blocks must be non-empty")
            demand(block["text"].strip(), "messages: text content blocks must contain non-whitespace text")
        case "thinking":
            demand(block.get("signature"), f"{at}.thinking.signature: Field required")
            demand(block["signature"] == _seal(block["thinking"]), f"{at}: Invalid `signature` in `thinking` block")
        case "redacted_thinking":
            number, _, seal = block["data"].partition(".")
            demand(seal == _seal(number), f"{at}: Invalid `data` in `redacted_thinking` block")
        case "tool_use":
            demand(_ID.fullmatch(block["id"]), f"{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
            demand(_NAME.fullmatch(block["name"]), f"{at}.tool_use.name: String should match pattern")
            demand(isinstance(block["input"], dict), f"{at}.tool_use.input: Input should be a valid dictionary")
        case "tool_result":
            demand(block["content"] or not block["is_error"], f"{at}: content cannot be empty if `is_error` is true")
        case "image" | "document":
            _check_source(block, at)


def _check_source(block: Json, at: str) -> None:
    source = block["source"]
    if source["type"] != "base64":
        return
    size = len(source["data"])
    content = base64.b64decode(source["data"])
    if block["type"] == "image":
        demand(size <= MAX_IMAGE, f"{at}.image.source.base64: image exceeds 5 MB maximum: {size} bytes > 5242880 bytes")
        demand(content.startswith(_BEGINNINGS), "Could not process image")
    else:
        demand(b"%PDF-" in content[:1024], "The PDF specified was not valid.")


def _check_calls(messages: list[Json]) -> None:
    seen: set[str] = set()
    called: list[str] = []
    for n, message in enumerate(messages):
        results = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        first = [block.get("tool_use_id") for block in message["content"][: len(called)]]
        missing = sorted(set(called) - set(first))
        demand(
            not missing,
            f"messages.{n - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message.",
        )
        for use_id in results:
            demand(use_id in called, f"messages.{n}: unexpected `tool_use_id` found in `tool_result` blocks: {use_id}.")
            demand(results.count(use_id) == 1, f"messages.{n}: each tool_use must have a single result: {use_id}")
        called = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        demand(len({*called, *seen}) == len(called) + len(seen), "messages: `tool_use` ids must be unique")
        seen.update(called)


def _check_size(request: Json, window: int) -> int:
    said = [request.get("system", ()), request.get("tools", ()), request["messages"]]
    count, most = sum(tokens(value) for value in said), request["max_tokens"]
    demand(count <= window, f"prompt is too long: {count} tokens > {window} maximum")
    demand(
        count + most <= window,
        f"input length and `max_tokens` exceed context limit: {count} + {most} > {window}, decrease input length or "
        "`max_tokens` and try again",
    )
    return count


# ------------------------------------------------------------------------- tokens

_PIECE: Final = re.compile(r"[A-Za-z]+|[0-9]{1,3}|\s+|[^\x00-\x7f]|.", re.DOTALL)


def tokens(value: object) -> int:
    """About what a tokenizer of today makes of it: a word of up to six letters is one token and so is each punctuation
    mark, a Chinese character 0.9, an image 1,600, each 50 KB of a document 2,000."""
    match value:
        case {"type": "image"}:
            return 1_600
        case {"type": "document", "source": {"data": data}}:
            return 2_000 * (1 + len(str(data)) // 70_000)
        case str():
            return _tokens(value)
        case dict():
            return 4 + sum(tokens(str(key)) + tokens(inner) for key, inner in value.items())
        case list() | tuple():
            return sum(map(tokens, value))
        case _:
            return 1


def _tokens(text: str) -> int:
    tenths = 0
    for piece in _PIECE.findall(text):
        if piece[0].isalpha() and piece.isascii():
            tenths += 10 * (1 + (len(piece) - 1) // 6)
        elif piece.isspace():
            tenths += 0 if piece == " " else 10
        else:
            tenths += 10 if piece.isascii() else 9 if ord(piece[0]) < 0x10000 else 25
    return -(-tenths // 10)


# ---------------------------------------------------------------------- the provider


@dataclass
class MessagesApi:
    """A provider with one model.

    Attributes:
        answer: what it says to a request that it takes.
        window, unknown: see `check`.
        requests: those that it has taken, as JSON.
        refusals: what it has said to those that it has not.
        sizes: the tokens of those that it has taken.
    """

    answer: Callable[[Json], Answer]
    window: int = 200_000
    unknown: frozenset[str] = frozenset()
    requests: list[Json] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    _thought: dict[str, list[tuple[int, list[Json]]]] = field(default_factory=dict)

    def reply(self, body: bytes) -> tuple[int, bytes, bool]:
        """The status and the body of the response, and whether the connection breaks behind it."""
        try:
            request = parsed(body)
            size = check(request, self.window, self.unknown)
            self._check_thinking(request["messages"])
        except Refused as error:
            self.refusals.append(error.message)
            return error.status, _error(error.kind, error.message), False
        self.requests.append(request)
        self.sizes.append(size)
        answer = self.answer(request)
        if answer.status != 200:
            return answer.status, _error("overloaded_error", "Overloaded"), False
        self._remember(answer.blocks)
        usage = {"input_tokens": size // 10, "cache_read_input_tokens": size - size // 10, "output_tokens": 1}
        return 200, stream_of(answer, usage), answer.breaks

    def _remember(self, blocks: Sequence[Json]) -> None:
        thought: list[Json] = []
        for block in blocks:
            if block["type"] in _THINKING:
                thought.append(block)
            elif block["type"] == "tool_use" and block["id"]:
                # Bad servers give an id twice: any of these answers may be the one that is sent back.
                self._thought.setdefault(block["id"], []).append((len(thought), thought))

    def _check_thinking(self, messages: list[Json]) -> None:
        """Thinking that led to the calls of the latest answer is sent back as it was, or left out whole."""
        latest = messages[-2]["content"] if len(messages) > 1 else []
        sent = [block for block in latest if block["type"] in _THINKING]
        made = [pair for block in latest for pair in self._thought.get(block.get("id", ""), ())]
        answers = {id(thought): (max(n for n, other in made if other is thought), thought) for _, thought in made}
        demand(
            not sent or not made or any(len(sent) >= n and sent == said[: len(sent)] for n, said in answers.values()),
            f"messages.{len(messages) - 2}: `thinking` or `redacted_thinking` blocks in the latest assistant message "
            "cannot be modified. These blocks must remain as they were in the original response.",
        )

    def model(self) -> ClaudeModel:
        """A model of this provider."""
        return ClaudeModel(client=self.client())

    def client(self, retries: int = 0) -> anthropic.AsyncAnthropic:
        """The SDK's client of this provider, without a network."""
        http = httpx2.AsyncClient(transport=Wire(self))
        return anthropic.AsyncAnthropic(
            api_key=KEY, base_url="http://provider.test", max_retries=retries, http_client=http
        )


def _headers(status: int) -> dict[bytes, bytes]:
    kind = b"text/event-stream; charset=utf-8" if status == 200 else b"application/json"
    return {b"content-type": kind, b"retry-after-ms": b"1"}


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, content: bytes, breaks: bool) -> None:
        self._content, self._breaks = content, breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._content), 4096):
            yield self._content[start : start + 4096]
            await asyncio.sleep(0)  # what comes over a network lets others run
        if self._breaks:
            raise httpx2.ReadError("reset by peer")


class Replying(Protocol):
    """A provider without a network: the status and the body of its response, and whether the connection breaks."""

    def reply(self, body: bytes) -> tuple[int, bytes, bool]: ...


class Wire(httpx2.AsyncBaseTransport):
    """A transport to a provider in this process."""

    def __init__(self, api: Replying) -> None:
        self._api = api

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        status, content, breaks = self._api.reply(await request.aread())
        return httpx2.Response(status, headers=[*_headers(status).items()], stream=_Body(content, breaks))


async def _answered(api: Replying, scope: Any, receive: Any, send: Any) -> None:
    """The provider as an ASGI application."""
    if scope["type"] != "http":
        return
    body = b""
    while (message := await receive()).get("more_body") or message.get("body"):
        body += message["body"]
        if not message.get("more_body"):
            break
    status, content, breaks = api.reply(body)
    await send({"type": "http.response.start", "status": status, "headers": [*_headers(status).items()]})
    await send({"type": "http.response.body", "body": content, "more_body": breaks})
    if breaks:
        raise ConnectionResetError


@asynccontextmanager
async def serving(api: Replying) -> AsyncIterator[str]:
    """The provider on loopback: what ANTHROPIC_BASE_URL is to be, or OPENAI_BASE_URL."""
    async with serving_app(lambda _: partial(_answered, api), interface="asgi3") as url:
        yield url
