"""The schema of the database, and its upgrade from an older revision.

Rule 1: a server upgrades its SQLite file when it opens it. PostgreSQL, which several replicas share, is upgraded
        only by an operator (`a2a-canvas db upgrade`). A server does not start on another revision than its own.
Rule 2: an upgrade is one transaction. Of two at once, the second finds nothing to do.
Rule 3: a released revision is never changed. It names its tables itself, because those of the code change. Until the
        first release there is one revision: a change of the tables changes it, and databases made before are deleted.
Rule 4: no revision is compatible with servers of an older version: all replicas stop before an upgrade, and start after
        it with the new version.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from a2a_canvas.server.tasks.sql.replica.lease import LeaseTiming
from a2a_canvas.store.sql.database import Database

logger = logging.getLogger(__name__)

REVISIONS = "schema_revision"
"""The table that holds the revision."""

FOLDER = Path(__file__).parent
VERSIONS = FOLDER / "versions"
"""The folder of the revisions."""

ALIVE_SECONDS = LeaseTiming().expiry
"""A server whose last heartbeat is older has stopped."""

_UPGRADE_LOCK = 0x0A2A_CA45
"""Key of the advisory lock that an upgrade holds on PostgreSQL."""


class SchemaError(Exception):
    """The database has another schema than this server; `str()` is one line that says what to do."""


async def upgrade(database: Database, *, force: bool = False, progress: Callable[[str], None] = logger.info) -> None:
    """Upgrade the schema to the revision of this server, in one transaction.

    Args:
        force: also while servers use the database, which then fail (rule 4).
        progress: called with a line before each step of the upgrade of a database that has a schema.

    Raises:
        SchemaError: its revision is unknown, or a server uses it.
        Unavailable: the database cannot be used now.
    """
    async with database.write() as connection:
        if database.dialect == "postgresql":
            # Between two statements an upgrade loads and computes, on a busy machine for longer than a server may.
            await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
        await connection.run_sync(_upgrade, database, force, progress)


async def check(database: Database) -> str:
    """The revision of the schema, if it is the one that this server needs.

    Raises:
        SchemaError: it is not.
        Unavailable: the database cannot be used now.
    """
    async with database.read() as connection:
        found = await connection.run_sync(revision)
    if found == newest():
        return found
    _refuse_unknown(found, database)
    state = f"is of an older schema ({found})" if found else "has no tables of a2a-canvas yet"
    raise SchemaError(
        f"The database {database.name} {state}. "
        "Run a2a-canvas db upgrade first, with the same --database or A2A_CANVAS_DATABASE."
    )


async def prepare(database: Database) -> None:
    """Upgrade or check the schema before a server uses the database (rule 1).

    Raises:
        SchemaError: its revision is unknown, or, on PostgreSQL, older.
        Unavailable: the database cannot be used now.
    """
    if database.dialect == "sqlite":
        await upgrade(database)
    else:
        await check(database)


def revision(connection: Connection) -> str:
    """The revision of the schema; empty if there is none yet."""
    if not inspect(connection).has_table(REVISIONS):
        return ""
    return connection.scalar(text(f"SELECT version_num FROM {REVISIONS}")) or ""


def newest() -> str:
    """The revision that this server needs."""
    return max(_revisions())


def can_upgrade(found: str) -> bool:
    """Whether this server upgrades a database of this revision, or needs none; `found` is empty for no schema."""
    return not found or found in _revisions()


def _revisions() -> set[str]:
    """All revisions, by the names of their files."""
    return {path.stem.removeprefix("revision_") for path in VERSIONS.glob("revision_*.py")}


def _upgrade(connection: Connection, database: Database, force: bool, progress: Callable[[str], None]) -> None:
    found = revision(connection)
    _refuse_unknown(found, database)
    if found != newest():
        if found and not force:
            _refuse_if_in_use(connection, database.name)
        _run_missing(connection, found, database.name, progress)


def _run_missing(connection: Connection, found: str, name: str, progress: Callable[[str], None]) -> None:
    """Run the revisions after `found`. A large database takes minutes, so a line names each one before it runs."""
    if not found:
        _run_all(connection, name)
        return
    missing = sorted(each for each in _revisions() if each > found)
    for number, each in enumerate(missing, 1):
        progress(f"Upgrading the database {name} from schema {found} to {each} ({number} of {len(missing)})…")
        run_revisions(connection, each)
        found = each


def _run_all(connection: Connection, name: str) -> None:
    try:
        run_revisions(connection)
    except DBAPIError as error:
        if taken := re.search(r'(?:table|relation) "?(\w+)"? already exists', str(error.orig)):
            raise SchemaError(
                f"The database {name} has a table {taken[1]} of another program, and a2a-canvas needs that name. "
                "Name another database with --database."
            ) from error
        raise


def _refuse_if_in_use(connection: Connection, name: str) -> None:
    """SQLite locks the file of a server instead."""
    if connection.dialect.name == "sqlite":
        return
    recent = "heartbeat_at > extract(epoch FROM clock_timestamp()) - :seconds"
    alive = connection.scalar(text(f"SELECT count(*) FROM replicas WHERE {recent}"), {"seconds": ALIVE_SECONDS})
    if alive:
        servers = "1 server uses" if alive == 1 else f"{alive} servers use"
        raise SchemaError(
            f"{servers} the database {name}, and would fail with the new schema. Stop all servers and run it again "
            f"{ALIVE_SECONDS:g} seconds later, or use --force."
        )


def run_revisions(connection: Connection, to: str = "head") -> None:
    """Run the revisions that the database does not have yet, up to `to`."""
    # Alembic takes long to import, and most starts find nothing to upgrade.
    from alembic import command
    from alembic.config import Config

    config = Config()
    # ConfigParser reads % as the beginning of a variable.
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("version_locations", str(VERSIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def _refuse_unknown(found: str, database: Database) -> None:
    if not can_upgrade(found):
        other = "file" if database.dialect == "sqlite" else "database"
        raise SchemaError(
            f"The database {database.name} is of another schema ({found}) than this server's ({newest()}). "
            f"Name another {other} with --database."
        )
