"""The request body of `POST /canvas/stream`: AG-UI's `RunAgentInput`. Pure.

Rule 1: the server keeps the conversation and reads only the last of the client's messages. Together they are what the
        client shows: a MESSAGES_SNAPSHOT repeats them (messages.py).
Rule 2: the value of `forwardedProps` under the URI of a canvas extension becomes the message's metadata: an operation,
        or what the user is looking at (docs/canvas.md).
Rule 3: `resume` answers an interrupt; the interrupt's id is that of the waiting task. A run has at most one.
Rule 4: `context` becomes text before the message, unless the message is an operation. Tools of the client are not
        called.
Rule 5: the parts that become part of the task are bounded as in A2A (`MAX_VALUES`), the thread's history, which the
        client sends along, by `MAX_MESSAGES`. Lists are counted before they are read, and read up to the first fault.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, assert_never, cast

from a2a.utils.errors import A2AError
from ag_ui import core
from pydantic import BaseModel, TypeAdapter, ValidationError

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.intent import Converse
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.protocols.a2a_v1.errors import invalid_field
from a2a_canvas.server.protocols.a2a_v1.projection.parts import check_characters, has_content, with_operations
from a2a_canvas.server.protocols.guard.checks import MAX_VALUES
from a2a_canvas.server.wire import AGENTSTACK, CANVAS
from a2a_canvas.store.models import FilePart, JsonValue, Part, Parts, text_part
from a2a_canvas.store.text.unicode import MAX_ID
from a2a_canvas.tools.faults import reason_of
from a2a_canvas.tools.part_inputs import require_portable

MAX_MESSAGES = 10_000
"""Messages of a request, which has the thread's whole history."""

RUN_METADATA = "ag-ui"
"""The key of the run in the message's metadata. So another run of the same message is another task."""

F = TypeVar("F", bound=BaseModel)
_MESSAGE: TypeAdapter[core.Message] = TypeAdapter(core.Message)


@dataclass(frozen=True, slots=True)
class RunInput:
    """One run.

    Attributes:
        message: the user's message; None to cancel the waiting task.
        task_id: the task whose interrupt this answers; empty for none.
        history: all messages of the request, including the new one: what the client shows. None for a client that sends
            only the new one.
    """

    thread_id: str
    run_id: str
    message: UserMessage | None
    task_id: str = ""
    history: tuple[core.Message, ...] | None = ()


def run_input(value: Mapping[str, JsonValue]) -> RunInput:
    """Parse a request body.

    Raises:
        InvalidParamsError, InvalidOperation: it is not a `RunAgentInput`, has no content, or has an operation that
            cannot be read.
    """
    _check_lengths(value)
    messages = value.get("messages")
    unread: dict[str, Any] = {"messages": [], "tools": None} if isinstance(messages, list) else {"tools": None}
    request = parse(core.RunAgentInput, {**value, **unread})
    check_id("threadId", request.thread_id)
    check_id("runId", request.run_id)
    metadata = _metadata(request)
    history = tuple(_history(cast("list[JsonValue]", messages)))
    if request.resume:
        return replace(_answer(request, request.resume, metadata), history=history)
    last = history[-1] if history else None
    if not isinstance(last, core.UserMessage):
        raise invalid_field("messages", "must end with a message from the user, or resume must answer an interrupt")
    where = f"messages.{len(history) - 1}"
    check_id(f"{where}.id", last.id)
    message = _message(f"{where}.content", last.id, tuple(_parts(last, f"{where}.content")), metadata)
    if isinstance(message.intent, Converse):
        message = replace(message, parts=(*_context(request), *message.parts))
    return RunInput(request.thread_id, request.run_id, message, history=history)


def last_message_field(value: Mapping[str, Any]) -> str:
    """The name of the message's field in this request body."""
    return f"messages.{len(value['messages']) - 1}.content"


def in_forwarded_props(error: InvalidOperation, value: Mapping[str, Any]) -> InvalidOperation:
    """The same error, with its field named as in this request body."""
    if error.field == "message.parts":
        return InvalidOperation(last_message_field(value), error.reason)
    forwarded = value.get("forwardedProps", value.get("forwarded_props"))
    uri = CANVAS if isinstance(forwarded, dict) and forwarded.get(CANVAS) is not None else AGENTSTACK
    nested = "" if error.field == f"metadata[{uri}]" else f".{error.field}"
    return InvalidOperation(f"forwardedProps.{uri}{nested}", error.reason)


# -------------------------------------------------------------------------- validation


def parse(form: type[F], value: Any, within: str = "") -> F:
    """`value` as a `form`. Raises `InvalidParamsError` for the error that is nested deepest.

    Args:
        within: the field that has `value`; empty for the whole body.
    """
    try:
        return form.model_validate(value)
    except ValidationError as error:
        raise _fault(error, value, within) from None


def _fault(error: ValidationError, value: Any, within: str) -> A2AError:
    # Every member of a union reports an error; the intended member parses deepest.
    first = max(error.errors(include_url=False), key=lambda found: len(found["loc"]))
    path = map(str, _path(first["loc"], value, missing=first["type"] == "missing"))
    return invalid_field(".".join((within, *path) if within else path), reason_of(first))


