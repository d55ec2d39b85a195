"""`a2a-canvas edit`, `undo`, `redo` and `restore`: one operation on one artifact.

Rule 1: on a terminal the new passage is shown while it is written. An output that is not a terminal gets it once, when
        the edit is complete, ending in a newline, and nothing if the edit fails. Statuses and results then go to
        `err`.
Rule 2: the artifact itself is not shown: `show` and `diff` do that.
Rule 3: the complete passage replaces its pieces, because some may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.client.conversation.canvas_session import CanvasSession, open_canvas, text_of
from a2a_canvas.server.client.conversation.errors import CannotBeDone
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.client.conversation.passage import match_selection
from a2a_canvas.server.client.screen.fold import SeenTask, extension_data
from a2a_canvas.server.wire import CANVAS


async def edit(
    invocation: Invocation,
    artifact: str,
    words: tuple[str, ...],
    lines: tuple[int, int] | None,
    match: str | None,
    before: bool,
    after: bool,
    base: int | None,
    context: str | None,
) -> None:
    """Have a passage rewritten, or a text written next to it."""
    instruction = " ".join(words)
    if (lines is None) == (match is None):
        send = "type it without /edit" if invocation.in_chat else invocation.line("send", "-c", instruction)
        whole = f"All of it: {send}"
        raise CannotBeDone("Use --lines or --match to select the passage", whole)
    if before and after:
        raise CannotBeDone("Use --before or --after, not both")
    async with open_canvas(invocation, context) as canvas:
        id_ = canvas.find(artifact)
        selection, base = await select_passage(canvas, id_, lines, match or "", base)
        strategy = "insert_before" if before else "insert_after" if after else "replace"
        operation = {"op": "edit", "selection": selection, "strategy": strategy, "baseVersion": base}
        done = await canvas.operate(id_, instruction, operation, partial(_show, invocation, canvas.title(id_)))
        if not invocation.json:
            screen = invocation.screen
            (screen.closing_reply if invocation.console.is_terminal else screen.status)(done.said)


def _show(invocation: Invocation, title: str, response: pb.StreamResponse, seen: SeenTask) -> None:
    invocation.screen.show(response, seen, artifacts=False)
    for piece in passage_pieces(response):
        if invocation.console.is_terminal:
            passage = pb.Artifact(artifact_id="passage", name=title, parts=[pb.Part(text=piece.text)])
            invocation.screen.artifact(passage, append=piece.append)
        elif piece.complete:
            invocation.print_exact(piece.text if piece.text.endswith("\n") else f"{piece.text}\n")


async def select_passage(
    canvas: CanvasSession, artifact: str, lines: tuple[int, int] | None, match: str, base: int | None
) -> tuple[dict[str, Any], int | None]:
    """The selection of lines, or of a text in what was shown to the user; and the number of its version."""
    if lines:
        return {"lineStart": lines[0], "lineEnd": lines[1], "unit": "codepoint"}, base
    seen = await canvas.read_complete(artifact, *(("versions", str(base)) if base else ()))
    version = base or int(seen.get("version", 0))
    return match_selection(match, text_of(seen), version), version


async def undo(invocation: Invocation, artifact: str | None, context: str | None, step: bool) -> None:
    """Undo the newest task, or one version."""
    await _operate(invocation, artifact, context, "Undo", op="undo", group=not step)


async def redo(invocation: Invocation, artifact: str | None, context: str | None, step: bool) -> None:
    """Reverse one `undo`."""
    await _operate(invocation, artifact, context, "Redo", op="redo", group=not step)


async def restore(invocation: Invocation, artifact: str, version: int, context: str | None) -> None:
    """Make a new version with the content of an old one."""
    await _operate(invocation, artifact, context, f"Restore version {version}", op="restore", version=version)


async def _operate(
    invocation: Invocation, artifact: str | None, context: str | None, request: str, **fields: Any
) -> None:
    async with open_canvas(invocation, context) as canvas:
        await canvas.operate_and_say(canvas.find(artifact), request, **fields)


@dataclass(frozen=True, slots=True)
class PassagePiece:
    """The output of an edit: with `append` the next piece, else everything so far. `complete`: the edit is done."""

    text: str
    append: bool = False
    complete: bool = False


def passage_pieces(response: pb.StreamResponse) -> list[PassagePiece]:
    """The passages in a response, by `urn:a2a-canvas:canvas:v1`; empty if malformed."""
    if response.HasField("task"):
        edits = extension_data(response.task.metadata, CANVAS).get("openEdits")
        known = [each for each in edits if isinstance(each, dict)] if isinstance(edits, list) else []
        return [PassagePiece(str(each.get("text", ""))) for each in known]
    match extension_data(response.status_update.metadata, CANVAS).get("edit"):
        case {"phase": "start"}:
            return [PassagePiece("")]
        case {"phase": "chunk", "chunk": str(text)}:
            return [PassagePiece(text, append=True)]
        case {
            "phase": "complete",
            "updatedContent": str(text),
            "selection": {"start": int(at)},
            "written": {"start": int(start), "end": int(end)},
        }:
            # With an insertion, `updatedContent` also has the selected text. All offsets are in code points.
            return [PassagePiece(text[start - at : end - at], complete=True)]
        case _:
            return []
