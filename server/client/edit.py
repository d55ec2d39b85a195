"""`a2a-canvas edit`, `undo`, `redo`, `restore` and `put`: one operation on one artifact.

Rule 1: an operation is sent only to a server whose card lists `urn:a2a-canvas:canvas:v1`. Any other agent would read
        it as a request in words.
Rule 2: on a terminal the new passage is shown while it is written. An output that is not a terminal gets it once,
        when the edit is complete, ending in a newline; an edit that breaks off prints nothing there. Statuses and
        results go to `err` then.
Rule 3: the artifact itself is not shown: `show` and `diff` do that. It is read first, for its name, and so that
        an unknown artifact gives the same message for every operation.
Rule 4: a passage is shown as if it were an artifact, under the id of its edit.
Rule 5: the complete passage replaces its pieces, because some may have been missed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, TextIO, assert_never
from uuid import uuid4

import httpx
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from a2a_canvas.server.client import connection
from a2a_canvas.server.client.artifacts import ArtifactReader, NotServed, address, target_of, text_of
from a2a_canvas.server.client.connection import ConnectionLost
from a2a_canvas.server.client.display import ArtifactParts, FailureNotice, FinalReply, ScreenEvent, StatusText
from a2a_canvas.server.client.errors import CannotBeDone, ClientError
from a2a_canvas.server.client.exchange import Sleep, carry_out
from a2a_canvas.server.client.fold import ENDED_BADLY, SeenTask, events
from a2a_canvas.server.client.invocation import Invocation
from a2a_canvas.server.client.operations import (
    REDO,
    REDO_STEP,
    UNDO,
    UNDO_STEP,
    ArtifactOperation,
    ArtifactTarget,
    EditRequest,
    LineRange,
    TextMatch,
    edit_lines,
    edit_match,
    put,
    restore,
)
from a2a_canvas.server.client.terminal import Terminal, exact
from a2a_canvas.server.wire import CANVAS, TURN


async def operate(
    target: ArtifactTarget,
    request: ArtifactOperation | EditRequest,
    out: TextIO,
    err: TextIO,
    *,
    pause: Sleep = asyncio.sleep,
) -> int:
    """Have an operation done on an artifact and print its result: the new passage, or a sentence (`carry_out`).

    Returns:
        The exit code: 0 done, 1 failed or rejected, 2 not sent because it cannot be done, 130 interrupted.
    """
    return await carry_out(_OperationCommand(target, request, out), out, err, pause=pause)


class _OperationCommand:
    extensions: Sequence[str] = (TURN, CANVAS)

    def __init__(self, target: ArtifactTarget, request: ArtifactOperation | EditRequest, out: TextIO) -> None:
        self.url, self.headers = target.url, target.headers
        self.json, self.thinking = target.json, target.thinking
        self._target, self._request, self._out = target, request, out
        self._live = out.isatty()
        self._name = ""
        self._unfinished: dict[str, str] = {}

    async def message(self, http: httpx.AsyncClient, card: pb.AgentCard) -> pb.Message:
        if not connection.offers(card, CANVAS):
            raise ClientError(f"The agent at {self.url} takes no edits: its card does not list {CANVAS}")
        reader = ArtifactReader(http, address(card, self.url), self._target)
        current = await _current(reader)
        self._name = str(current.get("name", "")) if current else ""
        operation = await _operation(self._request, reader, current)
        return message_of(operation, self._target)

    def show(self, response: pb.StreamResponse, seen: SeenTask, terminal: Terminal) -> None:
        for event in events(response, seen):
            if not isinstance(event, ArtifactParts):
                terminal.show(event)
        for step in passage_steps(response):
            if self._live:
                # Under one id: a passage that is written again after a break replaces the first.
                name = self._name or step.shown.name
                terminal.show(replace(step.shown, artifact_id=self._target.artifact, name=name))
            else:
                self._gather(step)

    def closing(self, seen: SeenTask) -> list[ScreenEvent]:
        if seen.state in ENDED_BADLY:
            return []
        passage_on_out = isinstance(self._request, EditRequest) and not self._live
        return [StatusText(seen.message) if passage_on_out else FinalReply(seen.message)]

    def interrupted(self, seen: SeenTask) -> FailureNotice:
        return FailureNotice(f"Interrupted; the task goes on{seen.where}", (self._target.how_to_look(),))

    def advice(self, error: Exception, seen: SeenTask) -> tuple[str, ...]:
        return (self._target.how_to_look(),) if isinstance(error, ConnectionLost) else ()

    def _gather(self, step: PassageStep) -> None:
        edit, text = step.shown.artifact_id, "".join(map(str, step.shown.parts))
        before = self._unfinished.pop(edit, "") if step.shown.append else ""
        if step.complete:
            passage = before + text
            exact(self._out, passage if passage.endswith("\n") or not passage else f"{passage}\n")
        elif not step.aborted:
            self._unfinished[edit] = before + text


def message_of(operation: ArtifactOperation, target: ArtifactTarget) -> pb.Message:
    """The message that asks for an operation (docs/extensions.md)."""
    message = pb.Message(
        message_id=str(uuid4()), role=pb.ROLE_USER, parts=[pb.Part(text=operation.text)], context_id=target.context
    )
    message.metadata.update({CANVAS: {"artifactId": target.artifact, **operation.fields}})
    return message


async def _current(reader: ArtifactReader) -> dict[str, Any] | None:
    """The current version; None if the server does not show it, which most operations can do without."""
    try:
        return await reader.read()
    except ClientError as error:
        if isinstance(error, NotServed) and error.status == HTTPStatus.NOT_FOUND:
            raise
        return None


async def _operation(
    request: ArtifactOperation | EditRequest, reader: ArtifactReader, current: dict[str, Any] | None
) -> ArtifactOperation:
    if isinstance(request, ArtifactOperation):
        return request
    match request.place:
        case LineRange() as lines:
            return edit_lines(request, lines)
        case TextMatch() as match:
            text, version = await _seen_text(request.base, reader, current)
            return edit_match(request, match, text, version)
        case _:
            assert_never(request.place)


async def _seen_text(base: int | None, reader: ArtifactReader, current: dict[str, Any] | None) -> tuple[str, int]:
    """The text that the user saw, and the number of its version."""
    if base is not None:
        return text_of(await reader.read("versions", str(base))), base
    artifact = current or await reader.read()
    if artifact.get("open"):
        raise ClientError(f"{reader.target.artifact} is being written just now. Try again when that task is done")
    return text_of(artifact), int(artifact.get("version", 0))


@dataclass(frozen=True, slots=True)
class PassageStep:
    """One step of a passage that the server writes: its text so far, or what is appended to it.

    `complete`: the edit is done. `aborted`: the edit was given up.
    """

    shown: ArtifactParts
    complete: bool = False
    aborted: bool = False


def passage_steps(response: pb.StreamResponse) -> list[PassageStep]:
    """What a response says of passages, by `urn:a2a-canvas:canvas:v1`; nothing if it is malformed."""
    match response.WhichOneof("payload"):
        case "task":
            edits = _canvas(response.task.metadata).get("openEdits")
            known = [each for each in edits if isinstance(each, dict)] if isinstance(edits, list) else []
            return [PassageStep(_parts(edit, edit.get("text", ""))) for edit in known]
        case "status_update":
            edit = _canvas(response.status_update.metadata).get("edit")
            return _phase(edit) if isinstance(edit, dict) else []
        case _:
            return []


def _canvas(metadata: Struct) -> dict[str, Any]:
    canvas = MessageToDict(metadata).get(CANVAS)
    return canvas if isinstance(canvas, dict) else {}


def _phase(edit: dict[str, Any]) -> list[PassageStep]:
    match edit.get("phase"):
        case "start":
            return [PassageStep(_parts(edit, ""))]
        case "chunk":
            return [PassageStep(_parts(edit, edit.get("chunk", ""), append=True))]
        case "complete" if edit.get("strategy") == "replace":
            return [PassageStep(_parts(edit, edit.get("updatedContent", "")), complete=True)]
        case "complete":
            # Here `updatedContent` includes the selected text, too.
            return [PassageStep(_parts(edit, "", append=True), complete=True)]
        case "abort":
            return [PassageStep(_parts(edit, "", append=True), aborted=True)]
        case _:
            return []


def _parts(edit: dict[str, Any], text: object, *, append: bool = False) -> ArtifactParts:
    parts = (str(text),) if text != "" else ()
    return ArtifactParts(str(edit.get("id", "")), parts, str(edit.get("artifactId", "")), append)


# --------------------------------------------------------------------- as they are typed


async def _run(
    invocation: Invocation,
    artifact: str,
    context: str,
    request: ArtifactOperation | EditRequest,
    thinking: bool = False,
) -> int:
    target = target_of(invocation, context, artifact, thinking=thinking)
    return await operate(target, request, invocation.out, invocation.err)


async def run_edit(
    invocation: Invocation,
    artifact: str,
    instruction: str,
    lines: LineRange | None,
    match: str | None,
    before: bool,
    after: bool,
    base: int | None,
    context: str,
) -> int:
    if (lines is None) == (match is None):
        raise CannotBeDone("Give --lines or --match, to say which passage")
    if before and after:
        raise CannotBeDone("Give --before or --after, not both")
    place = lines or TextMatch(match or "")
    request = EditRequest(
        instruction, place, "insert_before" if before else "insert_after" if after else "replace", base
    )
    return await _run(invocation, artifact, context, request, invocation.thinking)


async def run_put(invocation: Invocation, artifact: str, file: str, base: int | None, context: str) -> int:
    return await _run(invocation, artifact, context, put(text_of_file(file), base))


async def run_undo(invocation: Invocation, artifact: str, context: str, step: bool) -> int:
    return await _run(invocation, artifact, context, UNDO_STEP if step else UNDO)


async def run_redo(invocation: Invocation, artifact: str, context: str, step: bool) -> int:
    return await _run(invocation, artifact, context, REDO_STEP if step else REDO)


async def run_restore(invocation: Invocation, artifact: str, version: int, context: str) -> int:
    return await _run(invocation, artifact, context, restore(version))


def text_of_file(file: str) -> str:
    """The text of a file, `-` for the standard input.

    Raises:
        CannotBeDone: it cannot be read, or is no text.
    """
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode()
    except OSError as error:
        raise CannotBeDone(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CannotBeDone(f"{file} is not text in UTF-8: byte {error.start + 1} is wrong") from None
