"""Chunks of chat completions in the forms in which servers send them, and what a mapper makes of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from a2a_canvas.server.agent.model import (
    BlockStart,
    InputDelta,
    MessageStop,
    ModelEvent,
    TextDelta,
    ThinkingDelta,
)

Json = dict[str, Any]


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Json:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}],
        **more,
    }


def piece(arguments: Any = None, name: str | None = None, **more: Any) -> Json:
    """A piece of a call; its `index` and `id` are in `more`, if it has them."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**more, "function": function}


def calling(*pieces: Json) -> Json:
    return chunk({"tool_calls": [*pieces]})


def usage(prompt: int = 100, completion: int = 20, **more: Any) -> Json:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"id": "chatcmpl-1", "choices": [], "usage": {**counts, **more}}


def body(*chunks: Json | str, done: bool = True) -> bytes:
    """A response of these chunks; a text is sent as a line of its own."""
    lines = (each if isinstance(each, str) else f"data: {json.dumps(each)}" for each in chunks)
    return "".join(f"{line}\n\n" for line in (*lines, *(["data: [DONE]"] if done else []))).encode()


def folded(events: Iterable[ModelEvent]) -> tuple[list[tuple[str, ...]], MessageStop | None]:
    """The blocks with all their text, in the order in which they begin, and the end."""
    starts: dict[int, BlockStart] = {}
    texts: defaultdict[int, str] = defaultdict(str)
    stop = None
    for event in events:
        match event:
            case BlockStart():
                starts[event.llm_index] = event
            case TextDelta(index, text) | ThinkingDelta(index, text) | InputDelta(index, text):
                texts[index] += text
            case MessageStop():
                stop = event
    return [(each.kind, each.tool_use_id, each.name, texts[index]) for index, each in starts.items()], stop
