"""How many connections each worker gets of those that PostgreSQL allows."""

from __future__ import annotations

import pytest

from a2a_canvas.server.commands.database_check import ConnectionLimit
from a2a_canvas.server.commands.workers.connection_shares import connections_each
from a2a_canvas.server.settings.settings import SettingsError


@pytest.mark.parametrize(("workers", "most", "each"), [(6, 100, 15), (7, 100, 13), (8, 100, 12), (16, 100, 6)])
def test_a_worker_gets_fifteen_or_its_part_of_what_is_allowed(workers: int, most: int, each: int) -> None:
    assert connections_each(workers, ConnectionLimit(most, 3)) == each


def test_fewer_than_six_are_refused_in_one_sentence_with_two_ways_out() -> None:
    with pytest.raises(SettingsError) as refused:
        connections_each(17, ConnectionLimit(100, 3))
    assert str(refused.value) == (
        "--workers 17 needs 102 connections to PostgreSQL, which allows 97: set --workers to 16 or fewer, or raise its "
        "max_connections to 105 or more."
    )


def test_a_database_that_is_too_small_for_any_has_one_way_out() -> None:
    with pytest.raises(SettingsError, match="which allows 2: raise its max_connections to 15 or more"):
        connections_each(2, ConnectionLimit(5, 3))
