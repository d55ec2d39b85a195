"""API keys: their form, their hash, and the pairs of the settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.accounts.api_key import (
    PREFIX,
    ApiKey,
    KeyCount,
    hash_of,
    is_key,
    key_of_pair,
    new_key,
    valid_name,
)
from tests.fakes import API_KEYS

KEY = API_KEYS[0]
HASH = hash_of(KEY)


def test_a_key_has_a_prefix_and_is_new_each_time() -> None:
    assert KEY.startswith(PREFIX)
    assert is_key(KEY)
    assert len({new_key("ann") for _ in range(100)}) == 100


@given(st.integers(0, len(KEY) - 1), st.sampled_from("aZ0_-"))
def test_a_key_with_another_character_is_none(at: int, other: str) -> None:
    changed = KEY[:at] + other + KEY[at + 1 :]
    assert is_key(changed) == (changed == KEY)


@pytest.mark.parametrize("text", ["", PREFIX, KEY[:-1], KEY + "a", f" {KEY}", KEY.upper(), "a.b.c"])
def test_what_is_cut_off_or_added_to_is_no_key(text: str) -> None:
    assert not is_key(text)


def test_what_is_stored_does_not_have_the_key() -> None:
    assert KEY not in HASH
    assert len(HASH) == 64


@pytest.mark.parametrize(("given", "hashed"), [(KEY, HASH), (f"sha256:{HASH}", HASH)])
def test_a_pair_has_a_key_or_its_hash_and_its_name_is_the_user(given: str, hashed: str) -> None:
    assert key_of_pair(f"ann={given}") == ApiKey("ann", "ann", hashed)


@pytest.mark.parametrize(
    "pair", ["", "ann", "ann=", f"={KEY}", f"a b={KEY}", "ann=secret", f"ann={HASH}", "ann=sha256:0"]
)
def test_any_other_pair_is_none(pair: str) -> None:
    assert key_of_pair(pair) is None


@pytest.mark.parametrize("name", ["ann", "ann@example.com", "github|42", "Zoë", "a" * 128])
def test_a_name_is_what_fits_into_a_line(name: str) -> None:
    assert valid_name(name)


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a=b", "a\nb", "a\x1fb", "a\u200bb", "a" * 129])
def test_a_name_has_no_spaces_commas_and_control_characters(name: str) -> None:
    assert not valid_name(name)


@pytest.mark.parametrize(("made", "in_force", "locks_out"), [(0, 0, False), (2, 0, True), (2, 1, False), (2, 2, False)])
def test_keys_lock_everyone_out_when_all_of_them_are_revoked(made: int, in_force: int, locks_out: bool) -> None:
    assert KeyCount(made, in_force).lock_out_all is locks_out
