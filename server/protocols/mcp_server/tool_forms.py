"""The arguments of the tools, and their descriptions for the host's model. Pure.

Rule 1: an artifact's id names its context, because a request has no session: `context/artifact`, percent-encoded as in
        the paths of `/artifacts`.
Rule 2: the descriptions are short: all of them are in every conversation of the host (test_tool_forms.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from a2a_canvas.server.agent.operation_forms import Id as Given
from a2a_canvas.server.agent.operation_forms import InvalidOperation, read_form
from a2a_canvas.server.wire import artifact_path
from a2a_canvas.store.text.unicode import valid_id
from a2a_canvas.store.text.wording import choice


def _as_lines(given: Any) -> Any:
    """`12` or `12-40`, as a text."""
    text = str(given)
    if isinstance(given, bool) or not re.fullmatch(r"[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?", text):
        raise ValueError(f"is {given!r} and must be like 12 or 12-40")
    return text


Lines = Annotated[
    str, BeforeValidator(_as_lines), Field(description="12 or 12-40, without the line break at their end")
]
Id = Annotated[str, Field(description="context/artifact")]
Base = Annotated[int, Field(ge=1, description="the version you read")]
Version = Annotated[int, Field(ge=1)]


class ToolForm(BaseModel):
    """The arguments of a tool. The docstring of each is its description."""

    model_config = ConfigDict(extra="forbid")


class ListArtifactsCall(ToolForm):
    """List the shared documents (artifacts) of the user, or those of one context (conversation), with their ids."""

    context: Given | None = None
    query: Annotated[str, Field(description="words of the context's or the document's name")] = ""


class ReadArtifactCall(ToolForm):
    """Read a document, or some of its lines. People and agents may be changing it: read before you edit."""

    id: Id
    lines: Lines | None = None
    numbered: Annotated[bool, Field(description="show line numbers")] = False
    version: Version | None = None


class WriteArtifactCall(ToolForm):
    """Write a whole document. It is named like a file. Without a context this starts one; show the user its address.
    To replace one that exists, give the version you read; edit_artifact suits smaller changes better."""

    name: Annotated[Given, Field(description="such as report.md")]
    text: str
    context: Given | None = None
    base_version: Base | None = None


class EditArtifactCall(ToolForm):
    """Replace one passage of a document: old, which must occur once, or lines. Others' changes since are merged."""

    id: Id
    old: str | None = None
    lines: Lines | None = None
    new: str
    base_version: Base


class CommentsCall(ToolForm):
    """List the comments and suggestions on a document."""

    id: Id


class CommentCall(ToolForm):
    """Comment on a passage (quote, which must occur once, or lines), or reply to a comment."""

    id: Id
    text: str
    quote: str | None = None
    lines: Lines | None = None
    reply_to: Annotated[int | None, Field(description="number of a comment")] = None


class SuggestCall(ToolForm):
    """Propose a replacement for a passage (old, which must occur once, or lines). People accept or reject it."""

    id: Id
    old: str | None = None
    lines: Lines | None = None
    new: str
    text: Annotated[str, Field(description="why")] = ""


class HistoryCall(ToolForm):
    """List the versions of a document: who made each one, when, and for which request."""

    id: Id


class UndoCall(ToolForm):
    """Undo the last version of a document, or restore an older one."""

    id: Id
    base_version: Base
    restore: Annotated[Version | None, Field(description="a version")] = None


class AskAgentCall(ToolForm):
    """Give the agent of this server a task, such as write or revise a document while people watch. It may take
    minutes. Without a context this starts one. If the agent asks something, answer in the same context."""

    text: Annotated[str, StringConstraints(min_length=1)]
    context: Given | None = None
    id: Annotated[str | None, Field(description="context/artifact that it is about")] = None


TOOLS: Mapping[str, type[ToolForm]] = {
    "list_artifacts": ListArtifactsCall,
    "read_artifact": ReadArtifactCall,
    "write_artifact": WriteArtifactCall,
    "edit_artifact": EditArtifactCall,
    "comments": CommentsCall,
    "comment": CommentCall,
    "suggest": SuggestCall,
    "history": HistoryCall,
    "undo": UndoCall,
    "ask_agent": AskAgentCall,
}
WHERE_TO_FIND = {"id": ": list_artifacts tells it", "base_version": ": read_artifact tells it"}
READS = (ListArtifactsCall, ReadArtifactCall, CommentsCall, HistoryCall)
"""They change nothing."""


def input_schema(form: type[ToolForm]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, without what its names say already."""
    schema = form.model_json_schema()
    fields = {name: _short(field) for name, field in schema["properties"].items()}
    return {
        "type": "object",
        "properties": fields,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


def _short(field: dict[str, Any]) -> dict[str, Any]:
    """Without title and default, and without null, which nobody needs to send."""
    given: dict[str, Any] = next((each for each in field.get("anyOf", ()) if each.get("type") != "null"), {})
    told = {**field, **given}
    return {name: told[name] for name in ("type", "description", "pattern") if name in told}


def read_arguments(tool: str, arguments: Mapping[str, Any]) -> ToolForm:
    """The arguments of a call.

    Raises:
        InvalidOperation: there is no such tool, or an argument is unknown, missing or invalid.
    """
    if tool not in TOOLS:
        raise InvalidOperation("name", f"is {tool!r} and must be {choice(TOOLS)}")
    form = _read(tool, {name: given for name, given in arguments.items() if given is not None})
    match form:
        case EditArtifactCall() | SuggestCall() if (form.old is None) == (form.lines is None):
            raise InvalidOperation("old", "or lines says what is replaced: give one of them")
        case CommentCall() if [form.quote, form.lines, form.reply_to].count(None) != 2:
            raise InvalidOperation("quote", "or lines or reply_to says where the comment belongs: give one of them")
        case AskAgentCall() if form.id and form.context:
            raise InvalidOperation("context", "is in the id already: leave out one of them")
        case _:
            return form


def _read(tool: str, arguments: Mapping[str, Any]) -> ToolForm:
    fields = TOOLS[tool].model_fields
    if unknown := [name for name in arguments if name not in fields]:
        raise InvalidOperation(unknown[0], f"is no argument of this tool, which has {choice(fields, 'and')}")
    missing = next((name for name, field in fields.items() if field.is_required() and name not in arguments), "")
    if missing:
        raise InvalidOperation(missing, f"is missing{WHERE_TO_FIND.get(missing, '')}")
    return read_form(TOOLS[tool], arguments)


def format_id(context_id: str, artifact_id: str) -> str:
    """The id by which tools name an artifact (rule 1)."""
    return artifact_path(context_id, artifact_id)


def parse_id(given: str, field: str = "id") -> tuple[str, str]:
    """The ids of a context and an artifact. The address of a resource or of the page is taken, too.

    Raises:
        InvalidOperation: it is no such id.
    """
    bare = given.removeprefix("canvas://")
    if "/#/" in bare:
        bare = "/".join(bare.partition("/#/")[2].split("/")[:2])
    context, slash, artifact = bare.partition("/")
    try:
        if slash and "/" not in artifact:
            return valid_id(unquote(context, errors="strict")), valid_id(unquote(artifact, errors="strict"))
    except ValueError:
        pass
    raise InvalidOperation(field, f"is {given!r} and must be context/artifact, as list_artifacts shows it")
