"""`artifact_read` and `artifact_list`: what the model is shown of artifacts."""

from __future__ import annotations

from pydantic import BaseModel, Field

from a2a_canvas.store.errors import StoreError
from a2a_canvas.store.models import Artifact, DataPart, JsonValue, Part, TextPart, Version
from a2a_canvas.tools.change_report import explain_error
from a2a_canvas.tools.part_inputs import part_output
from a2a_canvas.tools.tool import Done, Failed, Outcome, Workspace, to_json, whole_input_tool


class ReadInput(BaseModel):
    artifact_id: str = Field(description="The id of the artifact to read.")
    version: int | None = Field(
        default=None, description="The number of an older version; without it, what is current."
    )
    first_line: int = Field(default=1, ge=1, description="The first line of the text to show, from 1.")
    last_line: int | None = Field(default=None, ge=1, description="The last line to show; without it, to the end.")


class ListInput(BaseModel):
    pass


async def _read(call: ReadInput, workspace: Workspace) -> Outcome:
    ref = workspace.ref(call.artifact_id)
    try:
        artifact = await workspace.store.get(ref)
        versions = await workspace.store.versions(ref)
        old = None if call.version is None else await workspace.store.version(ref, call.version)
    except StoreError as error:
        return Failed(await explain_error(error, workspace))
    if artifact.never_completed:
        return Done(to_json({**_head(artifact, 0), "parts": [], "note": NEVER_COMPLETED}))
    if old is None or old.number == artifact.version:
        workspace.store.model_read(call.artifact_id, artifact.version)
    content = artifact.content if old is None else old.content
    head = _head(artifact, len(versions), old)
    room, parts = workspace.read_limit, []
    for part in content.parts:
        parts.append(_describe_part(part, call, room))
        room = max(0, room - len(to_json(parts[-1])))
    return Done(to_json({**head, "parts": parts}))


NEVER_COMPLETED = "The call that wrote it was cut off, and nothing of it is kept. Write it from its beginning."


def _describe_part(part: Part, call: ReadInput, room: int) -> dict[str, JsonValue]:
    shown = part_output(part)
    if isinstance(part, TextPart):
        return shown | _lines(part.text, call.first_line, call.last_line, room)
    if isinstance(part, DataPart) and part.size > room:
        text = to_json(part.data)[:room]
        return shown | {"data": text, "size": part.size, "note": f"Only the first {len(text)} characters are shown."}
    return shown


def _lines(text: str, first: int, last: int | None, room: int) -> dict[str, JsonValue]:
    """The requested lines that fit; with the total number of lines if some are missing."""
    lines = text.split("\n")
    asked = "\n".join(lines[first - 1 : last])
    shown = asked[:room]
    if len(shown) < len(asked) and "\n" in shown:
        shown = shown[: shown.rindex("\n")]
    if len(shown) == len(text):
        return {"text": text}
    end = first + shown.count("\n")
    part: dict[str, JsonValue] = {"first_line": first, "last_line": end, "lines": len(lines), "text": shown}
    if len(shown) == len(asked):
        return part
    more = f"Read on with first_line={end + 1}." if asked[len(shown)] == "\n" else f"Line {end} is too long to show."
    return {"note": f"Not all of it is shown. {more}", **part}


async def _list(call: ListInput, workspace: Workspace) -> Outcome:
    store = workspace.store
    artifacts = await store.list(workspace.context_id)
    return Done(
        to_json([_entry(each, len(await store.versions(workspace.ref(each.artifact_id)))) for each in artifacts])
    )


def _head(artifact: Artifact, versions: int, old: Version | None = None) -> dict[str, object]:
    content = old.content if old else artifact.content
    described = {"description": content.description} if content.description else {}
    named = {"artifact_id": artifact.artifact_id, "name": content.name, **described}
    if old:
        return {**named, "version": old.number, "versions": versions, "current_version": artifact.version}
    return {**named, "version": artifact.version, "versions": versions, "draft": artifact.open}


def _entry(artifact: Artifact, versions: int) -> dict[str, object]:
    kinds = [part.kind for part in artifact.parts]
    size = sum(part.size for part in artifact.parts)
    note = {"note": NEVER_COMPLETED} if artifact.never_completed else {}
    return {**_head(artifact, versions), "kinds": sorted(set(kinds)), "parts": len(kinds), "size": size, **note}


artifact_read = whole_input_tool(
    "artifact_read",
    "Read an artifact as it stands now: its parts with their text and data. Files are shown by name, type and size. "
    "`version` is the current one (0: none is finished yet) of `versions`, numbered from 1; with the parameter "
    "`version`, an older one is shown. Of a long text the first part is shown, and how long the whole is: read on "
    "with `first_line`.",
    ReadInput,
    _read,
)
artifact_list = whole_input_tool(
    "artifact_list",
    "List the artifacts of this conversation, the one changed last at the end: ids, names, the current version and "
    "the number of versions, kinds, bytes.",
    ListInput,
    _list,
)
