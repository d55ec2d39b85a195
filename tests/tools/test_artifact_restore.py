"""`artifact_restore`: an old version's content becomes a new version, or what was done last is undone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a2a_canvas.store.changes import AppendParts, ReplaceParts, Restore, Undo
from a2a_canvas.store.errors import ArtifactTooLarge
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import FilePart
from a2a_canvas.tools.artifact_read import artifact_read
from a2a_canvas.tools.artifact_restore import artifact_restore
from a2a_canvas.tools.tool import Done, Failed, Outcome
from tests.store.artifact_builders import by, replacing, text
from tests.tools.tool_calls import RecordingListener, call, workspace


async def written(*contents: str) -> InMemoryArtifactStore:
    store = InMemoryArtifactStore()
    for content in contents:
        await store.apply(by("t0"), replacing(content, last_chunk=True))
    return store


async def restore(
    store: InMemoryArtifactStore, version: Any, watcher: RecordingListener | None = None, **rest: Any
) -> Outcome:
    whole = {"artifact_id": "a", "version": version, **rest}
    return await call(artifact_restore, list(json.dumps(whole)), workspace(store, watcher=watcher))


def failure(outcome: Outcome) -> str:
    """What the model is told of a call that failed."""
    assert isinstance(outcome, Failed)
    return outcome.content


async def texts(store: InMemoryArtifactStore) -> list[str]:
    return [version.content.parts[0].text for version in await store.versions(by("t1"))]  # type: ignore[union-attr]


async def test_an_old_version_becomes_a_new_one_and_none_is_lost() -> None:
    store, watcher = await written("one", "two", "three"), RecordingListener()
    outcome = await restore(store, 1, watcher)
    assert outcome == Done("Restored; version 4 of a, with the content of version 1, is saved.")
    assert await texts(store) == ["one", "two", "three", "one"]
    assert (await store.versions(by("t1")))[3].parent == 3
    [told] = watcher.changes()
    assert (told.append, told.last_chunk, told.version) == (False, True, 4)


async def test_all_of_the_version_comes_back() -> None:
    store = InMemoryArtifactStore()
    await store.apply(by("t0"), ReplaceParts((text("A"), FilePart(b"f")), "n", "d", last_chunk=True))
    await store.apply(by("t0"), AppendParts((text("B"),), "m", "e", last_chunk=True))
    before = await store.version(by("t0"), 1)
    await restore(store, 1)
    assert (await store.get(by("t0"))).content == before.content


async def test_after_an_undo_a_later_version_can_be_restored() -> None:
    store = await written("one", "two")
    await store.apply(by("t0"), Undo())
    assert isinstance(await restore(store, 2), Done)
    assert (await store.get(by("t1"))).text == "two"


async def test_the_tasks_own_draft_becomes_a_version_first() -> None:
    store, watcher = await written("one"), RecordingListener()
    await store.apply(by("t1"), replacing("draft"))
    outcome = await restore(store, 1, watcher)
    assert outcome == Done("Restored; version 3 of a, with the content of version 1, is saved.")
    assert await texts(store) == ["one", "draft", "one"]
    assert [told.version for told in watcher.changes()] == [2, 3]


@pytest.mark.parametrize("number", [-1, 0, 3, 10**30])
async def test_a_version_that_does_not_exist_is_a_failure_that_names_the_range(number: int) -> None:
    store, watcher = await written("one", "two"), RecordingListener()
    outcome = await restore(store, number, watcher)
    says = f"Artifact 'a' has no version {number}; it has the versions 1 to 2. Nothing was changed."
    assert outcome == Failed(says)
    assert await texts(store) == ["one", "two"]
    assert watcher.told == []


async def test_a_draft_stays_as_it_is_where_the_version_does_not_exist() -> None:
    store = InMemoryArtifactStore()
    await store.apply(by("t1"), replacing("draft"))
    outcome = await restore(store, 1)
    assert outcome == Failed("Artifact 'a' has no version 1; it has no versions yet. Nothing was changed.")
    assert (await store.get(by("t1"))).open


async def test_an_artifact_that_is_not_there_is_a_failure_that_says_where_to_look() -> None:
    assert "no artifact 'a' in this context. List the artifacts" in failure(await restore(InMemoryArtifactStore(), 1))


async def test_what_another_task_writes_is_not_restored() -> None:
    store = await written("one")
    await store.apply(by("t2"), replacing("theirs"))
    assert "being written by another task. Try again" in failure(await restore(store, 1))
    assert (await store.get(by("t1"))).text == "theirs"


async def test_a_limit_passes() -> None:
    class Full(InMemoryArtifactStore):
        async def apply(self, ref: Any, change: Any) -> Any:
            if isinstance(change, Restore):
                raise ArtifactTooLarge(2, 1)
            return await super().apply(ref, change)

    store = Full()
    await store.apply(by("t0"), replacing("one", last_chunk=True))
    with pytest.raises(ArtifactTooLarge):
        await restore(store, 1)


async def test_without_a_version_all_that_the_last_task_did_is_undone_at_once() -> None:
    store, watcher = await written("one"), RecordingListener()
    for content in ("two", "three"):
        await store.apply(by("t2"), replacing(content, last_chunk=True))
    assert await restore(store, None, watcher) == Done("Undone; a is at version 1 again.")
    assert (await store.get(by("t1"))).text == "one"
    assert await texts(store) == ["one", "two", "three"]
    [told] = watcher.changes()
    assert (told.append, told.last_chunk, told.version) == (False, True, 1)


async def test_redo_reverses_the_undo() -> None:
    store = await written("one")
    for content in ("two", "three"):
        await store.apply(by("t2"), replacing(content, last_chunk=True))
    await restore(store, None)
    assert await restore(store, None, redo=True) == Done("Redone; a is at version 3 again.")
    assert "nothing to redo" in failure(await restore(store, None, redo=True))


async def test_redo_goes_without_a_version() -> None:
    assert "redo takes no version" in failure(await restore(await written("one"), 1, redo=True))


async def test_what_this_task_is_writing_is_what_the_last_task_did() -> None:
    store = await written("one")
    await store.apply(by("t1"), replacing("draft"))
    assert await restore(store, None) == Done("Undone; a is at version 1 again.")
    assert await texts(store) == ["one", "draft"]


async def test_what_the_model_has_undone_it_may_change() -> None:
    store = await written("one", "two")
    place = workspace(store)
    await call(artifact_read, ['{"artifact_id": "a"}'], place)
    await call(artifact_restore, ['{"artifact_id": "a"}'], place)
    assert place.store.known_version("a") == (await store.get(by("t1"))).version == 1


async def test_at_the_first_version_there_is_nothing_to_undo() -> None:
    assert "nothing to undo" in failure(await restore(await written("one"), None))


@pytest.mark.parametrize("version", ["1", 1.0, True, [1]])
async def test_the_version_is_a_number(version: Any) -> None:
    assert "version: is " in failure(await restore(await written("one"), version))


async def test_what_else_the_input_holds_is_ignored() -> None:
    assert isinstance(await restore(await written("one"), 1, note="x"), Done)


def test_it_takes_its_whole_input_and_does_not_wait_for_other_calls() -> None:
    assert (artifact_restore.name, artifact_restore.eager, artifact_restore.acts_last) == (
        "artifact_restore",
        False,
        False,
    )
    assert artifact_restore.input_schema["required"] == ["artifact_id"]


async def test_what_somebody_else_has_changed_since_is_not_taken_back_unread() -> None:
    store = await written("one")
    place = workspace(store)
    await call(artifact_read, ['{"artifact_id": "a"}'], place)
    await store.apply(by("t2"), replacing("mine", last_chunk=True))
    for asked in ('{"artifact_id": "a", "version": 1}', '{"artifact_id": "a"}'):
        assert '"one" has become "mine". Read it first' in failure(await call(artifact_restore, [asked], place))
    await call(artifact_read, ['{"artifact_id": "a"}'], place)
    assert isinstance(await call(artifact_restore, ['{"artifact_id": "a", "version": 1}'], place), Done)