def _history(messages: list[JsonValue]) -> Iterator[core.Message]:
    for number, message in enumerate(messages):
        try:
            yield _MESSAGE.validate_python(message)
        except ValidationError as error:
            raise _fault(error, message, f"messages.{number}") from None


def _check_lengths(value: Mapping[str, JsonValue]) -> None:
    """Refuses lists that are too long, before they are read (rule 5)."""
    messages = value.get("messages")
    history = messages if isinstance(messages, list) else []
    _check_count("messages", len(history), MAX_MESSAGES)
    read = {name: value.get(name) for name in ("context", "resume")}
    for where, fields in (("", read), *((f"messages.{n}.", each) for n, each in enumerate(history))):
        for name, given in fields.items() if isinstance(fields, dict) else ():
            _check_count(f"{where}{name}", len(given) if isinstance(given, list) else 0)


def _path(loc: Sequence[int | str], value: Any, *, missing: bool) -> Iterator[int | str]:
    """The path in `value` for pydantic's `loc`, which also contains the names of union members."""
    for step in loc:
        match value:
            case dict() if step in value:
                value = value[step]
                yield step
            case list() if isinstance(step, int):
                value = value[step]
                yield step
    if missing:
        yield loc[-1]


def check_id(field: str, id_: str) -> None:
    """Raises `InvalidParamsError` for an id that is empty, too long, or has characters that an id may not have."""
    if not 0 < len(id_) <= MAX_ID:
        raise invalid_field(field, f"must have 1 to {MAX_ID} characters")
    check_characters(field, id_)


# ----------------------------------------------------------------- the parts of a message


def _message(field: str, message_id: str, parts: Parts, metadata: Mapping[str, JsonValue]) -> UserMessage:
    if not has_content(parts, metadata):
        raise invalid_field(field, "must say something")
    return UserMessage(message_id, parts, metadata)


def _metadata(request: core.RunAgentInput) -> dict[str, JsonValue]:
    forwarded = request.forwarded_props if isinstance(request.forwarded_props, dict) else {}
    ours = {uri: forwarded[uri] for uri in (CANVAS, AGENTSTACK) if uri in forwarded}
    _check_count("forwardedProps", _count_values(ours))
    try:
        return {**require_portable(with_operations(ours, {})), RUN_METADATA: {"runId": request.run_id}}
    except ValueError as error:
        raise invalid_field("forwardedProps", str(error)) from None


def _count_values(value: JsonValue) -> int:
    match value:
        case dict():
            return 1 + sum(map(_count_values, value.values()))
        case list():
            return 1 + sum(map(_count_values, value))
        case _:
            return 1


def _check_count(field: str, count: int, most: int = MAX_VALUES) -> None:
    if count > most:
        raise invalid_field(field, f"has {count} values and may have {most}; send large data as a file")


def _answer(
    request: core.RunAgentInput, answers: Sequence[core.ResumeEntry], metadata: dict[str, JsonValue]
) -> RunInput:
    if len(answers) > 1:
        raise invalid_field("resume", "must answer one interrupt, because a run has no more")
    answer = answers[0]
    check_id("resume.0.interruptId", answer.interrupt_id)
    if answer.status == "cancelled":
        return RunInput(request.thread_id, request.run_id, None, answer.interrupt_id)
    message_id = f"{request.run_id}:{answer.interrupt_id}"[:MAX_ID]
    message = _message("resume.0.payload", message_id, (text_part(_payload_text(answer.payload)),), metadata)
    if not isinstance(message.intent, Converse):
        raise invalid_field("forwardedProps", "must not ask for an operation while resume answers an interrupt")
    return RunInput(request.thread_id, request.run_id, message, answer.interrupt_id)


def _payload_text(payload: Any) -> str:
    if payload is None:
        return ""
    return payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)


def _context(request: core.RunAgentInput) -> Iterator[Part]:
    items = request.context or ()
    for item in items:
        yield text_part(f"[{item.description}: {item.value}]")


def _parts(message: core.UserMessage, where: str) -> Iterator[Part]:
    if isinstance(message.content, str):
        yield text_part(message.content)
        return
    for number, part in enumerate(message.content):
        yield (
            text_part(part.text) if isinstance(part, core.TextPart) else _file(part.source, f"{where}.{number}.source")
        )


def _file(source: core.PartSource, where: str) -> FilePart:
    match source:
        case core.DataSource():
            return FilePart(_decode(source.value, f"{where}.value"), media_type=source.mime_type)
        case core.UrlSource() if not source.value:
            raise invalid_field(f"{where}.value", "must be a URL")
        case core.UrlSource():
            return FilePart(url=source.value, media_type=source.mime_type or "")
        case core.FileSource():
            raise invalid_field(where, "is a file of a model provider, which cannot be read here; send data or a URL")
        case _:
            assert_never(source)


def _decode(value: str, where: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except ValueError:  # of binascii, and for what is not ASCII
        raise invalid_field(where, "must be base64") from None
