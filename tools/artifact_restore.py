"""`artifact_restore`: the model undoes the last task's changes, redoes them, or restores an old version."""

from __future__ import annotations

from pydantic import Field, model_validator

from a2a_canvas.store.changes import Redo, Restore, Undo
from a2a_canvas.store.errors import LimitReached, StoreError
from a2a_canvas.tools.change_report import describe_outcome, refusal_of
from a2a_canvas.tools.part_inputs import ArtifactId
from a2a_canvas.tools.tool import Done, Failed, Outcome, StrictInput, Workspace, whole_input_tool


class RestoreInput(StrictInput):
    artifact_id: ArtifactId
    version: int | None = Field(
        default=None,
        description="The number of the version to go back to; without it, what the last task did is undone.",
    )
    redo: bool = Field(default=False, description="Reverse the last undo instead. Leave `version` out.")

    @model_validator(mode="after")
    def _one_way(self) -> RestoreInput:
        if self.redo and self.version is not None:
            raise ValueError("redo takes no version")
        return self


async def _restore(call: RestoreInput, workspace: Workspace) -> Outcome:
    store, ref = workspace.store, workspace.ref(call.artifact_id)
    try:
        if call.version is not None:
            await store.version(ref, call.version)
        await store.close(ref)
        base = store.known_version(call.artifact_id)
        if call.version is None:
            step = Redo(base, group=True) if call.redo else Undo(base, group=True)
            stepped = await store.apply(ref, step)
            store.model_read(call.artifact_id, stepped.version)
            did = "Redone" if call.redo else "Undone"
            return Done(f"{did}; {call.artifact_id} is at version {stepped.version} again.")
        applied = await store.apply(ref, Restore(call.version, base))
    except LimitReached:
        raise
    except StoreError as error:
        return Failed(await refusal_of(error, workspace))
    if applied.suggestions is not None:
        return Done(describe_outcome(applied))
    return Done(
        f"Restored; version {applied.version} of {call.artifact_id}, with the content of version {call.version}, "
        "is saved."
    )


artifact_restore = whole_input_tool(
    "artifact_restore",
    "Go back to an older version of an artifact; no version is lost. Use it to take changes back, instead of writing "
    'the old text again. For "undo that" leave `version` out: all that the last task did to the artifact is undone at '
    "once; `redo` reverses that. With `version` its content becomes a new version; artifact_list and artifact_read say "
    "which there are, and artifact_read with `version` shows what one says.",
    RestoreInput,
    _restore,
)
