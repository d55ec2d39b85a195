"""How many connections to PostgreSQL each worker may have. Pure."""

from __future__ import annotations

from a2a_canvas.server.commands.database_check import ConnectionLimit
from a2a_canvas.server.settings.settings import SettingsError, option_name
from a2a_canvas.store.sql.database import CONNECTIONS, FEWEST_CONNECTIONS


def connections_each(workers: int, allowed: ConnectionLimit) -> int:
    """The connections of each worker: `CONNECTIONS`, or fewer if not all can have them.

    Raises:
        SettingsError: there are not even enough for `FEWEST_CONNECTIONS` each.
    """
    each = min(CONNECTIONS, allowed.for_servers // workers)
    if each >= FEWEST_CONNECTIONS:
        return each
    fewer, need = allowed.for_servers // FEWEST_CONNECTIONS, workers * FEWEST_CONNECTIONS + allowed.reserved
    lower = f"set {option_name('workers')} to {fewer} or fewer, or " if fewer else ""
    raise SettingsError(
        f"{option_name('workers')} {workers} needs {workers * FEWEST_CONNECTIONS} connections to PostgreSQL, which "
        f"allows {allowed.for_servers}: {lower}raise its max_connections to {need} or more."
    )
