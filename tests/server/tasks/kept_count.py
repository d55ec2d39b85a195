"""The laws of what is counted: the count of each context is the size of the rows that it has, and the tasks of each
owner in each state are as many as their count."""

from __future__ import annotations

from sqlalchemy import exists, false, func, select, union_all

from a2a_canvas.server.accounts.sql.sql_shares import SHARE_SIZE, shares
from a2a_canvas.server.push.sql.outbox_rows import CONFIG_SIZE, push_configs
from a2a_canvas.server.tasks.sql.projections.annotation_rows import ANNOTATION_SIZE, artifact_annotations
from a2a_canvas.server.tasks.sql.projections.loop_values import BEFORE_SIZE, VALUE_SIZE, loop_values, states_before
from a2a_canvas.server.tasks.sql.projections.message_files import FILE_SIZE, message_files, unnamed_files
from a2a_canvas.server.tasks.sql.projections.pages import PAGE_SIZE, pages
from a2a_canvas.server.tasks.sql.projections.records import RECORD_SIZE, tasks
from a2a_canvas.server.tasks.sql.projections.task_counts import task_counts
from a2a_canvas.store.sql.database import Database, TextSize
from a2a_canvas.store.sql.kept import kept_bytes
from a2a_canvas.store.sql.tables import versions

SIZES = {
    tasks: RECORD_SIZE,
    pages: PAGE_SIZE,
    push_configs: CONFIG_SIZE,
    shares: SHARE_SIZE,
    versions: TextSize(versions.c.content, versions.c.replacement),
    message_files: FILE_SIZE,
    loop_values: VALUE_SIZE,
    states_before: BEFORE_SIZE,
    artifact_annotations: ANNOTATION_SIZE,
}
NOT_NAMED = unnamed_files.c.context_id == message_files.c.context_id, unnamed_files.c.digest == message_files.c.digest
NOT_COUNTED = {message_files: exists().where(*NOT_NAMED)}


async def counted(database: Database) -> dict[str, int]:
    """What the database says that it keeps, by context."""
    async with database.read() as connection:
        found = await connection.execute(select(kept_bytes.c.context_id, kept_bytes.c.bytes))
        return {context_id: size for context_id, size in found}


async def recounted(database: Database) -> dict[str, int]:
    """What it keeps, by context."""
    sizes = union_all(
        *(
            select(table.c.context_id, size.label("size")).where(~NOT_COUNTED.get(table, false()))
            for table, size in SIZES.items()
        )
    ).subquery()
    sums = select(sizes.c.context_id, func.sum(sizes.c.size)).group_by(sizes.c.context_id)
    async with database.read() as connection:
        return {context_id: int(size) for context_id, size in await connection.execute(sums)}


async def assert_counted(url: str) -> None:
    database = Database(url)
    try:
        assert await counted(database) == await recounted(database)
        await assert_tasks_counted(database)
    finally:
        await database.close()


async def assert_tasks_counted(database: Database) -> None:
    of_tasks = select(tasks.c.owner, tasks.c.state, func.count()).group_by(tasks.c.owner, tasks.c.state)
    number = func.sum(task_counts.c.tasks)
    counts = select(task_counts.c.owner, task_counts.c.state, number).group_by(task_counts.c.owner, task_counts.c.state)
    async with database.read() as connection:
        found = {(owner, state): number for owner, state, number in await connection.execute(counts) if number}
        assert found == {(owner, state): number for owner, state, number in await connection.execute(of_tasks)}
