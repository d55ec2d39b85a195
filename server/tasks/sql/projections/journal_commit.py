"""What the projections write in one transaction of the group commit, and what each leaves for the ones after it.

Rule: a transaction that is retried begins with a new `JournalCommit`, so it writes the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from a2a_canvas.server.agent.events import ArtifactChanged, changes_context
from a2a_canvas.server.tasks.journal.task_log import TaskBatch
from a2a_canvas.server.tasks.kept_files import KeptFile
from a2a_canvas.server.tasks.sql.projections.named_versions import Contents
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.row_statement import StatementGroup

TaskKey = tuple[ContextKey, str]
"""Context and task."""
FileKey = tuple[ContextKey, str]
"""Context and digest."""


@dataclass(slots=True)
class StagedTask:
    """What is to be written of one task, and its place in the context.

    Attributes:
        changes: number of its changes to the context: of artifacts, and of annotations.
        last: the last change of each artifact, with its number among all of them.
        number: of the task in its context, if it is new.
        position: before the first change.
        state: in its row, before; empty for a new task.
        has_push: it has push configs, or had some.
        page_characters, saved_characters: of the entries and of the saved record that are written; 0 for none.
        incarnation: of the context, if the task changes it.
        page: the row of its page; None if it has none.
    """

    batch: TaskBatch
    changes: int
    last: dict[str, tuple[int, ArtifactChanged]]
    number: int = 0
    position: int = 0
    state: str = ""
    has_push: bool = False
    page_characters: int = 0
    saved_characters: int = 0
    incarnation: int = 0
    page: Mapping[str, Any] | None = None

    @staticmethod
    def from_batch(batch: TaskBatch) -> StagedTask:
        changed = [entry.event for entry in batch.entries if changes_context(entry.event)]
        numbered = enumerate(changed, 1)
        last = {each.artifact_id: (number, each) for number, each in numbered if isinstance(each, ArtifactChanged)}
        return StagedTask(batch, len(changed), last, has_push=batch.push is not None)

    @property
    def context_id(self) -> ContextKey:
        return self.batch.newest.context_id

    @property
    def task_id(self) -> str:
        return self.batch.newest.task_id

    @property
    def key(self) -> TaskKey:
        return self.context_id, self.task_id

    @property
    def columns(self) -> dict[str, str]:
        """The columns of its key."""
        return {"context_id": self.context_id, "task_id": self.task_id}


@dataclass(slots=True)
class JournalCommit:
    """One attempt at a transaction.

    Attributes:
        tasks: those that are written.
        replica: the id of this replica when the work was collected.
        at: the time of the transaction.
        staged: the contents of versions (`staged_contents`).
        kept: the bytes to be counted, by context.
        files: those that the rows name.
        last: statements on whose rows no other statement of the transaction depends.
    """

    tasks: Sequence[StagedTask]
    replica: str
    at: datetime
    staged: Contents
    kept: Counter[str] = field(default_factory=Counter)
    files: dict[FileKey, KeptFile] = field(default_factory=dict)
    last: StatementGroup = field(default_factory=StatementGroup)

    @property
    def new_tasks(self) -> list[StagedTask]:
        return [each for each in self.tasks if each.batch.created]

    @property
    def existing_tasks(self) -> list[StagedTask]:
        """Those that have a row already."""
        return [each for each in self.tasks if not each.batch.created]

    @property
    def with_entries(self) -> list[StagedTask]:
        return [each for each in self.tasks if each.batch.entries]

    def name(self, context_id: ContextKey, files: Iterable[KeptFile]) -> None:
        """A row of the context names these files."""
        self.files |= {(context_id, file.digest): file for file in files}


Projection = Callable[[Connection, JournalCommit], None]
"""Writes the rows of a table, for all tasks of a transaction together."""
