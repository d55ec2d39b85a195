"""What others change while a task goes on: its model is told of it before it is asked the next time.

Rule 1: the model knows an artifact as it stood when the task began, and as the task has last read or written it. What
        tasks that began later have changed it does not know, whenever that was: during the turn, or while the task
        waited for an answer or for a server.
Rule 2: what it does not know it cannot replace (`tools/artifact_update.py`). A note tells it once what a person has
        changed, and what anybody has changed of the artifacts that the task has read or written.
"""

from __future__ import annotations

from contextlib import suppress

from a2a_canvas.server.agent.events import Transcript, UserInput
from a2a_canvas.server.agent.model import ModelText
from a2a_canvas.store.errors import ArtifactNotFound, StoreError
from a2a_canvas.store.models import Version
from a2a_canvas.tools.artifact_read import what_changed
from a2a_canvas.tools.base import Workspace


class SiblingChanges:
    """Looks out for what others change."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._notified: dict[str, int] = {}

    async def begin(self, later: frozenset[str]) -> None:
        """Note what the model knows as the turn begins, or goes on."""
        store = self._workspace.store
        for artifact_id, (current, changed_by) in (await store.current_versions(self._workspace.context_id)).items():
            ref = self._workspace.ref(artifact_id)
            if changed_by not in later:
                store.model_knows(artifact_id, current)
                continue
            with suppress(ArtifactNotFound):  # all there was of it was a draft
                store.model_knows(artifact_id, _known(await store.versions(ref), current, later))

    async def notice(self) -> Transcript:
        """What the model is to be told before it is asked: nothing, or one note."""
        store = self._workspace.store
        current = {
            each: version for each, (version, _) in (await store.current_versions(self._workspace.context_id)).items()
        }
        moved = [each for each, version in current.items() if store.known(each) not in (None, version)]
        new = [each for each in moved if self._notified.get(each) != current[each]]
        self._notified |= {each: current[each] for each in new}
        notes = [
            f"[{await what_changed(self._workspace, each)} Read it before you rewrite it.]"
            for each in new
            if each in store.touched or await self._is_by_a_person(each, current[each])
        ]
        return (UserInput("", (ModelText("\n".join(notes), note=True),)),) if notes else ()

    async def _is_by_a_person(self, artifact_id: str, version: int) -> bool:
        try:
            return (await self._workspace.store.version(self._workspace.ref(artifact_id), version)).author == "user"
        except StoreError:  # it has gone on, or is not kept any more
            return False


def _known(versions: tuple[Version, ...], current: int, later: frozenset[str]) -> int:
    """The version that was there before later tasks came; 0 if they have gone back to it by another way."""
    known = max((version.number for version in versions if version.task_id not in later), default=0)
    return known if known != current else 0
