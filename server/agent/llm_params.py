"""What the Messages API is sent for a `ModelRequest`. Pure, and without the SDK: its parameters are plain dicts.

Rules (the API's, https://platform.claude.com/docs/en/api/messages):

1. What the API refuses is left out or said otherwise: one bad block in a conversation would fail every later call.
2. The same request always gives the same parameters, and a longer conversation only adds to them: prompt caching
   and the check of thinking blocks both compare everything that stands before.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Literal, assert_never

from server.agent import model as m

ThinkingMode = Literal["auto", "adaptive", "between_tools", "disabled"]
"""What is asked of the model; which are accepted depends on it (claude-sonnet-5-5: `adaptive`, `between_tools`;
claude-opus-5-5: `adaptive` alone). `auto` asks for `adaptive` where it exists and else leaves it to the server."""

_CACHED: Final = {"type": "ephemeral"}
_IMAGES: Final = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
"""The images that the API reads, and how each begins: what it is not, by its bytes, the API refuses."""
_MAX_IMAGE: Final = 5 * 1024 * 1024
"""The API's limit for one image, in characters of base64."""
_NO_ADAPTIVE: Final = re.compile(r"claude-(\d|instant|(opus|sonnet|haiku)-4(-[015])?(-\d{8})?$)")


def to_params(request: m.ModelRequest, model: str, max_tokens: int, thinking: ThinkingMode = "auto") -> dict[str, Any]:
    """The arguments of `messages.create` for a request, without `stream`.

    What the API refuses is left out: blank text, thinking without a signature, messages with nothing left in
    them. Three cache breakpoints: the system prompt, the last tool, the end of the conversation.
    """
    messages = [{"role": each.role, "content": _content(each)} for each in request.messages]
    params: dict[str, Any] = {
        "model": model,
        "max_tokens": max_tokens,
        "messages": _cached_end([each for each in messages if each["content"]]),
    }
    if request.system.strip():
        params["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
    if request.tools:
        tools = [_tool(spec) for spec in request.tools]
        params["tools"] = [*tools[:-1], {**tools[-1], "cache_control": _CACHED}]
    if config := _thinking_config(thinking, model):
        params["thinking"] = config
    return params


def _thinking_config(mode: ThinkingMode, model: str) -> dict[str, str] | None:
    match mode:
        case "auto":
            adaptive = model.startswith("claude-") and not _NO_ADAPTIVE.match(model)
            return _thinking_config("adaptive", model) if adaptive else None
        case "adaptive":
            # Since Claude 4.7 the text of thinking is omitted unless it is asked for.
            return {"type": "adaptive", "display": "summarized"}
        case "between_tools" | "disabled":
            return {"type": mode}
        case _:
            assert_never(mode)


def _tool(spec: m.ToolSpec) -> dict[str, Any]:
    tool = {"name": spec.name, "description": spec.description, "input_schema": dict(spec.input_schema)}
    return {**tool, "eager_input_streaming": True} if spec.eager else tool


def _content(message: m.ModelMessage) -> list[dict[str, Any]]:
    """The blocks of a message, tool results first as the API demands, otherwise in order."""
    ordered = sorted(message.content, key=lambda each: not isinstance(each, m.ToolResult))
    return [block for each in ordered if (block := _block(each)) is not None]


def _block(content: m.Content) -> dict[str, Any] | None:
    match content:
        case m.Text(text):
            return {"type": "text", "text": text} if text.strip() else None
        case m.Attachment():
            return _attachment(content)
        case m.Thinking(redacted=data) if data:
            return {"type": "redacted_thinking", "data": data}
        case m.Thinking(text, signature):
            return {"type": "thinking", "thinking": text, "signature": signature} if signature else None
        case m.ToolUse(use_id, name, given):
            return {"type": "tool_use", "id": use_id, "name": name, "input": dict(given)}
        case m.ToolResult():
            return _tool_result(content)
        case _:
            assert_never(content)


def _tool_result(result: m.ToolResult) -> dict[str, Any]:
    # An error result without content is refused.
    text = result.content or ("The tool failed." if result.is_error else "")
    block = {"type": "tool_result", "tool_use_id": result.tool_use_id, "content": text}
    return {**block, "is_error": result.is_error}


def _attachment(file: m.Attachment) -> dict[str, Any]:
    """An image or PDF as such, text as text, anything else as a line that names it.

    Only what every later request can repeat is sent as a block: one refused image would end the conversation.
    """
    if block := _media_block(file):
        return block
    media_type, parameters = _media_type(file)
    if file.content and media_type.startswith("text/"):
        return {"type": "text", "text": f"File {file.name or media_type}:\n\n{_decoded(file.content, parameters)}"}
    return {"type": "text", "text": _named(file)}


def _media_type(file: m.Attachment) -> tuple[str, str]:
    """The bare type, and its parameters."""
    media_type, _, parameters = file.media_type.lower().partition(";")
    return media_type.strip().replace("image/jpg", "image/jpeg"), parameters


def _named(file: m.Attachment) -> str:
    where = f" at {file.url}" if file.url else ""
    return f"[Attached file: {file.name or 'unnamed'} ({_media_type(file)[0]}){where}]"


def _media_block(file: m.Attachment) -> dict[str, Any] | None:
    media_type, _ = _media_type(file)
    if media_type in _IMAGES and (source := _source(file, _image_type)):
        return {"type": "image", "source": source}
    if media_type == "application/pdf" and (source := _source(file, _pdf_type)):
        return {"type": "document", "source": source, **({"title": file.name} if file.name else {})}
    return None


def _source(file: m.Attachment, type_of: Callable[[bytes], str | None]) -> dict[str, str] | None:
    if not file.content:
        return {"type": "url", "url": file.url} if file.url.startswith("https://") else None
    media_type = type_of(file.content)
    if media_type is None:
        return None
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(file.content).decode("ascii")}


