"""What a server looks up in its database before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from a2a_canvas.server.accounts.api_key import NO_KEYS, KeyCount
from a2a_canvas.server.settings.settings import Settings, SettingsError
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.text.wording import amount

if TYPE_CHECKING:
    from a2a_canvas.store.sql.database import Database

_LIMITS = (
    "SELECT name, setting FROM pg_settings WHERE name IN "
    "('max_connections', 'superuser_reserved_connections', 'reserved_connections')"
)


@dataclass(frozen=True, slots=True)
class DataCount:
    """The contents of a database, counted."""

    tasks: int = 0
    contexts: int = 0
    keys: KeyCount = NO_KEYS

    def __str__(self) -> str:
        if not self.tasks:
            return "no tasks yet"
        return f"{amount(self.tasks, 'task')} in {amount(self.contexts, 'context')}"

    @classmethod
    def from_json(cls, counts: Mapping[str, Any]) -> Self:
        """That of `dataclasses.asdict`."""
        return cls(counts["tasks"], counts["contexts"], KeyCount(**counts["keys"]))


@dataclass(frozen=True, slots=True)
class ConnectionLimit:
    """The connections that PostgreSQL allows (`max_connections`), and how many of them are not for servers."""

    most: int
    reserved: int

    @property
    def for_servers(self) -> int:
        return self.most - self.reserved


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """A database that a server can use.

    Attributes:
        count: None if it could not be counted in time.
        allowed: None on SQLite.
    """

    count: DataCount | None = None
    allowed: ConnectionLimit | None = None


async def check_database(settings: Settings) -> DatabaseState:
    """Look into the database; a SQLite file is created and upgraded.

    Raises:
        SettingsError: a server could not use it.
    """
    from a2a_canvas.server.accounts.sql.sql_api_keys import count_keys
    from a2a_canvas.server.backend.open_database import DatabaseError, make_database, prepare_database
    from a2a_canvas.server.tasks.sql.journal.journal_reading import count_tasks

    database = make_database(settings.database)
    try:
        await prepare_database(database)
    except DatabaseError as error:
        raise SettingsError(str(error)) from error
    try:
        allowed = await allowed_connections(database)
        async with database.read() as connection:
            return DatabaseState(DataCount(*await count_tasks(connection), await count_keys(connection)), allowed)
    except Unavailable:
        return DatabaseState()
    finally:
        await database.close()


async def allowed_connections(database: Database) -> ConnectionLimit | None:
    """What PostgreSQL allows; None on SQLite. Raises `Unavailable`."""
    if database.dialect == "sqlite":
        return None
    async with database.read() as connection:
        found = {row.name: int(row.setting) for row in await connection.exec_driver_sql(_LIMITS)}
    most = found.pop("max_connections")
    return ConnectionLimit(most, sum(found.values()))
