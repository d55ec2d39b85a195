"""What another agent names, as we can have it."""

import pytest
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.tool_sources.remote_agents.task_parts import AGENT_KEY, awaits_heading, line, parts_of, title_of
from a2a_canvas.store.models import FilePart, text_part


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (" report.md ", "report.md"),
        ("a\nb\0c\u202ed", "a_b_c_d"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 200),
        ("", ""),
    ],
)
def test_a_name_is_one_line_of_200_characters_at_most(given: str, kept: str) -> None:
    assert line(given) == kept


ODD = "d1c1b1a0-9f1e-4a57-b6d2-0c9a6a3a7f10"


@pytest.mark.parametrize(
    ("artifact", "title"),
    [
        (pb.Artifact(artifact_id=ODD, name="report.md"), "report.md"),
        (pb.Artifact(artifact_id=ODD, parts=[pb.Part(text="x"), pb.Part(raw=b"x", filename="sky.png")]), "sky.png"),
        (pb.Artifact(artifact_id="report"), ""),
        (pb.Artifact(artifact_id=ODD), None),
        (pb.Artifact(artifact_id=ODD.replace("-", "")), None),
        (pb.Artifact(artifact_id=f"artifact-{ODD}"), None),
        (pb.Artifact(artifact_id="1"), None),
        (pb.Artifact(), None),
    ],
)
def test_an_artifact_without_a_name_is_called_like_its_file_or_its_id_unless_that_says_nothing(
    artifact: pb.Artifact, title: str | None
) -> None:
    assert title_of(artifact) == title


def test_an_artifact_without_a_name_is_called_by_its_first_heading_before_its_id() -> None:
    assert title_of(pb.Artifact(artifact_id="report"), "Hm.\n# Tide pools\n") == "tide-pools.md"
    assert title_of(pb.Artifact(artifact_id="report", name="tides"), "# Tide pools\n") == "tides"


@pytest.mark.parametrize(
    ("text", "awaits"), [("", False), ("Rain", False), ("\n# Ra", True), ("# Rain\n", False), ("#" * 2_000, False)]
)
def test_a_name_waits_for_the_end_of_the_first_line_if_it_may_be_a_heading(text: str, awaits: bool) -> None:
    assert awaits_heading(text) == awaits


def test_a_file_is_kept_by_its_bytes_or_by_its_address() -> None:
    raw = pb.Part(raw=b"sky", filename="sky.png", media_type="image/png")
    linked = pb.Part(url="https://a.example/sky.png", filename="sky.png", media_type="image/png")
    assert list(parts_of([raw, linked])) == [
        FilePart(b"sky", "", "sky.png", "image/png"),
        FilePart(None, "https://a.example/sky.png", "sky.png", "image/png"),
    ]


def test_the_first_text_of_an_artifact_gives_all_of_it_its_media_type_and_its_origin() -> None:
    wire = [pb.Part(text="# Sky", media_type="text/markdown"), pb.Part(text="<p>", media_type="text/html")]
    origin = {"url": "https://a.example"}
    rest = text_part("<p>")
    assert parts_of(wire, origin) == (text_part("# Sky", "text/markdown", {AGENT_KEY: origin}), rest)
    assert parts_of(wire, origin, append=True) == (text_part("# Sky"), rest)
