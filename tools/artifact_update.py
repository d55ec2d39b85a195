"""`artifact_update`: the model writes an artifact, and it grows while the call is still being written.

Law: a call acted on while it streams, however it is cut, leaves what applying the whole call at once leaves.

So text goes to the store delta by delta, but only once `append` and `artifact_id` are known; before that it is
held back. Files and data go when they are whole, each of them held back until the next part begins or the call
ends, so that the last change of the call can carry what came after it (`name`, `last_chunk`).

Nothing is replaced that somebody else has changed since the model read or wrote it last: the call is refused, and says
what was changed. What is added needs no such guard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from a2a_canvas.store.changes import AppendParts, ReplaceParts
from a2a_canvas.store.errors import LimitReached, StoreError
from a2a_canvas.store.models import Applied, Kind, Part, Ref, text_part
from a2a_canvas.tools.artifact_input import DESCRIPTION, ArtifactUpdateInput, UpdateHead
from a2a_canvas.tools.artifact_read import refusal_reason
from a2a_canvas.tools.base import Done, Failed, Outcome, ToolStream, Workspace, explain, not_json, schema_of
from a2a_canvas.tools.json_events import Begin, Delta, DuplicateCheck, JsonError, JsonEvent, Path, Value
from a2a_canvas.tools.json_stream import JsonStream
from a2a_canvas.tools.part_inputs import TextInput, part_input, require_portable

NAME = "artifact_update"


class ArtifactUpdate:
    """The tool."""

    name = NAME
    description = DESCRIPTION
    eager = True
    acts_last = False

    @property
    def input_schema(self) -> Mapping[str, Any]:
        return schema_of(ArtifactUpdateInput)

    def open(self, workspace: Workspace) -> ToolStream:
        return _UpdateCall(workspace)


class _InvalidInput(Exception):
    """What to tell the model."""


_IN_TEXT = (("artifact",), ("artifact", "parts"))
"""What some models write as JSON in a string."""

_FIELD_DEPTH = 4
"""Steps to a field of a part: artifact, parts, 0, text. What stands deeper is looked at only when it is whole."""


class _PartBuilder:
    """The part that is being written: what is known of it, and the text that has not gone to the store."""

    def __init__(self) -> None:
        self.kind: object = None
        self.media_type = ""
        self.metadata: dict[str, Any] = {}
        self.pieces: list[str] = []
        self.written = False

    def take(self) -> Part | None:
        """What can go now of a text part. An empty one goes once: it may replace a text by nothing."""
        if self.written and not (self.pieces or self.media_type or self.metadata):
            return None
        part = text_part("".join(self.pieces), self.media_type, self.metadata)
        self.pieces, self.media_type, self.metadata, self.written = [], "", {}, True
        return part


class _UpdateCall:
    """One call. `_error` is set once by whatever goes wrong; nothing happens after that."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._json = JsonStream()
        self._in_text: dict[Path, JsonStream] = {path: JsonStream() for path in _IN_TEXT}
        self._head = UpdateHead()
        self._once = DuplicateCheck(_FIELD_DEPTH)
        self._part = _PartBuilder()
        self._ready: list[Part] = []
        self._held_item: Part | None = None
        self._kinds: set[Kind] = set()
        self._told: tuple[str | None, str | None] = (None, None)
        self._ref: Ref | None = None
        self._error: Failed | None = None

    @property
    def label(self) -> str:
        title = self._head.name or (self._head.artifact_id if self._kinds else "")
        return f"Writing {title}…" if title and self._ref else ""

    async def feed(self, fragment: str) -> None:
        if self._error:
            return
        try:
            for event in self._json.feed(fragment):
                self._take(event)
            self._take_text()
            await self._write()
        except JsonError as error:
            await self._fail(not_json(NAME, str(error)))
        except _InvalidInput as error:
            await self._fail(str(error))
        except LimitReached:
            raise
        except StoreError as error:
            await self._refused(error)

    async def finish(self) -> Outcome:
        if self._error:
            return self._error
        try:
            self._json.flush()
            whole = ArtifactUpdateInput.model_validate(self._json.value)
            return Done(_summary(await self._complete(whole)))
        except JsonError as error:
            return await self._fail(not_json(NAME, str(error)))
        except ValidationError as error:
            return await self._fail(explain(NAME, error))
        except LimitReached:
            raise
        except StoreError as error:
            return await self._refused(error)

    async def abort(self) -> None:
        await self._fail("The call was cut off.")

    # ------------------------------------------------------------- what the input says

    def _take(self, event: JsonEvent) -> None:
        try:
            self._once.check(event)
            self._take_known(event)
        except ValidationError as error:  # it names the fields of a part from the part on, others with their own name
            at = event.path if isinstance(event.path[-1], int) else event.path[:-1]
            raise _InvalidInput(explain(NAME, error, at)) from error
        except ValueError as error:
            raise _InvalidInput(explain(NAME, error, event.path)) from error

    def _take_known(self, event: JsonEvent) -> None:
        match event.path:
            case ("append" | "last_chunk" as field,) | ("artifact", "artifact_id" | "name" | "description" as field):
                if isinstance(event, Value):
                    self._head = self._head.knowing(field, event.value)
            case ("artifact", "parts", int()):
                self._take_part(event)
            case ("artifact", "parts", int(), str() as field):
                self._take_field(field, event)
            case ("artifact",) | ("artifact", "parts") as path if isinstance(event, Delta):
                self._take_text_of(path, event.text)
            case _:
                pass

    def _take_text_of(self, path: Path, text: str) -> None:
        """The object or list at `path` is written as JSON in a string, of which `text` is the next piece."""
        for event in self._in_text[path].feed(text):
            if event.path:
                self._take(replace(event, path=(*path, *event.path)))

    def _take_part(self, event: JsonEvent) -> None:
        if isinstance(event, Begin):
            self._release_item()
            self._part = _PartBuilder()
        elif isinstance(event, Value):
            whole = part_input.validate_python(event.value)
            if isinstance(whole, TextInput):
                self._take_text(at_end=True)
            else:
                self._release_item()
                self._held_item = whole.part()

    def _take_field(self, field: str, event: JsonEvent) -> None:
        part = self._part
        match field, event:
            case "text", Delta(text=text):
                part.pieces.append(text)
            case "kind", Value(value=kind):
                part.kind = kind
            case "mimeType", Value(value=str() as media_type):
                part.media_type = require_portable(media_type)
            case "metadata", Value(value=dict() as metadata):
                part.metadata = require_portable(metadata)
            case _:
                pass

    def _take_text(self, *, at_end: bool = False) -> None:
        due = at_end or (self._part.pieces and self._head.addressed)
        if due and self._part.kind == "text" and (part := self._part.take()):
            self._ready.append(part)

    def _release_item(self) -> None:
        if self._held_item:
            self._ready.append(self._held_item)
            self._held_item = None

    # ------------------------------------------------------------- what the store is told

    async def _write(self) -> None:
        if not self._head.addressed:
            return
        assert self._head.artifact_id is not None
        self._ref = self._ref or self._workspace.ref(self._head.artifact_id)
        ready, self._ready = self._ready, []
        for part in ready:
            await self._apply(self._ref, part, done=False)

    async def _apply(self, ref: Ref, part: Part, *, done: bool, last_chunk: bool = False) -> Applied:
        replaces = not self._head.append and part.kind not in self._kinds
        name, description = self._head.name, self._head.description
        self._kinds.add(part.kind)
        self._told = (name, description)
        added = ((part,), name, description, last_chunk, done)
        store = self._workspace.store
        change = ReplaceParts(*added, store.known(ref.artifact_id)) if replaces else AppendParts(*added)
        return await store.apply(ref, change)

    async def _complete(self, whole: ArtifactUpdateInput) -> Applied | None:
        """The last change of the call: it closes the draft, or says that what is written is to be kept."""
        await self._write()
        ref = self._workspace.ref(whole.artifact.artifact_id)
        named_late = self._told != (self._head.name, self._head.description)
        last = self._held_item or (text_part("") if named_late else None)
        if last:
            return await self._apply(ref, last, done=True, last_chunk=whole.last_chunk)
        if whole.last_chunk:
            return await self._workspace.store.close(ref)
        await self._workspace.store.complete_call(ref)
        return None

    async def _refused(self, error: StoreError) -> Failed:
        return await self._fail(f"{await refusal_reason(error, self._workspace)} Nothing was changed.")

    async def _fail(self, reason: str) -> Failed:
        if self._error is None:
            self._error = Failed(reason)
            if self._ref:
                await self._workspace.store.discard(self._ref)
        return self._error


def _summary(applied: Applied | None) -> str:
    if applied is None or not applied.last_chunk:
        return "Written; the draft stays open."
    return f"Written; version {applied.version} of {applied.artifact.artifact_id} is saved."
