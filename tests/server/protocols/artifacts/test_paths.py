"""Which resource a path names: ids of any characters, and the words that are not ids."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.protocols.artifacts.paths import (
    Current,
    Diff,
    Events,
    Listing,
    OneVersion,
    Versions,
    path_of,
    resource_of,
)

IDS = st.one_of(
    st.sampled_from(["events", "versions", "diff", ".", "..", "a/b", "50%", "%2F", "a?b#c", " ", "+", "\n", "é 😀"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
)
RESOURCES = st.one_of(
    st.builds(Listing, IDS),
    st.builds(Events, IDS),
    *(st.builds(kind, IDS, IDS) for kind in (Current, Versions)),
    *(st.builds(kind, IDS, IDS, IDS) for kind in (OneVersion, Diff)),
)


@given(RESOURCES)
def test_every_resource_has_a_path_that_names_it_whatever_is_in_its_ids(resource) -> None:
    assert resource_of(path_of(resource)) == resource


@given(RESOURCES)
def test_a_client_sends_that_path_as_it_is(resource) -> None:
    path = "/artifacts/" + path_of(resource)
    assert httpx.URL("http://here" + path).raw_path.decode() == path


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("c", Listing("c")),
        ("events", Listing("events")),
        ("c/events", Events("c")),
        ("c/%65vents", Current("c", "events")),
        ("c/events/versions", Versions("c", "events")),
        ("c/versions", Current("c", "versions")),
        ("c/versions/versions", Versions("c", "versions")),
        ("c/versions/versions/versions", OneVersion("c", "versions", "versions")),
        ("c/a%2Fb", Current("c", "a/b")),
        ("c/a%2fb", Current("c", "a/b")),
        ("c/a%252Fb", Current("c", "a%2Fb")),
        ("c/a+b", Current("c", "a+b")),
        ("c/50%", Current("c", "50%")),
        ("c/d/versions/3", OneVersion("c", "d", "3")),
        ("c/d/versions/3/diff", Diff("c", "d", "3")),
    ],
)
def test_a_word_counts_only_where_the_table_has_it_and_only_plainly(path, resource) -> None:
    assert resource_of(path) == resource


@pytest.mark.parametrize(
    "path",
    ["", "c/", "/d", "c//versions", "c/d/", "c/d/e", "c/d/versions/", "c/d/versions/1/x", "c/d/versions/1/diff/x"],
)
def test_what_is_in_no_row_of_the_table_names_nothing(path) -> None:
    assert resource_of(path) is None


@pytest.mark.parametrize("path", ["%FF", "c/%C3", "c/d/versions/%E2%82"])
def test_what_is_not_utf_8_names_nothing(path) -> None:
    assert resource_of(path) is None
