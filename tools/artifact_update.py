"""`artifact_update`: the model writes an artifact, which grows while the call is written.

Invariant: a call acted on while it streams, however it is cut, leaves what applying the whole call at once leaves.

So text goes to the store delta by delta, but only after `append` and `artifact_id` are known; earlier text is held
back.

The last change of a call carries the fields that follow it (`name`, `last_chunk`), and closes the version. So something
is held back for it: a file or a data part, until the next part begins; and of a text, unless the call is known not to
close the version, the last character and whatever arrives together with the end of the input.

A replacement is rejected if someone else has changed the artifact since the model last read or wrote it, and the model
gets a report of the changes. An append needs no such check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from a2a_canvas.store.changes import AppendParts, ReplaceParts
from a2a_canvas.store.models import AppliedChange, Kind, Part, Ref, text_part
from a2a_canvas.tools.change_report import describe_outcome
from a2a_canvas.tools.json_stream import Begin, Delta, JsonEvent, JsonStream, Path, Value
from a2a_canvas.tools.json_values import value_of_json
from a2a_canvas.tools.part_inputs import ArtifactId, Encodable, PartInput, TextInput, part_input, require_portable
from a2a_canvas.tools.streaming import InputHead, StreamingCall
from a2a_canvas.tools.tool import StrictInput, Tool, Workspace

NAME = "artifact_update"
DESCRIPTION = """\
Write an artifact: a document, program, file or data set that the user watches growing while you write it.

Write `append` and `artifact.artifact_id` first, then the parts.
- append=false replaces, append=true adds to what is there. Appending to an artifact that does not exist makes it.
- Which part an update means is decided by its kind (text, file, data), because parts have no ids:
  an artifact has at most one text part. All text parts of one update are joined, in order, into one; append joins
  them to the end of the existing text. Files and data are kept as separate items, in order; append adds items.
- append=false replaces a kind as a whole: all text, or all files, or all data. Kinds you do not name stay.
- To tell items of one kind apart, give them metadata such as {"partType": "summary"}, or keep a collection inside
  one data part, and write the whole collection when it changes.
