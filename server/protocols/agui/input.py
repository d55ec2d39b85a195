"""What a client of `POST /canvas/stream` asks for: AG-UI's `RunAgentInput`. Pure.

Rule 1: the server keeps the conversation; of the client's messages the last one is what is said now.
Rule 2: what `forwardedProps` have under the URI of a canvas extension becomes the message's metadata: an operation, or
        what the user is looking at (docs/extensions.md).
Rule 3: an interrupt is answered by `resume`; its id is that of the task that waits. A run has one at most.
Rule 4: what the client wants the agent to know (`context`) stands before the message, unless that is an operation.
        Tools of the client are not called.
Rule 5: what becomes part of the task is bounded as in A2A (`MAX_VALUES`); the thread's past, which the client sends
        along, is not.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, assert_never

from ag_ui import core
from pydantic import BaseModel, ValidationError

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.intent import AGENTSTACK, CANVAS, intent_of
from a2a_canvas.server.agent.operations import Converse, InvalidOperation
from a2a_canvas.server.protocols.a2a_v1.errors import invalid_field
from a2a_canvas.server.protocols.a2a_v1.parts import check_characters
from a2a_canvas.server.protocols.guard.checks import MAX_VALUES
from a2a_canvas.store.models import FilePart, JsonValue, Part, Parts, TextPart, text_part
from a2a_canvas.store.text.unicode import MAX_ID
from a2a_canvas.tools.part_inputs import require_portable

METADATA = "ag-ui"
"""Under it the message's metadata name the run. It makes a new run of the same message a new task."""

