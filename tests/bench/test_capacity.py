"""The model of capacity: what more turns need, and what breaks first."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.capacity import SIZES, Machine, Measured, need


@given(st.integers(1, 10**6), st.integers(0, 10**5), st.booleans())
def test_more_turns_need_at_least_as_much_of_everything(turns: int, more: int, broker: bool) -> None:
    few, many = need(turns, broker=broker), need(turns + more, broker=broker)
    assert few.workers <= many.workers
    assert few.databases <= many.databases
    assert all(few.database[name][0] <= many.database[name][0] for name in few.database)


@given(st.integers(1, 10**6), st.booleans())
def test_something_breaks_if_and_only_if_one_database_is_not_enough(turns: int, broker: bool) -> None:
    found = need(turns, broker=broker)
    assert bool(found.breaks_first) == (found.databases > 1)
    if found.breaks_first:
        needed, there = found.database[found.breaks_first]
        assert (found.databases - 1) * there < needed <= found.databases * there


@given(st.integers(1, 10**6))
def test_a_broker_never_needs_more_databases(turns: int) -> None:
    assert need(turns, broker=True).databases <= need(turns, broker=False).databases


@pytest.mark.parametrize(
    ("machine", "breaks"),
    [
        (Machine(), "commits a second"),
        (replace(Machine(), connections=200), "connections"),
        (replace(Machine(), wal=10e6), "WAL a second"),
        (replace(Machine(), cores=1), "cores of PostgreSQL"),
    ],
)
def test_the_smallest_of_what_a_database_has_breaks_first(machine: Machine, breaks: str) -> None:
    assert need(SIZES[2], broker=True, machine=machine).breaks_first == breaks


def test_the_cores_are_those_that_were_measured() -> None:
    measured = replace(Measured(), cores_per_turn=0.5, sent_per_turn=2e3)
    assert (need(1000, broker=True, measured=measured).cores, need(1000, broker=True, measured=measured).sent) == (
        500,
        2e6,
    )
