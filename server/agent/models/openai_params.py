"""Maps a `ModelRequest` to the parameters of a chat completion, as plain dicts. Pure, and without the SDK.

Rules:

1. Content that servers reject is omitted or replaced: one bad message in a conversation would fail every later call.
2. The same request always gives the same parameters, and a longer conversation only appends to them: prompt caching
   compares the whole prefix.
3. Every call of an answer has its result in a `tool` message right behind the answer, matched by an id that is unique
   in the conversation.
4. A difference between servers is a `Deviation`. After a server rejects a request, it is repeated with the deviation
   that the error asks for (`deviation`).
"""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterator
from typing import Any, Final, Literal

from a2a_canvas.server.agent import model as m
from a2a_canvas.server.agent.attachments import PDF, attachment_text, is_text, media_type_of, medium_of, placeholder
from a2a_canvas.server.agent.models.unchecked_json import finite
from a2a_canvas.store.text.unicode import replace_surrogates

Deviation = Literal[
    "without stream_options",
    "without reasoning_effort",
    "max_completion_tokens",
    "max_tokens",
    "without a limit of tokens",
    "with reasoning_content",
    "with an answer after results",
    "with ids of nine characters",
]
"""A requirement of some servers. It lasts for the life of the process.

- `max_completion_tokens`, `max_tokens`: the limit of the answer under this name. OpenAI's reasoning models know only
  the first, which wins, Mistral only the second.
- `with reasoning_content`: the thinking that led to calls goes back (DeepSeek).
- `with an answer after results`: a user's message never follows a tool's (Mistral).
"""

_SAYS_UNKNOWN: Final = re.compile(
    r"extra inputs|not permitted|unknown|unexpected|unrecogni|unsupported|not support|not allowed|does not apply",
    re.IGNORECASE,
)
_EMPTY: Final = "(The message was empty.)"
_GO_ON: Final = "I have the results."
"""The answer after results, where a server demands one."""
_REFUSED_CHARACTERS: Final = re.compile(r"[^a-zA-Z0-9_-]")
_PLAIN_ID: Final = re.compile(r"[!-~]{1,40}")
_MAX_NAME: Final = 64


def to_params(
    request: m.ModelRequest,
    model: str,
    max_tokens: int,
    *,
    thinks: bool = True,
    deviations: Collection[Deviation] = (),
) -> dict[str, Any]:
    """The arguments of `chat.completions.create` for a request, without `stream`.

    Args:
        thinks: whether the model may think before it answers, if it can.
        deviations: what the server requires.
    """
    params: dict[str, Any] = {"model": model, "messages": _messages(request, deviations)}
    if request.tools:
        params["tools"] = [_tool(spec) for spec in request.tools]
    if "without a limit of tokens" not in deviations:
        older = "max_tokens" in deviations and "max_completion_tokens" not in deviations
        params["max_tokens" if older else "max_completion_tokens"] = max_tokens
    if "without stream_options" not in deviations:
        params["stream_options"] = {"include_usage": True}
    if not thinks and "without reasoning_effort" not in deviations:
        params["reasoning_effort"] = "none"
    return params


def deviation(message: str, deviations: Collection[Deviation]) -> Deviation | None:
    """The deviation required by the error message of a rejected request; None if it names no known one."""
    return next((each for each in _find_deviations(message) if each not in deviations), None)


def _find_deviations(message: str) -> Iterator[Deviation]:
    if "max_tokens" in message or "max_completion_tokens" in message:
        # "Use 'max_completion_tokens' instead" names both.
        if re.search(r"use .?max_completion_tokens", message, re.IGNORECASE):
            yield "max_completion_tokens"
        elif _SAYS_UNKNOWN.search(message):
            yield from ("max_tokens", "without a limit of tokens")
    if "reasoning_content" in message:
        yield "with reasoning_content"
    if re.search(r"role 'user' after role 'tool'", message):
        yield "with an answer after results"
    if re.search(r"tool call id.*length of 9", message, re.IGNORECASE):
        yield "with ids of nine characters"
    names: tuple[tuple[str, Deviation], ...] = (
        ("stream_options", "without stream_options"),
        ("reasoning_effort", "without reasoning_effort"),
        ("reasoning.effort", "without reasoning_effort"),
    )
    yield from (demand for name, demand in names if name in message)


def _tool(spec: m.ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.input_schema)}
    return {"type": "function", "function": function}


