"""`artifact_edit`: the model changes a passage, and the new text grows in its place while the call is being written.

Law: however the input is cut, the outcome is that of the whole call. So what is wrong with the input as a whole
comes before what else went wrong, and of that the first counts, in the order in which the input is written.

The edit is announced as soon as `artifact_id` and `old_text` are known and the passage is found; text that came before
is held back. The task's own draft is closed first, because an edit is made of a version: a call that fails may leave a
new version, with the same content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from a2a_canvas.store.errors import LimitReached, PassageLost, StoreError
from a2a_canvas.store.models import Artifact, text_of
from a2a_canvas.tools.artifact_edit_input import DESCRIPTION, ArtifactEditInput, EditHead
from a2a_canvas.tools.base import Done, Failed, Outcome, ToolStream, Workspace, explain, not_json, schema_of
from a2a_canvas.tools.edit_stream import EditStream, EditTarget
from a2a_canvas.tools.find_quote import find_once
from a2a_canvas.tools.json_events import Delta, DuplicateCheck, JsonError, JsonEvent, Value
from a2a_canvas.tools.json_stream import JsonStream

NAME = "artifact_edit"


class ArtifactEdit:
    """The tool."""

    name = NAME
    description = DESCRIPTION
    eager = True
    acts_last = False

    @property
    def input_schema(self) -> Mapping[str, Any]:
        return schema_of(ArtifactEditInput)

    def open(self, workspace: Workspace) -> ToolStream:
        return _EditCall(workspace)


class _Refused(Exception):
    """What to tell the model."""


class _EditCall:
    """One call. `_edit` is there from its announcement to its end; after an error nothing is begun any more."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._json = JsonStream()
        self._head = EditHead()
        self._once = DuplicateCheck(1)
        self._pieces: list[str] = []
        self._edit: EditStream | None = None
        self._title = ""
        self._error: Failed | None = None

    @property
    def label(self) -> str:
        return f"Editing {self._title}…" if self._title else ""

    async def feed(self, fragment: str) -> None:
        try:
            events = self._json.feed(fragment)
        except JsonError as error:
            await self._fail(not_json(NAME, str(error)))
            return
        for event in events:
            if self._error is None:
                await self._act_on(event)

    async def finish(self) -> Outcome:
        try:
            self._json.flush()
            whole = ArtifactEditInput.model_validate(self._json.value)
        except JsonError as error:
            return await self._fail(not_json(NAME, str(error)))
        except ValidationError as error:
            return await self._fail(explain(NAME, error))
        return self._error or await self._complete(whole)

    async def abort(self) -> None:
        await self._fail("The call was cut off.")

    # ------------------------------------------------------------- what the input says

    async def _act_on(self, event: JsonEvent) -> None:
        try:
            self._take(event)
            await self._write()
        except ValidationError as error:
            await self._fail(explain(NAME, error))
        except ValueError as error:
            await self._fail(explain(NAME, error, event.path))
        except _Refused as refused:
            await self._fail(str(refused))
        except LimitReached:
            raise
        except StoreError as error:
            await self._fail(_message(error))

    def _take(self, event: JsonEvent) -> None:
        self._once.check(event)
        match event:
            case Value(path=("artifact_id" | "old_text" as field,), value=value):
                self._head = self._head.knowing(field, value)
            case Delta(path=("new_text",), text=text):
                self._pieces.append(text)
            case _:
                pass

    # ------------------------------------------------------------- what watchers and the store are told

    async def _write(self) -> None:
        artifact_id, old_text = self._head.artifact_id, self._head.old_text
        if self._edit is None and artifact_id is not None and old_text is not None:
            self._edit = await self._begin(artifact_id, old_text)
        if self._edit and self._pieces:
            text, self._pieces = "".join(self._pieces), []
            await self._edit.feed(text)

    async def _begin(self, artifact_id: str, old_text: str) -> EditStream:
        artifact = await self._standing(artifact_id)
        if text_of(artifact.parts) is None:
            raise _Refused(f"Artifact {artifact_id!r} has no text to edit. Use artifact_update. Nothing was changed.")
        found = find_once(artifact.text, old_text)
        if isinstance(found, str):
            raise _Refused(found)
        edit = EditStream(self._workspace, EditTarget(artifact_id, artifact.version, artifact.text, found), "replace")
        await edit.start()
        self._title = artifact.title
        return edit

    async def _standing(self, artifact_id: str) -> Artifact:
        """The artifact, at a version."""
        ref = self._workspace.ref(artifact_id)
        artifact = await self._workspace.store.get(ref)
        if not artifact.open:
            return artifact
        closed = await self._workspace.store.close(ref)
        if closed is None:
            raise _Refused(
                f"Artifact {artifact_id!r} is being written by another task. Nothing was changed. "
                "Try again when it is done."
            )
        return closed.artifact

    async def _complete(self, whole: ArtifactEditInput) -> Outcome:
        assert self._edit  # the input is whole and nothing was wrong, so the passage was found
        if whole.new_text == whole.old_text:
            return await self._fail(
                "new_text is the same as old_text, so nothing was changed. Write what is to be new."
            )
        try:
            applied = await self._edit.complete()
        except BaseException as error:  # whatever ends it, a cancel too, watchers are told
            failed = await self._fail(_message(error))
            if isinstance(error, StoreError) and not isinstance(error, LimitReached):
                return failed
            raise
        self._edit = None
        return Done(f"Edited; version {applied.version} of {whole.artifact_id} is saved.")

    async def _fail(self, reason: str) -> Failed:
        edit, self._edit = self._edit, None
        self._error = Failed(reason)
        if edit:
            await edit.abort()
        return self._error


def _message(error: BaseException) -> str:
    return str(error) if isinstance(error, PassageLost) else f"{error} Nothing was changed."
