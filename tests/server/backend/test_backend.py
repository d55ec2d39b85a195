"""Which storage the settings ask for, and which they cannot have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from a2a_canvas.server.backend.backend import make_backend
from a2a_canvas.server.settings.settings import SettingsError, load


@pytest.mark.parametrize("database", ["memory", "sqlite:///canvas.db"])
@pytest.mark.parametrize(
    ("given", "named"), [({"broker": "nats://localhost"}, "--broker"), ({"max_turns": 0}, "--max-turns 0")]
)
def test_what_needs_several_servers_says_which_database_it_needs(
    database: str, given: dict[str, Any], named: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        make_backend(load({"database": database, **given}), lambda: datetime.now(UTC))
    needed = "set --database postgresql://USER:PASSWORD@HOST/DATABASE, or leave it out."
    assert str(caught.value) == f"{named} is for several servers on one PostgreSQL: {needed}"