def _messages(request: m.ModelRequest, deviations: Collection[Deviation]) -> list[dict[str, Any]]:
    """The messages; user messages around an answer without content are joined."""
    ids = _CallIds(nine="with ids of nine characters" in deviations)
    system = replace_surrogates(request.system)
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system.strip() else []
    for message in request.messages:
        if message.role == "assistant":
            said = _answer(message, ids, with_thinking="with reasoning_content" in deviations)
            messages.extend([said] if said else [])
            continue
        results, parts = _results(message, ids), _parts(message)
        messages.extend(results)
        if messages and messages[-1]["role"] == "user":
            parts = [*_as_parts(messages.pop()["content"]), *parts]
        elif messages and messages[-1]["role"] == "tool" and parts and "with an answer after results" in deviations:
            messages.append({"role": "assistant", "content": _GO_ON})
        if parts or not results:
            messages.append({"role": "user", "content": _as_content(parts)})
    return messages


def _results(message: m.ModelMessage, ids: _CallIds) -> list[dict[str, Any]]:
    results = [each for each in message.content if isinstance(each, m.ToolResult)]
    return [
        {
            "role": "tool",
            "tool_call_id": ids.of_result(each.tool_use_id),
            "content": f"{'Error: ' if each.is_error else ''}{replace_surrogates(each.content)}",
        }
        for each in results
    ]


def _answer(message: m.ModelMessage, ids: _CallIds, *, with_thinking: bool) -> dict[str, Any] | None:
    """An answer of the model; None if it has neither text nor calls."""
    texts = [each.text for each in message.content if isinstance(each, m.ModelText)]
    calls = [_call(each, ids) for each in message.content if isinstance(each, m.ToolUse)]
    text = replace_surrogates("\n\n".join(text for text in texts if text.strip()))
    if not text and not calls:
        return None
    # Some servers demand the field beside calls, some refuse null in an answer without calls.
    answer: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        answer["tool_calls"] = calls
    if with_thinking:
        thoughts = (each.text for each in message.content if isinstance(each, m.Thinking))
        answer["reasoning_content"] = replace_surrogates("\n\n".join(thoughts))
    return answer


def _call(call: m.ToolUse, ids: _CallIds) -> dict[str, Any]:
    name = _REFUSED_CHARACTERS.sub("_", call.name)[:_MAX_NAME] or "unnamed"
    arguments = replace_surrogates(json.dumps(finite(dict(call.input)), ensure_ascii=False))
    return {"id": ids.of_call(call.id), "type": "function", "function": {"name": name, "arguments": arguments}}


class _CallIds:
    """Gives every call an id that servers accept, unique in the conversation, and its result the same id.

    Args:
        nine: whether ids must be nine letters and digits.
    """

    def __init__(self, *, nine: bool) -> None:
        self._fits = re.compile(r"[a-zA-Z0-9]{9}") if nine else _PLAIN_ID
        self._given: set[str] = set()
        self._unanswered: defaultdict[str, deque[str]] = defaultdict(deque)

    def of_call(self, use_id: str) -> str:
        number = len(self._given)
        given = use_id
        while given in self._given or not self._fits.fullmatch(given):
            given = f"c{number:08d}"
            number += 1
        self._given.add(given)
        self._unanswered[use_id].append(given)
        return given

    def of_result(self, use_id: str) -> str:
        unanswered = self._unanswered[use_id]
        return unanswered.popleft() if unanswered else use_id


# ------------------------------------------------------------------ what the user says


def _parts(message: m.ModelMessage) -> list[dict[str, Any]]:
    return [part for each in message.content if (part := _part(each)) is not None]


def _part(content: m.ModelContent) -> dict[str, Any] | None:
    match content:
        case m.ModelText(text):
            return _text_part(text) if text.strip() else None
        case m.Attachment():
            return _media_part(content) or _text_part(_describe(content))
        case _:
            return None


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": replace_surrogates(text)}


def _as_content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """The content of a message: a string if it is only text, because not every server accepts parts."""
    if any(part["type"] != "text" for part in parts):
        return parts
    return "\n\n".join(part["text"] for part in parts) or _EMPTY


def _as_parts(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(content, list):
        return content
    return [] if content == _EMPTY else [_text_part(content)]


def _describe(file: m.Attachment) -> str:
    """The text of a file, or its name in words."""
    if not is_text(file):
        return placeholder(file)
    return f"File {file.name or media_type_of(file)}:\n\n{attachment_text(file)}"


def _media_part(file: m.Attachment) -> dict[str, Any] | None:
    """An image, or a PDF with its content: the API accepts no PDF by URL."""
    media_type = medium_of(file)
    if media_type is None or (media_type == PDF and not file.content):
        return None
    url = file.url
    if file.content:
        url = f"data:{media_type};base64,{base64.b64encode(file.content).decode('ascii')}"
    if media_type == PDF:
        name = replace_surrogates(file.name).strip() or "document.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": url}}
    return {"type": "image_url", "image_url": {"url": url}}
