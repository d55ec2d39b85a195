"""Ids and keys: what is made here carries its shard, and everything of a context has one shard."""

from __future__ import annotations

import hashlib
from uuid import NAMESPACE_URL, RFC_4122, UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.store.ids import SHARDS, context_key, is_unique, new_id, public_id, shard_of
from a2a_canvas.store.sql.tables import with_shard

SHARD = st.integers(0, SHARDS - 1)
OWNER = st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), max_size=20)
CONTEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=40)
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
MADE, OTHER = "4213a5e9-46b3-8abc-a729-43b0f04a680a", "b7d7c3a1-5a0f-4c39-9a3e-2f4f0c9d1e11"


@given(SHARD)
def test_an_id_is_a_uuid_of_version_8_that_says_its_shard(shard: int) -> None:
    made = new_id(shard)
    parsed = UUID(made)
    assert (str(parsed), parsed.version, parsed.variant) == (made, 8, RFC_4122)
    assert shard_of(made) == shard
    assert is_unique(made)


def test_without_a_shard_an_id_has_any_and_no_two_are_the_same() -> None:
    made = [new_id() for _ in range(2_000)]
    assert len({*made}) == 2_000
    assert len({shard_of(each) for each in made}) > 1_000
    assert len({new_id(7) for _ in range(2_000)}) == 2_000


@pytest.mark.parametrize("form", [str.upper, "urn:uuid:{}".format, "{{{}}}".format, lambda made: made.replace("-", "")])
def test_only_the_canonical_form_says_its_shard(form) -> None:
    """Any client may write ids as it likes: the shard of one text is always the same."""
    made = form(str(UUID("00000000-0000-8abc-8000-000000000001")))
    assert is_unique(made)
    assert shard_of(made) == int(hashlib.sha256(made.encode()).hexdigest()[:3], 16)


@pytest.mark.parametrize(
    "other", [str(uuid5(NAMESPACE_URL, "a")), ULID, "notes", "00000000-0000-8abc-c000-000000000001"]
)
def test_any_other_text_has_the_shard_of_its_hash(other: str) -> None:
    assert f"{shard_of(other):03x}" == hashlib.sha256(other.encode()).hexdigest()[:3]


@given(OWNER, CONTEXT)
def test_a_key_is_stored_after_its_shard_and_says_its_context(owner: str, context_id: str) -> None:
    key = context_key(owner, context_id)
    assert public_id(key) == context_id
    assert with_shard(key) == f"{shard_of(key):03x}\x1f{key}"
    assert shard_of(key) == shard_of(context_id) or (owner and not is_unique(context_id))


@pytest.mark.parametrize("context_id", [MADE, OTHER, ULID, OTHER.upper()])
def test_an_owner_and_a_guest_find_a_context_of_a_unique_id_in_one_shard(context_id: str) -> None:
    keys = {context_key(owner, context_id) for owner in ("", "ann", "bob")}
    assert len(keys) == 3
    assert {shard_of(key) for key in keys} == {shard_of(context_id)}


def test_contexts_of_several_owners_with_one_name_are_in_several_shards() -> None:
    shards = {shard_of(context_key(f"user{number}", "notes")) for number in range(50)}
    assert len(shards) > 40
    assert shard_of(context_key("", "notes")) == shard_of("notes")


def test_shards_are_used_evenly() -> None:
    """Of 4,096 names, each sixteenth of the shards has its part."""
    parts = [0] * 16
    for number in range(4_096):
        parts[shard_of(context_key("ann", f"notes {number}")) // 256] += 1
    assert 190 < min(parts) <= max(parts) < 330
