"""The changes that a call makes to artifacts: repeated or made, saved with the call's records, or undone.

Rule 1: a step saves its own changes, and those outside of steps; neither those of another step that runs, nor one that
        is still being made.
Rule 2: an artifact with unsaved changes of a step is changed by that step alone. Before a step changes an artifact, the
        changes outside of it are saved. So a step that fails is undone alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from a2a_canvas.store.errors import StoreError
from a2a_canvas.store.models import Ref
from a2a_canvas.tools.edit_stream import EditStream, EditTarget
from a2a_canvas.tools.find_quote import find_once
from a2a_canvas.tools.functions.repeated_changes import ChangeKey, RepeatedChanges, SavedChanges
from a2a_canvas.tools.functions.results import ToolError
from a2a_canvas.tools.tool import Workspace, to_json

Make = Callable[[Ref], Awaitable[None]]


class ArtifactChanges:
    """The changes of one run of a call.

    Args:
        call_id: of the call, for `writers`.
        writers: ids of artifacts changed by running calls, with the ids of these calls.
        saved: what the runs before have saved.
        step: the step in which the code runs; empty outside of any.
        record: records saved changes: the step's name, and the value of `ToolStep`.
    """

    def __init__(
        self,
        call_id: str,
        workspace: Workspace,
        writers: dict[str, str],
        saved: Mapping[ChangeKey, SavedChanges],
        step: Callable[[], str],
        record: Callable[[str, str], Awaitable[None]],
    ) -> None:
        self._call_id = call_id
        self._workspace = workspace
        self._store = workspace.store
        self._writers = writers
        self._saved = saved
        self._step = step
        self._record = record
        self._changes: dict[ChangeKey, RepeatedChanges] = {}
        self._touched: dict[str, Ref] = {}
        self._unsaved: dict[str, str] = {}
        self._begun: Counter[ChangeKey] = Counter()

    async def change(self, artifact_id: str, content: Iterator[bytes], make: Make) -> None:
        """Make a change, or count it as repeated.

        Args:
            content: what tells the change from another.

        Raises:
            ChangesDiffer: it should repeat another change.
            ToolError: it cannot be made, now or when it was made before.
        """
        step = self._step()
        changes = self._find(step, artifact_id)
        failure = changes.add(content)
        if failure is None:
            try:
                with self._writing(step, artifact_id):
                    await self._save_outside(step, artifact_id)
                    await make(self._workspace.ref(artifact_id))
            except (StoreError, ToolError) as error:
                changes.fail(str(error))
                raise ToolError(str(error)) from None
        elif failure:
            raise ToolError(failure)

    def mark(self, ref: Ref) -> None:
        """The artifact has changed."""
        self._touched[ref.artifact_id] = ref
        self._unsaved[ref.artifact_id] = self._step()

    async def edit(self, ref: Ref, old: str, new: str) -> None:
        """Edit a passage, which is a version at once, and so is saved at once."""
        await self._store.prepare(ref)
        artifact = await self._store.at_version(ref)
        found = find_once(artifact.text, old) if old else "The passage to edit is empty."
        if isinstance(found, str):
            raise ToolError(found)
        edit = EditStream(
            self._workspace, EditTarget(ref.artifact_id, artifact.version, artifact.text, found), "replace"
        )
        await edit.start()
        try:
            await edit.feed(new)
            await self._store.prepare(ref)
            await edit.complete()
        except BaseException:
            await edit.abort()
            raise
        self.mark(ref)
        await self._save((ref.artifact_id,))  # in the event-loop step in which the version was made

    async def save(self) -> None:
        """Record the changes made so far (rule 1)."""
        await self.prepare()
        await self._save(tuple(each for each in self._unsaved if not self._is_being_written(each)))

    async def save_one(self, artifact_id: str) -> None:
        """Record the changes of an artifact made so far."""
        if artifact_id in self._unsaved and not self._is_being_written(artifact_id):
            await self._store.prepare(self._touched[artifact_id])
            await self._save((artifact_id,))

    async def prepare(self) -> None:
        """Prepare `close`, so that it does not wait."""
        for ref in tuple(self._touched.values()):
            await self._store.prepare(ref)

    async def close(self) -> None:
        """Make a version of each artifact that was changed."""
        for ref in self._touched.values():
            await self._store.close(ref)

    async def undo(self) -> None:
        """Undo what is not saved."""
        for ref in self._touched.values():
            await self._store.discard(ref)

    async def undo_step(self, step: str) -> None:
        """A step has failed: undo what it has changed and not saved. It may be tried again."""
        for artifact_id in [each for each, writer in self._unsaved.items() if writer == step]:
            del self._unsaved[artifact_id]
            await self._store.discard(self._touched[artifact_id])
        for key in [each for each in self._changes if each[0] == step]:
            self._changes[key] = RepeatedChanges(self._changes[key].saved)

    def release(self) -> None:
        """Other calls may change the artifacts."""
        self._release([artifact_id for artifact_id, call_id in self._writers.items() if call_id == self._call_id])

    def share(self) -> None:
        """Other calls may change the artifacts without unsaved changes."""
        shared = self._touched.keys() - self._unsaved.keys()
        self._release([each for each in shared if self._writers.get(each) == self._call_id])

    def skip(self) -> None:
        """Count all saved changes as repeated."""
        for key in self._saved:
            self._find(*key).skip()

    def missing(self) -> list[str]:
        """The artifacts with saved changes outside of steps that were not repeated."""
        saved = [artifact_id for step, artifact_id in self._saved if not step]
        return [artifact_id for artifact_id in saved if not self._find("", artifact_id).is_complete]

    def _find(self, step: str, artifact_id: str) -> RepeatedChanges:
        key = step, artifact_id
        if key not in self._changes:
            self._changes[key] = RepeatedChanges(self._saved.get(key, SavedChanges()))
        return self._changes[key]

    @contextmanager
    def _writing(self, step: str, artifact_id: str) -> Iterator[None]:
        """Raises `ToolError` if another call, or another step of this one, is writing the artifact."""
        if self._writers.setdefault(artifact_id, self._call_id) != self._call_id:
            raise ToolError(f"Artifact {artifact_id!r} is being written by another tool call. Try again after it.")
        writers = {writer for writer, written in self._begun if written == artifact_id}
        writers |= {self._unsaved[artifact_id]} - {""} if artifact_id in self._unsaved else set()
        if others := writers - {step}:
            writer = ", ".join(f"by the step {each!r}" if each else "outside of the step" for each in sorted(others))
            raise ToolError(f"Artifact {artifact_id!r} is being written {writer}. Try again after it.")
        self._begun[step, artifact_id] += 1
        try:
            yield
        finally:
            self._begun -= Counter(((step, artifact_id),))

    def _is_being_written(self, artifact_id: str) -> bool:
        return any(written == artifact_id for _, written in self._begun)

    async def _save_outside(self, step: str, artifact_id: str) -> None:
        if step and self._unsaved.get(artifact_id) == "":
            await self._store.prepare(self._touched[artifact_id])
            await self._save((artifact_id,))

    async def _save(self, artifact_ids: Iterable[str]) -> None:
        """Record unsaved changes of prepared artifacts; nothing waits."""
        changes: dict[str, dict[str, object]] = {}
        for artifact_id in artifact_ids:
            if (step := self._unsaved.get(artifact_id, "")) in ("", self._step()):
                await self._store.complete_call(self._touched[artifact_id])
                changes.setdefault(step, {})[artifact_id] = self._find(step, artifact_id).save()
                del self._unsaved[artifact_id]
        for step, saved in changes.items():
            await self._record(step, to_json(saved))

    def _release(self, artifact_ids: Iterable[str]) -> None:
        for artifact_id in artifact_ids:
            del self._writers[artifact_id]
