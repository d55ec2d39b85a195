"""`artifact_edit`: the model changes a passage, and the new text streams into its place while the call is written.

The edit is announced as soon as `artifact_id` and `old_text` are known and the passage is found; earlier text is held
back. The task's own draft is closed first, because an edit is made to a version: a call that fails may leave a new
version with the same content.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field

from a2a_canvas.store.models import text_of
from a2a_canvas.store.text.unicode import replace_surrogates
from a2a_canvas.tools.change_report import describe_outcome
from a2a_canvas.tools.edit_stream import EditStream, EditTarget
from a2a_canvas.tools.find_quote import find_once
from a2a_canvas.tools.json_stream import Delta, JsonEvent, Value
from a2a_canvas.tools.part_inputs import ArtifactId
from a2a_canvas.tools.streaming import CallRefused, InputHead, StreamingCall
from a2a_canvas.tools.tool import StrictInput, Tool, Workspace

NAME = "artifact_edit"
DESCRIPTION = """\
Change one passage of an artifact's text and nothing else. The user watches the new text grow in its place.

Write artifact_id, old_text and new_text in this order.
- old_text is the passage as it stands now, character for character: spaces, indentation and line breaks too. Quote
  enough, a whole sentence or a few lines, that it occurs exactly once in the text.
- new_text takes its place. An empty one deletes the passage. To insert, quote a neighbouring passage as old_text and
  repeat it in new_text.
- Write new_text out, whole: never "… rest unchanged …".
- Every call makes a new version. For changes in several places, make several calls.
Use it for small changes in the middle of a text. To add at the end, call artifact_update with append=true; when more
than four places or a third of the text change, write it again with append=false; to go back, call artifact_restore.\
"""

EMPTY = (
    "must not be empty. To add to the end of the text, call artifact_update with append=true; "
    "to insert elsewhere, quote a neighbouring passage and repeat it in new_text"
)


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError(EMPTY)
    return text


OldText = Annotated[str, AfterValidator(_not_empty), AfterValidator(replace_surrogates)]


class ArtifactEditInput(StrictInput):
    """The whole input. The order of the fields is the order in which the model should write them."""

    artifact_id: ArtifactId
    old_text: OldText = Field(description="The passage to be changed, exactly as it stands; it must occur once.")
    new_text: Annotated[str, AfterValidator(replace_surrogates)] = Field(description="What takes its place.")


class EditHead(InputHead):
    """The fields that locate the edit."""

    artifact_id: ArtifactId | None = None
    old_text: OldText | None = None


class PassageCall(StreamingCall[ArtifactEditInput]):
    """A call that changes a passage, or suggests how. `_edit` is set from the announcement of the edit to its end."""

    def __init__(self, name: str, workspace: Workspace) -> None:
        super().__init__(name, ArtifactEditInput, 1, workspace)
        self._head = EditHead()
        self._pieces: list[str] = []
        self._edit: EditStream | None = None
        self._title = ""

    @property
    def label(self) -> str:
        return f"Editing {self._title}…" if self._title else ""

    async def _act(self, events: Sequence[JsonEvent]) -> None:
        for event in events:
            self._check(event)
            await self._write()

    def _take(self, event: JsonEvent) -> None:
        match event:
            case Value(path=("artifact_id" | "old_text" as field,), value=value):
                self._head = self._head.with_field(field, value)
            case Delta(path=("new_text",), text=text):
                self._pieces.append(text)
            case _:
                pass

    async def _write(self) -> None:
        artifact_id, old_text = self._head.artifact_id, self._head.old_text
        if self._edit is None and artifact_id is not None and old_text is not None:
            self._edit = await self._begin(artifact_id, old_text)
        if self._edit and self._pieces:
            text, self._pieces = "".join(self._pieces), []
            await self._edit.feed(text)

    async def _begin(self, artifact_id: str, old_text: str) -> EditStream:
        artifact = await self._workspace.store.at_version(self._workspace.ref(artifact_id))
        if text_of(artifact.parts) is None:
            raise CallRefused(
                f"Artifact {artifact_id!r} has no text to edit. Use artifact_update. Nothing was changed."
            )
        found = find_once(artifact.text, old_text, tool=self._name)
        if isinstance(found, str):
            raise CallRefused(found)
        edit = EditStream(self._workspace, EditTarget(artifact_id, artifact.version, artifact.text, found), "replace")
        await edit.start()
        self._title = artifact.title
        return edit

    async def _complete(self, whole: ArtifactEditInput) -> str:
        assert self._edit  # the input is complete and nothing has failed, so the passage was found
        if whole.new_text == whole.old_text:
            raise CallRefused("new_text is the same as old_text, so nothing was changed. Write what is to be new.")
        try:
            applied = await self._edit.complete()
        except BaseException:  # subscribers learn that the edit has ended, even after a cancellation
            await self._undo()
            raise
        self._edit = None
        if applied.suggestions is not None:
            return describe_outcome(applied)
        return f"Edited; version {applied.version} of {whole.artifact_id} is saved."

    async def _undo(self) -> None:
        edit, self._edit = self._edit, None
        if edit:
            await edit.abort()


artifact_edit = Tool(NAME, DESCRIPTION, ArtifactEditInput, partial(PassageCall, NAME), eager=True)
