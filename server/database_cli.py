"""The commands for the database: `a2a-canvas db upgrade`, `db check` and `db prune`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any, TextIO

from a2a_canvas.server.durable_backend import retention_of
from a2a_canvas.server.migrations import check, upgrade
from a2a_canvas.server.open_database import DatabaseError, open_database
from a2a_canvas.server.settings import Settings, add_options, given_options, load
from a2a_canvas.server.tasks.sql.journal.prune import PruneResult, prune
from a2a_canvas.store.sql.database import Database

RETENTION_FIELDS = ("keep_journals", "keep_versions", "keep_contexts")


def add_db_arguments(command: argparse.ArgumentParser) -> None:
    """Add the commands below `db`."""
    actions = command.add_subparsers(dest="action", required=True, metavar="COMMAND")
    _add(actions, "upgrade", "upgrade the database to the schema of this version")
    _add(actions, "check", "check that the database has the schema of this version")
    prune = _add(actions, "prune", "remove what is older than the --keep options allow", *RETENTION_FIELDS)
    prune.add_argument("--dry-run", action="store_true", help="change nothing; only say what would be removed")


def _add(actions: Any, name: str, does: str, *fields: str) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = actions.add_parser(name, help=does, description=f"{does.capitalize()}.")
    add_options(added, ("database", *fields))
    return added


async def database_command(options: argparse.Namespace, out: TextIO) -> int:
    """Run one of the commands above.

    Returns:
        The exit code.

    Raises:
        SettingsError: an option or a variable is wrong.
        DatabaseError: the database cannot be opened, reached or used.
    """
    settings = load(given_options(options))
    if settings.database == "memory":
        raise DatabaseError("--database memory stores nothing: name the file or the server that the command is for.")
    reads = options.action == "check" or (options.action == "prune" and options.dry_run)
    async with open_database(settings.database, shared=reads, new=options.action == "upgrade") as database:
        out.write(await _done(options, settings, database) + "\n")
    return 0


async def _done(options: argparse.Namespace, settings: Settings, database: Database) -> str:
    if options.action == "upgrade":
        await upgrade(database)
    revision = await check(database)
    if options.action == "prune":
        found = await prune(database, retention_of(settings), datetime.now(UTC), dry_run=options.dry_run)
        return pruned_in_words(found, options.dry_run)
    return f"The database {database.name} is of schema {revision}, as this version needs it."


def pruned_in_words(pruned: PruneResult, dry_run: bool) -> str:
    """What was removed, or would be, as a sentence."""
    counts = (
        (pruned.journals, "journal", "journals"),
        (pruned.versions, "old version", "old versions"),
        (pruned.contexts, "conversation", "conversations"),
    )
    what = ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts)
    said = f"{'Would remove' if dry_run else 'Removed'} {what}: about {pruned.bytes} bytes."
    if not pruned.tasks:
        return said
    of = "1 task" if pruned.tasks == 1 else f"{pruned.tasks} tasks"
    return f"{said} Artifacts of {of} are affected: they {'would say' if dry_run else 'say'} that the version is gone."
