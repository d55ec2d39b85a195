"""Changes of other tasks to the artifacts of a context: the model gets a note about them before its next call.

Rule 1: the model knows the version of an artifact that was current when its task began, or that the task last read or
        wrote. It does not know the changes of tasks that began later, whether they came during the turn or while
        the task waited for an answer or for a server.
Rule 2: the model cannot replace a version that it does not know (`tools/artifact_update.py`). One note tells it about
        changes by a user, and about any change to an artifact that the task has read or written.
"""

from __future__ import annotations

from contextlib import suppress

from a2a_canvas.server.agent.events import Transcript, UserInput
from a2a_canvas.server.agent.model import ModelText
from a2a_canvas.store.errors import ArtifactNotFound, ArtifactUnreadable, StoreError
from a2a_canvas.store.models import Version
from a2a_canvas.tools.change_report import describe_changes
from a2a_canvas.tools.tool import Workspace


class SiblingChanges:
    """Compares the current versions with those that the model knows."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._notified: dict[str, int] = {}

    async def begin(self, later: frozenset[str]) -> None:
        """Record what the model knows as the turn begins or continues (rule 1)."""
        store = self._workspace.store
        for artifact_id, (current, changed_by) in (await store.current_versions(self._workspace.context_id)).items():
            ref = self._workspace.ref(artifact_id)
            if changed_by not in later:
                store.model_knows(artifact_id, current)
                continue
            with suppress(ArtifactNotFound, ArtifactUnreadable):  # only a draft, or unreadable
                store.model_knows(artifact_id, _known_version(await store.versions(ref), current, later))

    async def note(self) -> Transcript:
        """The note for the next model call; empty without changes."""
        store = self._workspace.store
        current = {
            each: version for each, (version, _) in (await store.current_versions(self._workspace.context_id)).items()
        }
        moved = [each for each, version in current.items() if store.known_version(each) not in (None, version)]
        new = [each for each in moved if self._notified.get(each) != current[each]]
        self._notified |= {each: current[each] for each in new}
        notes = [
            f"[{await describe_changes(self._workspace, each)} Read it before you rewrite it.]"
            for each in new
            if each in store.touched or await self._is_by_a_person(each, current[each])
        ]
        return (UserInput("", (ModelText("\n".join(notes), note=True),)),) if notes else ()

    async def _is_by_a_person(self, artifact_id: str, version: int) -> bool:
        try:
            return (await self._workspace.store.version(self._workspace.ref(artifact_id), version)).author == "user"
        except StoreError:  # a later version is current, or it was pruned
            return False


def _known_version(versions: tuple[Version, ...], current: int, later: frozenset[str]) -> int:
    """The newest version before those of later tasks; 0 if a later task made it current again."""
    known = max((version.number for version in versions if version.task_id not in later), default=0)
    return known if known != current else 0
