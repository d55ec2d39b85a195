"""The large files of messages, each in a row of its own: tasks, entries and inbox rows name them (`kept_files.py`).

Rule 1: the row of a file is written before its message is accepted, in a transaction of its own, one file at a time:
        so no other write waits for more than one of them. Until a task names the file, `unnamed_files` says so.
Rule 2: the transaction that writes a name sees to it that the row is there, and counts its bytes (`store/sql/kept.py`)
        when it is the first. So a context keeps a file once, as long as it is there itself.
Rule 3: a file that no task names after `UNNAMED_FOR` is deleted: its message was never accepted.
Rule 4: what a row has that is not the whole file is left out, as if there were no row.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Index, LargeBinary, Table, delete, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.tasks.incoming import DEDUP_WINDOW
from a2a_canvas.server.tasks.kept_files import Files, KeptFile, NamedFile, files_of
from a2a_canvas.server.tasks.sql.projections.journal_commit import FileKey, JournalCommit
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql.database import Database, TextSize, insert
from a2a_canvas.store.sql.kept import add_kept
from a2a_canvas.store.sql.readable_rows import ReadableRows
from a2a_canvas.store.sql.tables import ContextKeyText, Text, metadata
from a2a_canvas.store.sql.times import to_microseconds

UNNAMED_FOR = 2 * DEDUP_WINDOW
"""Longer than an inbox row that names it is stored."""
PRUNED_AT_ONCE = 4
"""Files that are deleted in one transaction."""
NAMES_PER_QUERY = 200

message_files = Table(
    "message_files",  # the large files of messages
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("digest", Text, primary_key=True),  # SHA-256 of the content
    Column("content", LargeBinary, nullable=False),
)

unnamed_files = Table(
    "unnamed_files",  # those of them that no task names yet
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("written_at", BigInteger, nullable=False),
    Index("unnamed_files_by_time", "written_at"),  # `remove_unnamed`
)

_READABLE = ReadableRows("file of a message")
_KEY = message_files.c.context_id, message_files.c.digest
_UNNAMED = unnamed_files.c.context_id, unnamed_files.c.digest

FILE_SIZE = TextSize(message_files.c.content)


class MessageFiles:
    """Writes the files of messages that are about to be accepted.

    Args:
        check_open: raises `Unavailable` while nothing can be written, so that no file waits for it.
    """

    def __init__(self, database: Database, now: Callable[[], datetime], check_open: Callable[[], None]) -> None:
        self._database = database
        self._check_open = check_open
        self._now = now
        self._writing = asyncio.Lock()

    async def keep(self, context_id: ContextKey, message: UserMessage) -> None:
        """Write the files of a message that are not there (rule 1).

        Raises:
            Unavailable: the database cannot be used.
        """
        for file in files_of(message):
            if file.is_whole:
                async with self._writing:
                    self._check_open()
                    await self._keep(context_id, file)

    async def _keep(self, context_id: ContextKey, file: KeptFile) -> None:
        key = {"context_id": context_id, "digest": file.digest}
        at = to_microseconds(self._now())
        async with self._database.write() as connection:
            found = select(message_files.c.digest).where(*_is(message_files, key))
            if await connection.scalar(found) is not None:
                await connection.execute(update(unnamed_files).where(*_is(unnamed_files, key)).values(written_at=at))
                return
            new = insert(connection, message_files).values(**key, content=file).on_conflict_do_nothing()
            if (await connection.execute(new)).rowcount:
                unnamed = insert(connection, unnamed_files).values(**key, size=file.size, written_at=at)
                await connection.execute(unnamed.on_conflict_do_nothing())


def write(connection: Connection, commit: JournalCommit) -> None:
    """See to it that the files which a transaction names are there, and count those that were not named (rule 2)."""
    keys = sorted(commit.files)
    for first in range(0, len(keys), NAMES_PER_QUERY):
        some = keys[first : first + NAMES_PER_QUERY]
        commit.kept.update(_take(connection, some))  # first: a sweep that deletes one of them has it locked
        found = {(row[0], row[1]) for row in connection.execute(select(*_KEY).where(tuple_(*_KEY).in_(some)))}
        lost = [key for key in some if key not in found and commit.files[key].is_whole]
        for key in lost:
            commit.kept[key[0]] += _add(connection, key, commit.files[key])
        if lost:
            commit.kept.update(_take(connection, lost))  # another transaction may have written them meanwhile


def _take(connection: Connection, keys: Sequence[FileKey]) -> Counter[str]:
    """These files are named now; the bytes of those that were not, by context."""
    taken = delete(unnamed_files).where(tuple_(*_UNNAMED).in_(keys))
    sizes: Counter[str] = Counter()
    for context_id, size in connection.execute(taken.returning(unnamed_files.c.context_id, unnamed_files.c.size)):
        sizes[context_id] += size
    return sizes


def _add(connection: Connection, key: FileKey, file: KeptFile) -> int:
    new = insert(connection, message_files).values(context_id=key[0], digest=key[1], content=file)
    return file.size if connection.execute(new.on_conflict_do_nothing()).rowcount else 0


async def read_files(connection: AsyncConnection, named: Iterable[tuple[ContextKey, NamedFile]]) -> dict[str, Files]:
    """The files that rows name, with the context of each; by context, without those that are not there (rule 4)."""
    sizes = {(context_id, file.digest): file.size for context_id, file in named}
    keys = sorted(sizes)
    found: dict[str, dict[str, KeptFile]] = defaultdict(dict)
    for first in range(0, len(keys), NAMES_PER_QUERY):
        query = select(message_files).where(tuple_(*_KEY).in_(keys[first : first + NAMES_PER_QUERY]))
        rows = (await connection.execute(query)).all()
        for context_id, file in _READABLE.decode(rows, lambda row: (row.context_id, _file(row, sizes))):
            found[context_id][file.digest] = file
    return dict(found)


def _file(row: Any, sizes: Mapping[FileKey, int]) -> KeptFile:
    size = sizes[row.context_id, row.digest]
    if len(row.content) != size:
        raise ValueError(f"{len(row.content)} bytes of {size}")
    return KeptFile.from_row(row.content, row.digest, size)


async def remove_unnamed(database: Database, now: datetime) -> None:
    """Delete the files that no task names (rule 3)."""
    old = unnamed_files.c.written_at < to_microseconds(now - UNNAMED_FOR)
    some = select(*_UNNAMED).where(old).limit(PRUNED_AT_ONCE)
    while True:
        async with database.read() as connection:
            if not (keys := [(row[0], row[1]) for row in await connection.execute(some)]):
                return
        async with database.write() as connection:  # by their age again: one of them may have been sent again
            gone = delete(unnamed_files).where(old, tuple_(*_UNNAMED).in_(keys)).returning(*_UNNAMED)
            keys = [(row[0], row[1]) for row in await connection.execute(gone)]
            await connection.execute(delete(message_files).where(tuple_(*_KEY).in_(keys)))


async def remove_some(database: Database, context_id: ContextKey) -> bool:
    """Delete some files of a context, named or not; whether there were any."""
    some = select(message_files.c.digest).where(_KEY[0] == context_id).limit(PRUNED_AT_ONCE)
    async with database.write() as connection:
        digests = (await connection.scalars(some)).all()
        unnamed = delete(unnamed_files).where(_UNNAMED[0] == context_id, _UNNAMED[1].in_(digests))
        uncounted = {*await connection.scalars(unnamed.returning(_UNNAMED[1]))}
        gone = delete(message_files).where(_KEY[0] == context_id, _KEY[1].in_(digests)).returning(_KEY[1], FILE_SIZE)
        freed = sum(size for digest, size in await connection.execute(gone) if digest not in uncounted)
        await connection.run_sync(add_kept, {context_id: -freed})
    return bool(digests)


def _is(table: Any, key: Mapping[str, str]) -> list[Any]:
    return [table.c[name] == value for name, value in key.items()]
