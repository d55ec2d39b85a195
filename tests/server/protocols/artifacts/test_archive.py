"""The artifacts of a context as a ZIP file: what is in it, and that it unpacks nowhere else."""

from __future__ import annotations

import json
from io import BytesIO
from zipfile import ZipFile

from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.protocols.artifacts.archive import archive
from a2a_canvas.store.models import Artifact, Content, DataPart, FilePart, Part, text_part


def artifact(name: str, *parts: Part, artifact_id: str = "id") -> Artifact:
    return Artifact(artifact_id, Content(name, "", parts), version=1, open=False)


def unpacked(*artifacts: Artifact) -> dict[str, bytes]:
    with ZipFile(BytesIO(archive(artifacts))) as file:
        assert file.testzip() is None
        return {name: file.read(name) for name in file.namelist()}


def test_each_kind_of_part_is_a_file() -> None:
    found = unpacked(
        artifact("report.md", text_part("Été\n", "text/markdown")),
        artifact("Notes", text_part("x")),
        artifact("", FilePart(b"\x89PNG", name="fig.png", media_type="image/png")),
        artifact("link", FilePart(url="https://example.org/a b\r\nc.pdf", name="c.pdf")),
        artifact("table", DataPart({"é": [1]}, size=1)),
    )
    assert found == {
        "report.md": "Été\n".encode(),
        "Notes.txt": b"x",
        "fig.png": b"\x89PNG",
        "c.url": b"[InternetShortcut]\r\nURL=https://example.org/abc.pdf\r\n",
        "table.json": json.dumps({"é": [1]}, ensure_ascii=False, indent=2).encode() + b"\n",
    }


def test_several_parts_are_a_folder_and_an_empty_artifact_is_nothing() -> None:
    parts = (text_part("x", "text/markdown"), FilePart(b"1", name="a.png"), FilePart(b"2", name="A.png"))
    found = unpacked(artifact("report.md", *parts), artifact("report", text_part("y")), artifact("empty"))
    assert list(found) == ["report/report.md", "report/a.png", "report/A (2).png", "report.txt"]


@given(st.lists(st.tuples(st.text(), st.text(), st.integers(1, 3)), max_size=8))
def test_no_path_leaves_the_folder_or_is_there_twice(named: list[tuple[str, str, int]]) -> None:
    artifacts = [
        artifact(name, *(FilePart(b"x", name=part) for _ in range(count)), artifact_id=name or "a")
        for name, part, count in named
    ]
    with ZipFile(BytesIO(archive(artifacts))) as file:
        paths = file.namelist()
    assert len({path.casefold() for path in paths}) == len(paths) == sum(count for *_, count in named)
    pieces = [piece for path in paths for piece in path.split("/")]
    assert not [each for each in pieces if each in ("", ".", "..") or "\\" in each or ":" in each]


def test_the_same_artifacts_make_the_same_bytes() -> None:
    first, second = (archive([artifact("a", text_part("x"))]) for _ in range(2))
    assert first == second