- All text of an artifact has one mimeType. Write it, and metadata, before the text.
- last_chunk=true says that the artifact is finished for now; it becomes a new version.
- append=false needs the whole text: never "… rest unchanged …", never a note that a text was left out.
To change a passage in the middle of a text, call artifact_edit instead of writing the text again.
A text of more than about 5,000 words goes in several calls, one per answer, with append=true from the second on.\
"""


def _bool_of_string(value: object) -> object:
    """Some models write true and false in quotes."""
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def _from_text(value: object) -> object:
    """Some models write an object or a list as JSON in a string. A string that is not JSON is rejected as a string."""
    return value_of_json(value, value) if isinstance(value, str) else value


Bool = Annotated[bool, BeforeValidator(_bool_of_string)]


class ArtifactInput(StrictInput):
    artifact_id: ArtifactId
    name: Encodable | None = Field(default=None, description="What the user sees, for example 'report.md'.")
    description: Encodable | None = Field(default=None, description="One sentence.")
    parts: Annotated[list[PartInput], Field(min_length=1), BeforeValidator(_from_text)]


class ArtifactUpdateInput(StrictInput):
    """The whole input. The order of the fields is the order in which the model should write them."""

    append: Bool = Field(description="false: replace; true: add to the end.")
    last_chunk: Bool = Field(default=False, description="true: the artifact is finished for now.")
    artifact: Annotated[ArtifactInput, BeforeValidator(_from_text)]


class UpdateHead(InputHead):
    """The fields other than the parts. While `last_chunk` is unknown, the call may close the version."""

    append: Bool | None = None
    last_chunk: Bool = True
    artifact_id: ArtifactId | None = None
    name: Encodable | None = None
    description: Encodable | None = None

    @property
    def is_addressed(self) -> bool:
        """Whether it is known which artifact the text goes to, and whether it replaces or appends."""
        return self.append is not None and self.artifact_id is not None


_IN_TEXT = (("artifact",), ("artifact", "parts"))
"""Objects that some models write as JSON in a string."""

_FIELD_DEPTH = 4
"""Steps to a field of a part: artifact, parts, 0, text. A deeper value is read only when it is complete."""


class _PartBuilder:
    """The newest part: its known fields, and its content not yet in the store."""

    def __init__(self) -> None:
        self.kind: object = None
        self.media_type = ""
        self.metadata: dict[str, Any] = {}
        self.pieces: list[str] = []
        self.item: Part | None = None
        self._sent = False

    @property
    def has_content(self) -> bool:
        """Whether any of its content is there."""
        return self._sent or bool(self.pieces or self.item)

    def take_text(self, *, keep: int) -> Part | None:
        """The text to send now, all but its last `keep` characters."""
        text = "".join(self.pieces)
        if len(text) <= keep:
            return None
        self.pieces = [text[-keep:]] if keep else []
        return self._text(text[: len(text) - keep])

    def take_rest(self) -> Part | None:
        """The unsent rest. An empty text is sent once, because it may replace a text."""
        if self.kind != "text":
            item, self.item = self.item, None
            return item
        rest, self.pieces = "".join(self.pieces), []
        return self._text(rest) if rest or self.media_type or self.metadata or not self._sent else None

    def _text(self, text: str) -> Part:
        part = text_part(text, self.media_type, self.metadata)
        self.media_type, self.metadata, self._sent = "", {}, True
        return part


class _UpdateCall(StreamingCall[ArtifactUpdateInput]):
    def __init__(self, workspace: Workspace) -> None:
        super().__init__(NAME, ArtifactUpdateInput, _FIELD_DEPTH, workspace)
        self._in_text: dict[Path, JsonStream] = {path: JsonStream() for path in _IN_TEXT}
        self._head = UpdateHead()
        self._part = _PartBuilder()
        self._ready: list[Part] = []
        self._kinds: set[Kind] = set()
        self._sent_names: tuple[str | None, str | None] = (None, None)
        self._ref: Ref | None = None

    @property
    def label(self) -> str:
        title = self._head.name or (self._head.artifact_id if self._kinds or self._part.has_content else "")
        return f"Writing {title}…" if title and self._ref else ""

    async def _act(self, events: Sequence[JsonEvent]) -> None:
        for event in events:
            self._check(event)
        if self._head.is_addressed:
            self._take_text()
            await self._write()

    async def _undo(self) -> None:
        if self._ref:
            await self._workspace.store.discard(self._ref)

    async def _complete(self, whole: ArtifactUpdateInput) -> str:
        applied = await self._last_change(whole)
        if applied and applied.suggestions is not None:
            return describe_outcome(applied)
        if applied is None or not applied.last_chunk:
            return "Written; the draft stays open."
        return f"Written; version {applied.version} of {applied.artifact.artifact_id} is saved."

    # ------------------------------------------------------------- reading the input

    def _take(self, event: JsonEvent) -> None:
        match event.path:
            case ("append" | "last_chunk" as field,) | ("artifact", "artifact_id" | "name" | "description" as field):
                if isinstance(event, Value):
                    self._head = self._head.with_field(field, event.value)
            case ("artifact", "parts", int()):
                self._take_part(event)
            case ("artifact", "parts", int(), str() as field):
                self._take_field(field, event)
            case ("artifact",) | ("artifact", "parts") as path if isinstance(event, Delta):
                self._take_text_of(path, event.text)
            case _:
                pass

    def _take_text_of(self, path: Path, text: str) -> None:
        """Take the next piece of an object or list at `path` that is written as JSON in a string."""
        for event in self._in_text[path].feed(text):
            if event.path:
                self._check(replace(event, path=(*path, *event.path)))

    def _take_part(self, event: JsonEvent) -> None:
        if isinstance(event, Begin):
            self._take_rest()
            self._part = _PartBuilder()
        elif isinstance(event, Value):
            whole = part_input.validate_python(event.value)
            if not isinstance(whole, TextInput):
                self._part.item = whole.part()

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

    def _take_text(self) -> None:
        """Take the new text, except what may be the end of the call."""
        may_close = self._head.last_chunk
        if self._part.kind != "text" or (may_close and self._json.done):
            return
        if part := self._part.take_text(keep=1 if may_close else 0):
            self._ready.append(part)

    def _take_rest(self) -> None:
        if part := self._part.take_rest():
            self._ready.append(part)

    # ------------------------------------------------------------- writing to the store

    async def _write(self) -> None:
        assert self._head.artifact_id is not None
        self._ref = self._ref or self._workspace.ref(self._head.artifact_id)
        ready, self._ready = self._ready, []
        for part in ready:
            await self._apply(self._ref, part, done=False)

    async def _apply(self, ref: Ref, part: Part, *, done: bool, last_chunk: bool = False) -> AppliedChange:
        replaces = not self._head.append and part.kind not in self._kinds
        name, description = self._head.name, self._head.description
        self._kinds.add(part.kind)
        self._sent_names = (name, description)
        added = ((part,), name, description, last_chunk, done)
        store = self._workspace.store
        change = ReplaceParts(*added, store.known_version(ref.artifact_id)) if replaces else AppendParts(*added)
        return await store.apply(ref, change)

    async def _last_change(self, whole: ArtifactUpdateInput) -> AppliedChange | None:
        """Make the last change of the call: close the draft, or mark the call as complete."""
        ref = self._workspace.ref(whole.artifact.artifact_id)
        named_late = self._sent_names != (self._head.name, self._head.description)
        last = self._part.take_rest() or (text_part("") if named_late else None)
        if last:
            return await self._apply(ref, last, done=True, last_chunk=whole.last_chunk)
        return await self._workspace.store.end_call(ref, close=whole.last_chunk)


artifact_update = Tool(NAME, DESCRIPTION, ArtifactUpdateInput, _UpdateCall, eager=True)
