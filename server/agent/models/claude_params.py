"""Maps a `ModelRequest` to the parameters of the Messages API, as plain dicts. Pure, and without the SDK.

Rules (the API's, https://platform.claude.com/docs/en/api/messages):

1. Content that the API rejects is omitted or replaced: one bad block in a conversation would fail every later call.
2. The same request always gives the same parameters, and a longer conversation only appends to them: prompt caching
   and the check of thinking blocks both compare the whole prefix.
3. Thinking is sent back unchanged or not at all: if one block of an answer cannot be, none of that answer is. Thinking
   at the end of an answer is omitted too: the API rejects it.
4. A server that does not support an optional field is called without it (`OptionalField`).
"""

from __future__ import annotations

import base64
import re
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Literal, assert_never

from a2a_canvas.server.agent import model as m
from a2a_canvas.server.agent.attachments import PDF, attachment_text, is_text, media_type_of, medium_of, placeholder
from a2a_canvas.server.agent.models.unchecked_json import finite
from a2a_canvas.store.text.unicode import replace_surrogates

ThinkingMode = Literal["auto", "adaptive", "between_tools", "disabled"]
"""The mode that is requested; models accept different ones (claude-sonnet-5-5: `adaptive`, `between_tools`;
claude-opus-5-5: `adaptive` alone). `auto` requests `adaptive` where it exists, and otherwise nothing."""

_CACHED: Final = {"type": "ephemeral"}
_THINKING: Final = ("thinking", "redacted_thinking")
_OLDER: Final = re.compile(r"claude-(\d|instant|(opus|sonnet|haiku)-4(-[015])?(-(\d{8}|latest))?$)")
"""Names of Claude models without adaptive thinking, as Anthropic writes them."""
_CLAUDE: Final = re.compile(r"(?:^|[/.:])(claude-[^/:]*)")
"""The model's name within one of Bedrock, Vertex or a gateway: `us.anthropic.claude-sonnet-4-5-20250929-v1:0`."""

OptionalField = Literal["eager_input_streaming", "cache_control", "display", "thinking"]
"""A field that Anthropic's API supports and another server may not; `display` is a member of `thinking`."""

_EMPTY: Final = {"type": "text", "text": "(The message was empty.)"}
_REFUSED_CHARACTERS: Final = re.compile(r"[^a-zA-Z0-9_-]")
"""The characters that the API rejects in ids and names."""
_MAX_ID: Final = 64
_MAX_NAME: Final = 128


PROVIDER_VARIABLES: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")