def _image_type(content: bytes) -> str | None:
    """What the bytes are, whatever their sender calls them; none if the API would not take them."""
    if -(-len(content) // 3) * 4 > _MAX_IMAGE:
        return None
    return next((media_type for media_type, begins in _IMAGES.items() if begins.match(content)), None)


def _pdf_type(content: bytes) -> str | None:
    # Readers of PDF look for its mark in the first kilobyte.
    return "application/pdf" if b"%PDF-" in content[:1024] else None


def _decoded(content: bytes, parameters: str) -> str:
    charset = parameters.partition("charset=")[2].partition(";")[0].strip(" \"'")
    try:
        return content.decode(charset or "utf-8", errors="replace")
    except LookupError:
        return content.decode("utf-8", errors="replace")


def _cached_end(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, the last block of the last one marked; thinking blocks cannot carry the mark."""
    blocks: list[dict[str, Any]] = messages[-1]["content"] if messages else []
    for block in reversed(blocks):
        if block["type"] not in ("thinking", "redacted_thinking"):
            block["cache_control"] = _CACHED
            break
    return messages


def without_thinking(request: m.ModelRequest) -> m.ModelRequest:
    """The request without the thinking in its conversation, which only its own model and conversation may read."""
    return _changed(request, lambda content: None if isinstance(content, m.Thinking) else content)


def without_media(request: m.ModelRequest) -> m.ModelRequest:
    """The request with a line that names it in place of each image and PDF."""

    def lessened(content: m.Content) -> m.Content:
        return m.Text(_named(content)) if isinstance(content, m.Attachment) and _media_block(content) else content

    return _changed(request, lessened)


def _changed(request: m.ModelRequest, change: Callable[[m.Content], m.Content | None]) -> m.ModelRequest:
    def changed(message: m.ModelMessage) -> m.ModelMessage:
        return replace(message, content=tuple(new for c in message.content if (new := change(c)) is not None))

    return replace(request, messages=tuple(changed(each) for each in request.messages))
