"""What a caller may see, at one moment: of its own, of what is shared with it, and of what it has adopted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.accounts.access import (
    ANONYMOUS,
    Caller,
    Grants,
    KnownContexts,
    Level,
    Share,
    choose,
    is_user_name,
)
from a2a_canvas.store.ids import context_key, public_id

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES, IDS = st.sampled_from(["ann", "bob", "carol"]), st.sampled_from(["notes", "plan", ""])
CALLERS = st.one_of(st.just(ANONYMOUS), st.builds(Caller, NAMES), st.just(Caller(link="1")))


@st.composite
def grants(draw: st.DrawFn) -> Grants:
    caller, shares = draw(CALLERS), {}
    for number, (owner, id) in enumerate(draw(st.lists(st.tuples(NAMES, IDS), max_size=4, unique=True))):
        if owner != caller.name:
            level = draw(st.sampled_from([Level.READ, Level.EDIT]))
            key = context_key(owner, id)
            shares[key] = Share(str(number), key, owner, level, NOW, caller.name)
    return Grants(caller, shares, adopts=bool(caller.name) and draw(st.booleans()))


@given(grants(), NAMES, IDS)
def test_a_caller_owns_its_own_has_what_is_shared_and_nothing_else(grants: Grants, owner: str, id: str) -> None:
    key = context_key(owner, id)
    share = grants.shares.get(key)
    own = owner == grants.caller.name
    assert grants.level(key, owner) == (Level.OWN if own else share.level if share else Level.NONE)


@given(grants(), IDS)
def test_what_a_caller_finds_is_what_it_may_see_its_own_first(grants: Grants, id: str) -> None:
    found = grants.candidates(id)
    assert all(grants.level(each.key, each.owner) == each.level > Level.NONE for each in found)
    assert all(public_id(each.key) == id for each in found)
    assert len({each.key for each in found}) == len(found)
    first = [each.owner for each in found][:1]
    assert first == ([grants.caller.name] if not grants.caller.link else first)


@given(grants(), IDS)
def test_a_link_and_anonymous_callers_own_nothing_of_somebody_with_a_name(grants: Grants, id: str) -> None:
    if not grants.caller.name:
        owned = [each.owner for each in grants.candidates(id) if each.level is Level.OWN]
        assert owned == ([] if grants.caller.link else [""])


@given(grants(), IDS, st.data())
def test_an_id_that_a_caller_has_used_is_its_own_and_another_means_what_has_begun(
    grants: Grants, id: str, data: st.DataObject
) -> None:
    candidates = grants.candidates(id)
    keys = [each.key for each in candidates]
    some = st.sets(st.sampled_from(keys)) if keys else st.just(set())
    begun, removed = data.draw(some), data.draw(some)
    found = choose(candidates, KnownContexts(begun, removed))
    used = {each.key for each in candidates if each.level is Level.OWN} & (begun | removed)
    assert (found is None) == (not candidates)
    if found:
        assert found.level is Level.OWN or not used
        assert found.key in begun or found == candidates[0]
        assert found.level < Level.OWN or found == candidates[0] or not begun.isdisjoint(used)


@pytest.mark.parametrize("name", ["ann", "Ann B.", "auth0|5f1c", "ann@example.com", "link", "linked", "安"], ids=ascii)
def test_what_a_user_may_be_called(name: str) -> None:
    assert is_user_name(name)


NO_NAMES = ["", " ", " ann", "ann ", "link x", "a\nb", "a\u202eb", "a\u00a0b", "a\0b", "a" * 257]


@pytest.mark.parametrize("name", NO_NAMES, ids=ascii)
def test_what_looks_like_another_name_or_a_link_is_no_name(name: str) -> None:
    assert not is_user_name(name)