def is_configured(environ: Mapping[str, str]) -> bool:
    """Whether the environment has a key, or the address of a server that may need none."""
    return any(environ.get(name, "").strip() for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"))


def unused_keys(environ: Mapping[str, str]) -> Iterator[str]:
    """Sentences about credentials in the environment that are not used."""
    key, token, url = (environ.get(name, "").strip() for name in PROVIDER_VARIABLES)
    openai = next((name for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL") if environ.get(name, "").strip()), "")
    if token and key:
        yield "ANTHROPIC_AUTH_TOKEN is not used, because ANTHROPIC_API_KEY is set."
    elif token and not url:
        yield "ANTHROPIC_AUTH_TOKEN is not used without ANTHROPIC_BASE_URL. For Claude itself set ANTHROPIC_API_KEY."
    if openai and not is_configured(environ):
        yield f"{openai} is not used. For a model behind it start with --model openai:NAME."


def to_params(
    request: m.ModelRequest,
    model: str,
    max_tokens: int,
    thinking: ThinkingMode = "auto",
    without: Collection[OptionalField] = (),
) -> dict[str, Any]:
    """The arguments of `messages.create` for a request, without `stream`.

    Omitted are blank text, thinking by rule 3, and answers without content. Three cache breakpoints: the system
    prompt, the last tool, the end of the conversation.

    Args:
        without: fields to omit.
    """
    mark = {} if "cache_control" in without else {"cache_control": _CACHED}
    messages = _messages(request)
    if messages:  # its last block is never thinking, which cannot carry the mark
        messages[-1]["content"][-1] = messages[-1]["content"][-1] | mark
    params: dict[str, Any] = {"model": model, "max_tokens": max_tokens, "messages": messages}
    if request.system.strip():
        params["system"] = [{"type": "text", "text": request.system, **mark}]
    if request.tools:
        tools = [_tool(spec, without) for spec in request.tools]
        params["tools"] = [*tools[:-1], {**tools[-1], **mark}]
    if "thinking" not in without and (config := _thinking_config(thinking, model)):
        params["thinking"] = {name: value for name, value in config.items() if name not in without}
    return params


def _thinking_config(mode: ThinkingMode, model: str) -> dict[str, str] | None:
    match mode:
        case "auto":
            return _thinking_config("adaptive", model) if _thinks_adaptively(model) else None
        case "adaptive":
            # Since Claude 4.7 the text of thinking is omitted unless requested.
            return {"type": "adaptive", "display": "summarized"}
        case "between_tools" | "disabled":
            return {"type": mode}
        case _:
            assert_never(mode)


def _thinks_adaptively(model: str) -> bool:
    found = _CLAUDE.search(model.lower())
    return found is not None and not _OLDER.match(re.sub(r"-v\d+$", "", re.sub("[.@]", "-", found[1])))


def _tool(spec: m.ToolSpec, without: Collection[OptionalField]) -> dict[str, Any]:
    tool = {"name": spec.name, "description": spec.description, "input_schema": dict(spec.input_schema)}
    eager = spec.eager and "eager_input_streaming" not in without
    return {**tool, "eager_input_streaming": True} if eager else tool


def _messages(request: m.ModelRequest) -> list[dict[str, Any]]:
    """The messages; those around an answer without content are joined."""
    messages: list[dict[str, Any]] = []
    ids = _Ids()
    for message in request.messages:
        content = _content(message, ids) or ([_EMPTY] if message.role == "user" else [])
        if content and messages and messages[-1]["role"] == message.role:
            messages[-1]["content"].extend(content)
        elif content:
            messages.append({"role": message.role, "content": content})
    return messages


def _content(message: m.ModelMessage, ids: _Ids) -> list[dict[str, Any]]:
    """The blocks of a message, tool results first as the API demands, otherwise in order."""
    ordered = sorted(message.content, key=lambda each: not isinstance(each, m.ToolResult))
    whole = all(each.signature or each.redacted for each in ordered if isinstance(each, m.Thinking))
    kept = [each for each in ordered if whole or not isinstance(each, m.Thinking)]
    blocks = [block for each in kept if (block := _block(each, ids)) is not None]
    while blocks and blocks[-1]["type"] in _THINKING:
        blocks.pop()
    return blocks


class _Ids:
    """Gives every call an id that the API accepts, unique in the conversation, and its result the same id."""

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._times: Counter[str] = Counter()
        self._unanswered: defaultdict[str, deque[str]] = defaultdict(deque)

    def of_call(self, use_id: str) -> str:
        plain = given = _REFUSED_CHARACTERS.sub("_", use_id)[:_MAX_ID] or "call"
        while given in self._given:
            self._times[plain] += 1
            given = f"{plain[:50]}_{self._times[plain] + 1}"
        self._given.add(given)
        self._unanswered[use_id].append(given)
        return given

    def of_result(self, use_id: str) -> str:
        unanswered = self._unanswered[use_id]
        return unanswered.popleft() if unanswered else use_id


def _block(content: m.ModelContent, ids: _Ids) -> dict[str, Any] | None:
    match content:
        case m.ModelText(text):
            return {"type": "text", "text": replace_surrogates(text)} if text.strip() else None
        case m.Attachment():
            return _attachment(content)
        case m.Thinking(redacted=data) if data:
            return {"type": "redacted_thinking", "data": data}
        case m.Thinking(text, signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case m.ToolUse(use_id, name, given):
            name = _REFUSED_CHARACTERS.sub("_", name)[:_MAX_NAME] or "unnamed"
            return {"type": "tool_use", "id": ids.of_call(use_id), "name": name, "input": finite(dict(given))}
        case m.ToolResult():
            return _tool_result(content, ids)
        case _:
            assert_never(content)


def _tool_result(result: m.ToolResult, ids: _Ids) -> dict[str, Any]:
    # The API refuses an error result without content.
    text = replace_surrogates(result.content) or ("The tool failed." if result.is_error else "")
    use_id = ids.of_result(result.tool_use_id)
    return {"type": "tool_result", "tool_use_id": use_id, "content": text, "is_error": result.is_error}


def _attachment(file: m.Attachment) -> dict[str, Any]:
    """A block for an attachment: an image or PDF as such, text as text, any other file as a placeholder.

    Only what every later request can repeat becomes a block: one rejected image would end the conversation.
    """
    if block := _media_block(file):
        return block
    if is_text(file):
        name = replace_surrogates(file.name) or media_type_of(file)
        return {"type": "text", "text": f"File {name}:\n\n{attachment_text(file)}"}
    return {"type": "text", "text": replace_surrogates(placeholder(file))}


def _media_block(file: m.Attachment) -> dict[str, Any] | None:
    media_type = medium_of(file)
    if media_type is None:
        return None
    source = {"type": "url", "url": file.url}
    if file.content:
        source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(file.content).decode("ascii")}
    if media_type != PDF:
        return {"type": "image", "source": source}
    title = {"title": replace_surrogates(file.name)} if file.name.strip() else {}
    return {"type": "document", "source": source, **title}


def without_thinking(request: m.ModelRequest) -> m.ModelRequest:
    """The request without earlier thinking, which is valid only for its own model and conversation."""
    return m.map_content(request, lambda content: None if isinstance(content, m.Thinking) else content)
