"""What a user means by what was typed."""

import pytest

from a2a_canvas.server.client.conversation.errors import CannotBeDone
from a2a_canvas.server.client.conversation.names import resolve

KNOWN = {
    "tide-pools": "Tide pools.md",
    "tides": "",
    "a1b2": "notes.md",
    "notes": "Old notes.md",
    "c3": "x.md",
    "c4": "x.md",
}


@pytest.mark.parametrize(
    ("typed", "id_"),
    [
        ("tides", "tides"),
        ("notes", "notes"),
        ("notes.md", "a1b2"),
        ("a1", "a1b2"),
        ("TIDE-", "tide-pools"),
        ("old", "notes"),
    ],
)
def test_an_id_a_name_or_the_beginning_of_one_is_enough(typed: str, id_: str) -> None:
    assert resolve(typed, KNOWN, "artifact") == id_


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("tid", "'tid' may be any of several artifacts: tide-pools (Tide pools.md), tides. Type more of it"),
        ("x.md", "'x.md' may be any of several artifacts: c3 (x.md), c4 (x.md). Type more of it"),
        ("tide-pols", "There is no artifact 'tide-pols'. Did you mean tide-pools (Tide pools.md), tides?"),
        ("zzz", "There is no artifact 'zzz'. There are: tide-pools (Tide pools.md), tides, a1b2 (notes.md), "),
    ],
)
def test_what_fits_several_or_nothing_is_told_with_candidates(typed: str, said: str) -> None:
    with pytest.raises(CannotBeDone) as refused:
        resolve(typed, KNOWN, "artifact")
    assert str(refused.value).startswith(said)


def test_ids_that_servers_make_are_listed_by_their_beginnings() -> None:
    with pytest.raises(CannotBeDone, match=r"There are: d5320258, garden$"):
        resolve("x", {"d5320258-f258-4a86-9eee-60f5c1aaff33": "", "garden": ""}, "context")


def test_where_there_is_nothing_nothing_is_suggested() -> None:
    with pytest.raises(CannotBeDone, match=r"^There is no context 'x'$"):
        resolve("x", {}, "context")
