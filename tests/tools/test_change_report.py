"""What the model reads of a rejected change, and of what others have changed since it read an artifact."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2a_canvas.store.errors import ArtifactNotFound, PassageLost, StoreError, VersionConflict, VersionNotFound
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.tools.change_report import EXCERPT, describe_changes, refusal_of
from a2a_canvas.tools.tool import Workspace
from tests.store.artifact_builders import by, replacing, result
from tests.tools.tool_calls import workspace

MOVED = (
    'Artifact "a" has been changed by somebody else since you last read or wrote it: version 2 is current, it was '
    "version 1."
)


async def changed_by_another(before: str, after: str) -> Workspace:
    """Where the model has read `before`, and another task has written `after` since."""
    store = InMemoryArtifactStore()
    await store.apply(by("t1"), replacing(before, last_chunk=True))
    await store.apply(by("t2"), replacing(after, last_chunk=True))
    place = workspace(store)
    place.store.model_read("a", 1)
    return place


async def changed_and_described(before: str, after: str) -> str:
    return await describe_changes(await changed_by_another(before, after), "a")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("one\ntwo\nthree", "one\nTWO\nthree", 'In its lines 2 to 2, "two" has become "TWO".'),
        ("one", "one\ntwo", 'In its lines 1 to 1, "one" has become "one\\ntwo".'),
        ("", "one", 'In its lines 1 to 1, nothing has become "one".'),
        ("one", "", 'In its lines 1 to 1, "one" has become nothing.'),
    ],
)
async def test_a_change_by_others_is_told_with_its_lines(before: str, after: str, told: str) -> None:
    assert await changed_and_described(before, after) == f"{MOVED} {told}"


LINES = st.lists(st.sampled_from(["", "a", "b", "aa", "é"]), max_size=6).map("\n".join)


@given(LINES, LINES)
@example("a\nb\nc", "b\nc")
def test_the_old_lines_are_those_of_the_numbers_and_with_the_new_ones_in_their_place_the_text_is_the_current_one(
    before: str, after: str
) -> None:
    told = result(changed_and_described(before, after))
    if before == after:
        assert told == MOVED
        return
    found = re.fullmatch(re.escape(MOVED) + r" In its lines (\d+) to (\d+), (.*) has become (.*)\.", told)
    assert found
    first, last = int(found[1]), int(found[2])
    old, new = ("" if said == "nothing" else json.loads(said) for said in found.groups()[2:])
    lines = before.split("\n")
    assert old == "\n".join(lines[first - 1 : last])
    assert "\n".join([*lines[: first - 1], new, *lines[last:]]) == after


async def test_of_a_long_passage_the_ends_are_told() -> None:
    half = EXCERPT // 2
    place = await changed_by_another("old", "a" * half + "middle" + "z" * half)
    assert await describe_changes(place, "a") == (
        f'{MOVED} In its lines 1 to 1, "old" has become "{"a" * half} […] {"z" * half}".'
    )


async def test_a_version_with_the_same_text_is_told_by_its_number() -> None:
    assert await changed_and_described("one", "one") == MOVED


async def test_without_the_text_that_the_model_knows_the_numbers_are_told() -> None:
    place = await changed_by_another("one", "two")
    place.store.model_knows("a", 7)
    assert await describe_changes(place, "a") == MOVED.replace("was version 1", "was version 7")


async def test_a_conflict_is_refused_with_the_changes_since() -> None:
    place = await changed_by_another("one", "two")
    assert await refusal_of(VersionConflict("a", 1, 2), place) == (
        f'{MOVED} In its lines 1 to 1, "one" has become "two". Read it first, and keep that change. '
        "Nothing was changed."
    )


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (VersionNotFound("a", 9, 2), "Artifact 'a' has no version 9; it has the versions 1 to 2. Nothing was changed."),
        (ArtifactNotFound("A"), 'There is no artifact "A" in this context; there is "a". Nothing was changed.'),
        (lost := PassageLost("a", 1, 2), str(lost)),
    ],
)
async def test_any_other_refusal_says_once_that_nothing_was_changed(error: StoreError, told: str) -> None:
    assert await refusal_of(error, await changed_by_another("one", "two")) == told
    assert told.count("Nothing was changed.") == 1
