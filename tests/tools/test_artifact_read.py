"""`artifact_read` and `artifact_list`: the shape of what the model is shown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from a2a_canvas.store.changes import ReplaceParts, Undo
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import DataPart, FilePart
from a2a_canvas.tools.artifact_read import NEVER_COMPLETED, artifact_list, artifact_read
from a2a_canvas.tools.artifact_update import artifact_update
from a2a_canvas.tools.tool import Done, Failed, Tool
from tests.store.artifact_builders import appending, by, delta, replacing, text
from tests.tools.tool_calls import call, workspace


@pytest.fixture
def store() -> InMemoryArtifactStore:
    return InMemoryArtifactStore()


async def shown(
    store: InMemoryArtifactStore, tool: Tool = artifact_read, input_: str = '{"artifact_id": "a"}'
) -> object:
    outcome = await call(tool, [input_], workspace(store))
    assert isinstance(outcome, Done)
    return json.loads(outcome.content)


ALL = ReplaceParts(
    (
        text("né", media_type="text/markdown", metadata={"partType": "body"}),
        FilePart(b"12345", name="f.bin", media_type="a/b"),
        FilePart(url="https://example.org/x"),
        DataPart({"k": [None]}, size=13),
        DataPart(None, size=4),
    ),
    name="a.md",
    description="One of each.",
    last_chunk=True,
)


async def test_an_artifact_is_shown_with_its_parts_and_files_by_size(store: InMemoryArtifactStore) -> None:
    await store.apply(by("t0"), ALL)
    assert await shown(store) == {
        "artifact_id": "a",
        "name": "a.md",
        "description": "One of each.",
        "version": 1,
        "versions": 1,
        "draft": False,
        "parts": [
            {"kind": "text", "text": "né", "mimeType": "text/markdown", "metadata": {"partType": "body"}},
            {"kind": "file", "file": {"name": "f.bin", "mimeType": "a/b", "size": 5}},
            {"kind": "file", "file": {"uri": "https://example.org/x"}},
            {"kind": "data", "data": {"k": [None]}},
            {"kind": "data", "data": None},
        ],
    }


async def test_a_draft_is_shown_as_it_stands(store: InMemoryArtifactStore) -> None:
    await store.apply(by("t1"), replacing("A", last_chunk=True))
    await store.apply(by("t1"), delta(appending("B")))
    assert await shown(store) == {
        "artifact_id": "a",
        "name": "",
        "version": 1,
        "versions": 1,
        "draft": True,
        "parts": [{"kind": "text", "text": "AB"}],
    }


async def test_an_older_version_is_shown_with_the_number_of_the_current_one(store: InMemoryArtifactStore) -> None:
    await store.apply(by("t1"), replacing("A", name="old.md", description="Old.", last_chunk=True))
    await store.apply(by("t1"), replacing("B", name="new.md", last_chunk=True))
    await store.apply(by("t1"), replacing("C"))
    assert await shown(store, input_='{"artifact_id": "a", "version": 1}') == {
        "artifact_id": "a",
        "name": "old.md",
        "description": "Old.",
        "version": 1,
        "versions": 2,
        "current_version": 2,
        "parts": [{"kind": "text", "text": "A"}],
    }


async def test_after_an_undo_the_current_version_is_not_the_last_one(store: InMemoryArtifactStore) -> None:
    for content in ("A", "B", "C"):
        await store.apply(by("t1"), replacing(content, last_chunk=True))
    await store.apply(by("t1"), Undo())
    for tool, input_ in ((artifact_read, '{"artifact_id": "a", "version": null}'), (artifact_list, "")):
        told = await shown(store, tool, input_)
        head = told if isinstance(told, dict) else told[0]  # type: ignore[index]
        assert (head["version"], head["versions"], head["draft"]) == (2, 3, False)
    assert await shown(store, input_='{"artifact_id": "a", "version": 3}') == {
        "artifact_id": "a",
        "name": "",
        "version": 3,
        "versions": 3,
        "current_version": 2,
        "parts": [{"kind": "text", "text": "C"}],
    }


@pytest.mark.parametrize("number", [-1, 0, 2])
async def test_a_version_that_does_not_exist_is_a_failure_that_names_the_range(
    store: InMemoryArtifactStore, number: int
) -> None:
    await store.apply(by("t1"), replacing("A", last_chunk=True))
    outcome = await call(artifact_read, [json.dumps({"artifact_id": "a", "version": number})], workspace(store))
    assert outcome == Failed(f"Artifact 'a' has no version {number}; it has version 1.")


LONG = "\n".join(f"line {n}" for n in range(1, 101))


@pytest.mark.parametrize(
    ("first", "last", "lines", "note"),
    [
        (2, 3, "line 2\nline 3", None),
        (99, None, "line 99\nline 100", None),
        (99, 500, "line 99\nline 100", None),
        (200, None, "", None),
        (1, None, "line 1\nline 2\nline 3", "Read on with first_line=4."),
        (3, None, "line 3\nline 4\nline 5", "Read on with first_line=6."),
    ],
)
async def test_of_a_long_text_the_lines_are_shown_that_are_asked_for_and_how_long_the_whole_is(
    store: InMemoryArtifactStore, first: int, last: int | None, lines: str, note: str | None
) -> None:
    await store.apply(by("t1"), replacing(LONG))
    place = replace(workspace(store), read_limit=25)
    outcome = await call(
        artifact_read, [json.dumps({"artifact_id": "a", "first_line": first, "last_line": last})], place
    )
    assert isinstance(outcome, Done)
    [part] = json.loads(outcome.content)["parts"]
    assert (part["text"], part["lines"], part["first_line"]) == (lines, 100, first)
    assert part.get("note") == (note and f"Not all of it is shown. {note}")


async def test_what_is_larger_than_the_room_is_cut_with_a_note(store: InMemoryArtifactStore) -> None:
    await store.apply(by("t1"), ReplaceParts((text("x" * 100), DataPart(["y" * 100], size=104))))
    outcome = await call(artifact_read, ['{"artifact_id": "a"}'], replace(workspace(store), read_limit=60))
    assert isinstance(outcome, Done)
    long, data = json.loads(outcome.content)["parts"]
    assert (long["text"], long["note"]) == ("x" * 60, "Not all of it is shown. Line 1 is too long to show.")
    assert (len(data["data"]), data["size"]) == (0, 104)


async def test_reading_on_shows_the_whole_text(store: InMemoryArtifactStore) -> None:
    await store.apply(by("t1"), replacing(LONG))
    place, read, first = replace(workspace(store), read_limit=99), list[str](), 1
    while first <= 100:
        outcome = await call(artifact_read, [json.dumps({"artifact_id": "a", "first_line": first})], place)
        assert isinstance(outcome, Done)
        [part] = json.loads(outcome.content)["parts"]
        read.append(part["text"])
        first = part["last_line"] + 1
    assert "\n".join(read) == LONG


async def test_what_a_call_that_was_cut_off_has_left_is_not_there_for_reading_the_list_and_the_next_append(
    store: InMemoryArtifactStore,
) -> None:
    place = workspace(store)
    cut_off = '{"append": false, "artifact": {"artifact_id": "a", "parts": [{"kind": "text", "text": "first half'
    assert isinstance(await call(artifact_update, [cut_off], place), Failed)
    read = await shown(store)
    assert (read["parts"], read["note"]) == ([], NEVER_COMPLETED)  # type: ignore[index, call-overload]
    [entry] = await shown(store, artifact_list, "")  # type: ignore[misc, attr-defined]
    assert entry["note"] == NEVER_COMPLETED
    append = '{"append": true, "artifact": {"artifact_id": "a", "parts": [{"kind": "text", "text": "second"}]}}'
    assert isinstance(await call(artifact_update, [append], place), Done)
    assert (await store.get(by("t1"))).text == "second"
    assert "note" not in await shown(store)  # type: ignore[operator]


async def test_text_is_shown_unescaped(store: InMemoryArtifactStore) -> None:
    await store.apply(by("t1"), replacing("né😀"))
    outcome = await call(artifact_read, ['{"artifact_id": "a"}'], workspace(store))
    assert isinstance(outcome, Done)
    assert '"né😀"' in outcome.content


async def test_an_artifact_that_is_not_there_is_a_failure_that_says_where_to_look(store: InMemoryArtifactStore) -> None:
    await store.apply(by("t1", context="another"), replacing("A"))
    outcome = await call(artifact_read, ['{"artifact_id": "a"}'], workspace(store))
    assert outcome == Failed("There is no artifact 'a' in this context. List the artifacts to see their ids.")


async def test_of_an_artifact_that_is_not_there_those_that_are_there_are_named(store: InMemoryArtifactStore) -> None:
    await store.apply(by("t1"), replacing("A"))
    outcome = await call(artifact_read, ['{"artifact_id": "A"}'], workspace(store))
    assert outcome == Failed('There is no artifact "A" in this context; there is "a".')


async def test_an_id_that_no_artifact_can_have_is_a_failure_that_can_be_told(store: InMemoryArtifactStore) -> None:
    outcome = await call(artifact_read, ['{"artifact_id": "\\ud83d"}'], workspace(store))
    assert isinstance(outcome, Failed)
    outcome.content.encode()


@pytest.mark.parametrize("input_", ["", "{}", '{"artifact_id": 1}', '{"artifact_id": null}'])
async def test_reading_needs_an_id(store: InMemoryArtifactStore, input_: str) -> None:
    outcome = await call(artifact_read, [input_], workspace(store))
    assert isinstance(outcome, Failed)
    assert "artifact_id: " in outcome.content


@pytest.mark.parametrize("input_", ["", "{}", '{"all": true}'])
async def test_the_list_shows_every_artifact_of_the_context_newest_last(
    store: InMemoryArtifactStore, input_: str
) -> None:
    await store.apply(by("t0", "b"), replacing("né"))
    await store.apply(by("t0"), ALL)
    await store.apply(by("t0", "hidden", context="another"), replacing("x"))
    assert await shown(store, artifact_list, input_) == [
        {
            "artifact_id": "b",
            "name": "",
            "version": 0,
            "versions": 0,
            "draft": True,
            "kinds": ["text"],
            "parts": 1,
            "size": 3,
        },
        {
            "artifact_id": "a",
            "name": "a.md",
            "description": "One of each.",
            "version": 1,
            "versions": 1,
            "draft": False,
            "kinds": ["data", "file", "text"],
            "parts": 5,
            "size": 3 + 5 + 21 + 13 + 4,
        },
    ]


async def test_the_list_may_be_empty(store: InMemoryArtifactStore) -> None:
    assert await shown(store, artifact_list, "") == []


def test_they_are_called_by_their_names() -> None:
    assert [tool.name for tool in (artifact_read, artifact_list)] == ["artifact_read", "artifact_list"]
    assert artifact_read.input_schema["required"] == ["artifact_id"]
    assert artifact_list.input_schema["properties"] == {}
