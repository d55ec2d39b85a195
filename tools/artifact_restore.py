"""`artifact_restore`: the model makes an old version of an artifact the newest one."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from store.changes import Restore
from store.errors import LimitReached, StoreError
from tools.artifact_input import ArtifactId
from tools.artifact_read import reason_of
from tools.base import Done, Failed, Outcome, WholeInputTool, Workspace


class RestoreInput(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    artifact_id: ArtifactId
    version: int = Field(description="The number of the version to go back to. artifact_read shows what it says.")


async def _restore(call: RestoreInput, workspace: Workspace) -> Outcome:
    store, ref = workspace.store, workspace.ref(call.artifact_id)
    try:
        await store.version(ref, call.version)
        await store.close(ref)
        applied = await store.apply(ref, Restore(call.version, store.known(call.artifact_id)))
    except LimitReached:
        raise
    except StoreError as error:
        return Failed(f"{await reason_of(error, workspace)} Nothing was changed.")
    return Done(
        f"Restored; version {applied.version} of {call.artifact_id}, with the content of version {call.version}, "
        "is saved."
    )


artifact_restore = WholeInputTool(
    "artifact_restore",
    "Go back to an older version of an artifact: its content becomes a new version, and no version is lost. "
    "artifact_list and artifact_read say which versions there are; artifact_read with `version` shows what one says. "
    "Use it to take changes back, instead of writing the old text again.",
    RestoreInput,
    _restore,
)
