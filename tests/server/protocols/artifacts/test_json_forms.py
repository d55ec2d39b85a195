"""Artifacts and versions as JSON."""

from dataclasses import replace

from a2a_canvas.server.protocols.artifacts.json_forms import version_summary
from a2a_canvas.server.protocols.edge.version_origins import MAX_REQUEST, VersionOrigins
from a2a_canvas.store.models import Artifact, Content, Version, text_part
from tests.fakes import said

CONTENT = Content("doc.md", "", (text_part("one"),))
VERSION = Version(1, CONTENT, "agent", "t", 0)


def test_a_version_that_is_no_longer_kept_says_so() -> None:
    artifact = Artifact("doc", CONTENT, 2, False, "t")
    assert "pruned" not in version_summary(artifact, VersionOrigins(), VERSION)
    facts = version_summary(artifact, VersionOrigins(), replace(VERSION, content=Content(), pruned=True))
    assert (facts["number"], facts["author"], facts["pruned"]) == (1, "agent", True)


def test_a_long_request_is_cut() -> None:
    origins = VersionOrigins(messages={"t": said("m", "a" * (MAX_REQUEST + 1))})
    assert version_summary(Artifact("doc", CONTENT, 1, False, "t"), origins, VERSION)["request"] == "a" * MAX_REQUEST