F = TypeVar("F", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class RunInput:
    """One run.

    Attributes:
        message: what the user says; None if they abandon the task that waits.
        task_id: the task whose interrupt this answers; empty for none.
    """

    thread_id: str
    run_id: str
    message: UserMessage | None
    task_id: str = ""


def run_input(value: Mapping[str, JsonValue]) -> RunInput:
    """The run that a request body asks for.

    Raises:
        InvalidParamsError, InvalidOperation: it is no `RunAgentInput`, says nothing, or wants what cannot be read.
    """
    given = read(core.RunAgentInput, value)
    check_id("threadId", given.thread_id)
    check_id("runId", given.run_id)
    metadata = _metadata(given)
    if given.resume:
        return _resumed(given, given.resume, metadata)
    last = given.messages[-1] if given.messages else None
    if not isinstance(last, core.UserMessage):
        raise invalid_field("messages", "the last one must be the user's, or resume must answer an interrupt")
    where = f"messages.{len(given.messages) - 1}"
    check_id(f"{where}.id", last.id)
    message = said(f"{where}.content", last.id, tuple(_parts(last, f"{where}.content")), metadata)
    if isinstance(intent_of(message), Converse):
        message = replace(message, parts=(*_context(given), *message.parts))
    return RunInput(given.thread_id, given.run_id, message)


def last_message(value: Mapping[str, Any]) -> str:
    """What the sender calls what is said now."""
    return f"messages.{len(value['messages']) - 1}.content"


def in_forwarded_props(error: InvalidOperation, value: Mapping[str, Any]) -> InvalidOperation:
    """The same error, with its field named as in this request body."""
    if error.field == "message.parts":
        return InvalidOperation(last_message(value), error.reason)
    forwarded = value.get("forwardedProps", value.get("forwarded_props"))
    uri = CANVAS if isinstance(forwarded, dict) and forwarded.get(CANVAS) is not None else AGENTSTACK
    whole = error.field == f"metadata[{uri}]"
    return InvalidOperation(f"forwardedProps.{uri}" if whole else f"forwardedProps.{uri}.{error.field}", error.reason)


# ------------------------------------------------------------- what both bodies have in common


def read(form: type[F], value: Any, within: str = "") -> F:
    """`value` as a `form`. Raises `InvalidParamsError` that names what is wrong farthest inside.

    Args:
        within: the field that `value` is; empty for the whole body.
    """
    try:
        return form.model_validate(value)
    except ValidationError as error:
        # Of a union every member complains; the one that was meant gets farthest.
        first = max(error.errors(include_url=False, include_context=False), key=lambda found: len(found["loc"]))
    path = map(str, _path(first["loc"], value, missing=first["type"] == "missing"))
    raise invalid_field(".".join((within, *path) if within else path), first["msg"].removeprefix("Value error, "))


def _path(loc: Sequence[int | str], value: Any, *, missing: bool) -> Iterator[int | str]:
    """The place in `value` that is meant by `loc`, which also names the members of unions on the way there."""
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


def said(field: str, message_id: str, parts: Parts, metadata: Mapping[str, JsonValue]) -> UserMessage:
    """A message. Raises `InvalidParamsError` if there is nothing in it."""
    if not any(not isinstance(part, TextPart) or part.text.strip() for part in parts):
        raise invalid_field(field, "must say something")
    return UserMessage(message_id, parts, metadata)


def check_id(field: str, given: str) -> None:
    """Raises `InvalidParamsError` for an id that is empty, or too long to stand in every event, or unfit to be one."""
    if not 0 < len(given) <= MAX_ID:
        raise invalid_field(field, f"must have 1 to {MAX_ID} characters")
    check_characters(field, given)


# ------------------------------------------------------------------------- the parts of a run


def _metadata(given: core.RunAgentInput) -> dict[str, JsonValue]:
    forwarded = given.forwarded_props if isinstance(given.forwarded_props, dict) else {}
    told = {uri: forwarded[uri] for uri in (CANVAS, AGENTSTACK) if uri in forwarded}
    _check_count("forwardedProps", _values(told))
    try:
        return {**require_portable(told), METADATA: {"runId": given.run_id}}
    except ValueError as error:
        raise invalid_field("forwardedProps", str(error)) from None


def _values(value: JsonValue) -> int:
    match value:
        case dict():
            return 1 + sum(map(_values, value.values()))
        case list():
            return 1 + sum(map(_values, value))
        case _:
            return 1


def _check_count(field: str, count: int) -> None:
    if count > MAX_VALUES:
        raise invalid_field(field, f"has {count} values and may have {MAX_VALUES}; send large data as a file")


def _resumed(
    given: core.RunAgentInput, answers: Sequence[core.ResumeEntry], metadata: dict[str, JsonValue]
) -> RunInput:
    if len(answers) > 1:
        raise invalid_field("resume", "must answer one interrupt, because a run has no more")
    answer = answers[0]
    check_id("resume.0.interruptId", answer.interrupt_id)
    if answer.status == "cancelled":
        return RunInput(given.thread_id, given.run_id, None, answer.interrupt_id)
    message_id = f"{given.run_id}:{answer.interrupt_id}"[:MAX_ID]
    message = said("resume.0.payload", message_id, (text_part(_words(answer.payload)),), metadata)
    if not isinstance(intent_of(message), Converse):
        raise invalid_field("forwardedProps", "must not ask for an operation while resume answers an interrupt")
    return RunInput(given.thread_id, given.run_id, message, answer.interrupt_id)


def _words(payload: Any) -> str:
    if payload is None:
        return ""
    return payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)


def _context(given: core.RunAgentInput) -> Iterator[Part]:
    items = given.context or ()
    _check_count("context", len(items))
    for item in items:
        yield text_part(f"[{item.description}: {item.value}]")


def _parts(message: core.UserMessage, where: str) -> Iterator[Part]:
    if isinstance(message.content, str):
        yield text_part(message.content)
        return
    _check_count(where, len(message.content))
    for number, part in enumerate(message.content):
        yield (
            text_part(part.text) if isinstance(part, core.TextPart) else _file(part.source, f"{where}.{number}.source")
        )


def _file(source: core.PartSource, where: str) -> FilePart:
    match source:
        case core.DataSource():
            return FilePart(_decoded(source.value, f"{where}.value"), media_type=source.mime_type)
        case core.UrlSource() if not source.value:
            raise invalid_field(f"{where}.value", "must be a URL")
        case core.UrlSource():
            return FilePart(url=source.value, media_type=source.mime_type or "")
        case core.FileSource():
            raise invalid_field(where, "is a provider's own file, which cannot be read here; send data or a URL")
        case _:
            assert_never(source)


def _decoded(value: str, where: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except ValueError:  # of binascii, and for what is not ASCII
        raise invalid_field(where, "must be base64") from None
