"""Which files of a message are stored apart from it, and how they are written in its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.tasks import codec
from a2a_canvas.server.tasks.kept_files import LARGE_BYTES, SMALL_BYTES, KeptFile, files_of, has_large_files, name_files
from a2a_canvas.store.models import DataPart, FilePart, Part, text_part

LARGE = b"x" * (LARGE_BYTES + 1)
SMALL = b"y" * (SMALL_BYTES - 1)


def message(*parts: Part) -> UserMessage:
    return UserMessage("m", parts)


@pytest.mark.parametrize(
    ("sizes", "large"),
    [((LARGE_BYTES,), False), ((LARGE_BYTES + 1,), True), ((LARGE_BYTES // 2,) * 3, True), ((), False)],
    ids=str,
)
def test_the_files_of_a_message_count_together(sizes: tuple[int, ...], large: bool) -> None:
    parts = [FilePart(bytes(size)) for size in sizes]
    assert has_large_files(message(text_part("x" * LARGE_BYTES), FilePart(url="https://a.example"), *parts)) is large


def test_a_file_gets_its_name_once_and_the_message_stays_equal() -> None:
    given = message(text_part("Look"), FilePart(LARGE), FilePart(SMALL), FilePart(LARGE, name="copy"))
    named = name_files(given)
    assert named == given
    assert files_of(named) == (LARGE,)
    assert not has_large_files(named)
    assert files_of(name_files(named)) == (LARGE,)


def test_a_message_is_written_with_the_names_of_its_files_and_reads_with_the_files() -> None:
    named = name_files(message(FilePart(LARGE, "", "a.png"), FilePart(SMALL)))
    found: codec.FoundFiles = {}
    written = codec.message_to_json(named, found)
    assert len(written) < 2 * SMALL_BYTES
    assert codec.message_of_json(written, found) == named
    [name] = codec.files_of_json(codec.names_to_json((), found.values()))
    assert name == (KeptFile.from_content(LARGE).digest, len(LARGE))


def test_without_a_place_for_its_files_a_message_is_written_whole() -> None:
    named = name_files(message(FilePart(LARGE)))
    assert codec.message_of_json(codec.message_to_json(named)) == named


def test_a_file_that_is_not_there_is_empty_and_is_written_as_the_same_name() -> None:
    written = codec.message_to_json(name_files(message(FilePart(LARGE))), {})
    lost = codec.message_of_json(written)
    assert lost == message(FilePart(b""))
    found: codec.FoundFiles = {}
    assert codec.message_to_json(lost, found) == written
    assert not any(file.is_whole for file in found.values())


def test_what_a_user_writes_is_never_taken_for_the_name_of_a_file() -> None:
    name: dict[str, Any] = {"digest": KeptFile.from_content(LARGE).digest, "size": len(LARGE)}
    given = UserMessage("m", (DataPart({"content": name}), text_part(json.dumps(name))), {"content": name})
    found: codec.FoundFiles = {}
    assert (
        codec.message_of_json(codec.message_to_json(given, found), {name["digest"]: KeptFile.from_content(LARGE)})
        == given
    )
    assert found == {}
