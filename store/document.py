"""One artifact's versions and its draft, as frozen values. What can happen to them is in `mutation.py`. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from a2a_canvas.store.errors import VersionNotFound, VersionPruned
from a2a_canvas.store.models import Artifact, Author, Content, Parts, Version


@dataclass(frozen=True, slots=True)
class Applied:
    """What a mutation did, and so what a watcher must do.

    Attributes:
        artifact: as it now stands.
        append: whether a watcher who has the artifact may just add `new` to its parts.
        new: the parts that were added (`append` only).
        last_chunk: no draft is open: `version` has been made, or made the current one.
        version: the number of the version that this is part of, closed or still a draft.
        author: who wrote that version.
        parent: the number of the version it was made from; 0 for none.
    """

    artifact: Artifact
    append: bool
    new: Parts
    last_chunk: bool
    version: int
    author: Author
    parent: int

    @property
    def parts(self) -> Parts:
        """What goes to a watcher: only the new parts, or all of them."""
        return self.new if self.append else self.artifact.parts


@dataclass(frozen=True, slots=True)
class Draft:
    """Changes not yet closed.

    Attributes:
        completed: the content the last completed call left; None while none has completed.
        shown: the content including the call that is being written.
        dirty: whether a call is being written.
    """

    task_id: str
    author: Author
    completed: Content | None
    shown: Content
    dirty: bool

    @property
    def never_completed(self) -> bool:
        """Only a cut-off call was ever here (rule 4)."""
        return self.completed is None and not self.dirty


@dataclass(frozen=True, slots=True)
class Document:
    """An artifact with all it has been.

    Attributes:
        current: the number of the current version; 0 while there is none.
        changed_by: the task that changed it last.
    """

    artifact_id: str
    versions: tuple[Version, ...] = ()
    draft: Draft | None = None
    current: int = 0
    changed_by: str = ""

    @property
    def exists(self) -> bool:
        return bool(self.versions or self.draft)

    @property
    def tip(self) -> int:
        """The number of the last version of the undo line, which is the newest one made (rule 5)."""
        return len(self.versions)

    @property
    def current_content(self) -> Content:
        """The content of the current version, or nothing."""
        return self.versions[self.current - 1].content if self.current else Content()

    @property
    def artifact(self) -> Artifact:
        draft = self.draft
        if draft is None:
            return Artifact(self.artifact_id, self.current_content, self.current, False, self.changed_by)
        return Artifact(self.artifact_id, draft.shown, self.current, True, self.changed_by, draft.never_completed)

    def version(self, number: int) -> Version:
        """Raises `VersionNotFound`, `VersionPruned`."""
        count = len(self.versions)
        if not 1 <= number <= count:
            raise VersionNotFound(self.artifact_id, number, count)
        version = self.versions[number - 1]
        if version.pruned:
            raise VersionPruned(self.artifact_id, number, count)
        return version

    def parent(self, number: int) -> int:
        return self.versions[number - 1].parent if number else 0

    def maker(self, number: int) -> str:
        """The task that made a version."""
        return self.versions[number - 1].task_id
