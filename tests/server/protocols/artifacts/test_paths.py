"""Which resource a path names: ids of any characters, and the words that are not ids."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.protocols.artifacts.paths import (
    ArtifactList,
    ArtifactVersion,
    ContextEvents,
    ContextPresence,
    CurrentArtifact,
    OneShare,
    ShareList,
    VersionDiff,
    VersionList,
    parse_path,
)
from a2a_canvas.server.wire import artifact_path, context_path

IDS = st.one_of(
    st.sampled_from(
        ["events", "presence", "shares", "versions", ".", "..", "a/b", "50%", "%2F", "a?b#c", " ", "+", "\n", "é 😀"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
)


@given(IDS, IDS)
def test_every_resource_has_a_path_that_names_it_whatever_is_in_its_ids(context: str, artifact: str) -> None:
    of_context, of_artifact = context_path(context), artifact_path(context, artifact)
    assert parse_path(of_context) == ArtifactList(context)
    assert parse_path(f"{of_context}/events") == ContextEvents(context)
    assert parse_path(f"{of_context}/shares") == ShareList(context)
    assert parse_path(f"{of_context}/shares/{context_path(artifact)}") == OneShare(context, artifact)
    assert parse_path(of_artifact) == CurrentArtifact(context, artifact)
    assert parse_path(f"{of_artifact}/versions") == VersionList(context, artifact)
    assert parse_path(f"{of_artifact}/versions/3") == ArtifactVersion(context, artifact, "3")
    assert parse_path(f"{of_artifact}/versions/3/diff") == VersionDiff(context, artifact, "3")


@given(IDS, IDS)
def test_a_client_sends_that_path_as_it_is(context: str, artifact: str) -> None:
    path = "/artifacts/" + artifact_path(context, artifact)
    assert httpx.URL("http://here" + path).raw_path.decode() == path


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("c", ArtifactList("c")),
        ("events", ArtifactList("events")),
        ("c/events", ContextEvents("c")),
        ("c/%65vents", CurrentArtifact("c", "events")),
        ("c/events/versions", VersionList("c", "events")),
        ("c/shares", ShareList("c")),
        ("c/shares/s-1", OneShare("c", "s-1")),
        ("c/shares/versions", OneShare("c", "versions")),
        ("c/presence", ContextPresence("c")),
        ("c/%70resence", CurrentArtifact("c", "presence")),
        ("c/%73hares", CurrentArtifact("c", "shares")),
        ("c/%73hares/versions", VersionList("c", "shares")),
        ("c/versions", CurrentArtifact("c", "versions")),
        ("c/versions/versions", VersionList("c", "versions")),
        ("c/versions/versions/versions", ArtifactVersion("c", "versions", "versions")),
        ("c/a%2Fb", CurrentArtifact("c", "a/b")),
        ("c/a%2fb", CurrentArtifact("c", "a/b")),
        ("c/a%252Fb", CurrentArtifact("c", "a%2Fb")),
        ("c/a+b", CurrentArtifact("c", "a+b")),
        ("c/50%", CurrentArtifact("c", "50%")),
        ("c/d/versions/3", ArtifactVersion("c", "d", "3")),
        ("c/d/versions/3/diff", VersionDiff("c", "d", "3")),
    ],
)
def test_a_word_counts_only_where_the_table_has_it_and_only_plainly(path, resource) -> None:
    assert parse_path(path) == resource


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "c/",
        "/d",
        "c//versions",
        "c/shares/s/x",
        "c/d/",
        "c/d/e",
        "c/d/versions/",
        "c/d/versions/1/x",
        "c/d/versions/1/diff/x",
    ],
)
def test_what_is_in_no_row_of_the_table_names_nothing(path) -> None:
    assert parse_path(path) is None


@pytest.mark.parametrize("path", ["%FF", "c/%C3", "c/d/versions/%E2%82"])
def test_what_is_not_utf_8_names_nothing(path) -> None:
    assert parse_path(path) is None
