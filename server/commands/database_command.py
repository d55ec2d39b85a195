"""The commands for the database: `a2a-canvas db upgrade`, `db check` and `db prune`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from a2a_canvas.server.backend.durable_backend import retention_of
from a2a_canvas.server.backend.migrations import check, upgrade
from a2a_canvas.server.backend.open_database import DatabaseError, open_database
from a2a_canvas.server.settings.settings import Settings, load
from a2a_canvas.server.tasks.sql.journal.journal_reading import count_anonymous
from a2a_canvas.server.tasks.sql.journal.prune import PruneResult, prune
from a2a_canvas.store.sql.database import Database
from a2a_canvas.store.text.wording import amount


async def database_command(
    action: str, values: Mapping[str, Any], out: TextIO, *, dry_run: bool = False, force: bool = False
) -> int:
    """Run `db upgrade`, `db check` or `db prune`.

    Args:
        values: the options of the command line, as `load` takes them.
        force: upgrade even while servers use the database.

    Raises:
        SettingsError: an option or a variable is wrong.
        DatabaseError: the database cannot be opened, reached or used.
    """
    settings = load(values)
    if settings.database == "memory":
        raise DatabaseError("--database memory stores nothing: name the file or the server that the command is for.")

    def write_line(line: str) -> None:
        out.write(f"{line}\n")
        out.flush()

    reads = action == "check" or (action == "prune" and dry_run)
    async with open_database(settings.database, shared=reads, new=action == "upgrade") as database:
        write_line(await _run_action(action, settings, database, write_line, dry_run=dry_run, force=force))
    return 0


async def _run_action(
    action: str,
    settings: Settings,
    database: Database,
    progress: Callable[[str], None],
    *,
    dry_run: bool,
    force: bool,
) -> str:
    if action == "upgrade":
        await upgrade(database, force=force, progress=progress)
    revision = await check(database)
    if action == "prune":
        found = await prune(database, retention_of(settings), datetime.now(UTC), dry_run=dry_run)
        return describe_pruned(found, dry_run)
    async with database.read() as connection:
        anonymous = await count_anonymous(connection)
    return (
        f"The database {database.name} is of schema {revision}, which this version needs.{_anonymous_note(anonymous)}"
    )


def _anonymous_note(tasks: int) -> str:
    if not tasks:
        return ""
    has = f"It has {amount(tasks, 'task')}"
    return f" {has} of anonymous callers: a server with users shows them to the one that --adopt-anonymous names."


def describe_pruned(pruned: PruneResult, dry_run: bool) -> str:
    """A sentence about what was removed, or would be."""
    old = amount(pruned.versions, "old version")
    what = f"{amount(pruned.journals, 'journal')}, {old}, {amount(pruned.contexts, 'conversation')}"
    said = f"{'Would remove' if dry_run else 'Removed'} {what}: about {pruned.bytes} bytes."
    if not pruned.tasks:
        return said
    of = amount(pruned.tasks, "task")
    return f"{said} Artifacts of {of} are affected: they {'would say' if dry_run else 'say'} that the version is gone."
