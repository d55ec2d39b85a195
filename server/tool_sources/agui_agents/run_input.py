"""The `RunAgentInput` of a run, as JSON. Pure.

Rule 1: ids are digests of ours: neither an id of a client nor a user's name leaves the server.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from a2a_canvas.server.agent.loops.conversation import Message
from a2a_canvas.server.tool_sources.agui_agents.run_mapping import Interrupt
from a2a_canvas.tools.functions.results import File
from a2a_canvas.tools.json_values import value_of_json

Json = dict[str, Any]

_MEDIA = ("image", "audio", "video")
_YES = re.compile(r"(y|yes|ok|okay|sure|approved?|true|go ahead|ja)\b", re.IGNORECASE)


def digest(*values: str) -> str:
    """An id made of several texts."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:32]


def run_input(
    thread_id: str,
    run_id: str,
    messages: Sequence[Json],
    state: Any,
    instructions: str = "",
    answers: Sequence[tuple[Interrupt, str]] = (),
) -> Json:
    """The body of a run.

    Args:
        messages: the conversation, with the newest message (`wire_messages`).
        answers: to the questions of the run before.
    """
    return {
        "threadId": thread_id,
        "runId": run_id,
        "protocolVersion": "1.0",
        "state": {} if state is None else state,
        "messages": [*messages],
        "tools": [],
        "context": [{"description": "instructions", "value": instructions}] if instructions else [],
        "forwardedProps": _older_command(answers),
        **_resume(answers),
    }


def wire_messages(thread_id: str, messages: Sequence[Message]) -> list[Json]:
    """Our messages as those of AG-UI."""
    return [_message(thread_id, number, each) for number, each in enumerate(messages)]


def _message(thread_id: str, number: int, message: Message) -> Json:
    message_id = digest(thread_id, str(number), message.message_id)
    if message.role == "agent":
        return {"id": message_id, "role": "assistant", "content": message.text}
    texts = [message.text, *(json.dumps(each, ensure_ascii=False) for each in message.data)]
    text = "\n".join(filter(None, texts))
    if not message.files:
        return {"id": message_id, "role": "user", "content": text}
    parts = [{"type": "text", "text": text}] if text else []
    return {"id": message_id, "role": "user", "content": [*parts, *map(_part, message.files)]}


def _part(file: File) -> Json:
    kind = file.media_type.partition("/")[0]
    kind = kind if kind in _MEDIA else "document"
    media_type = file.media_type or "application/octet-stream"
    if file.content is None:
        return {"type": kind, "source": {"type": "url", "value": file.url, "mimeType": media_type}}
    source = {"type": "data", "value": b64encode(file.content).decode(), "mimeType": media_type}
    return {"type": kind, "source": source, **({"metadata": {"filename": file.name}} if file.name else {})}


def _older_command(answers: Sequence[tuple[Interrupt, str]]) -> Json:
    """What resumes agents from before `resume` was part of AG-UI."""
    legacy = [answer for interrupt, answer in answers if not interrupt.interrupt_id]
    return {"command": {"resume": legacy[0]}} if legacy else {}


def _resume(answers: Sequence[tuple[Interrupt, str]]) -> Json:
    entries = [
        {"interruptId": each.interrupt_id, "status": "resolved", "payload": payload(each.schema, answer)}
        for each, answer in answers
        if each.interrupt_id
    ]
    return {"resume": entries} if entries else {}


def payload(schema: Mapping[str, Any], answer: str) -> Any:
    """A user's answer in the form that an interrupt expects, as far as a text can have it."""
    match schema:
        case {"type": "boolean"}:
            return bool(_YES.match(answer.strip()))
        case {"type": "object"} | {"properties": _}:
            return _object(schema, answer)
        case {"type": "string"} | {"enum": _}:
            return answer
        case _:
            return answer


def _object(schema: Mapping[str, Any], answer: str) -> Any:
    if isinstance(given := value_of_json(answer), dict):
        return given
    properties = {name: each for name, each in schema.get("properties", {}).items() if isinstance(each, dict)}
    required = [name for name in schema.get("required", ()) if name in properties] or list(properties)[:1]
    return {name: payload(properties[name], answer) for name in required} or answer
