"""The file of a SQLite database: its permissions, its identity, and one server per file.

Rule 1: a new database is readable by its owner alone; SQLite gives its `-wal` and `-shm` the same mode. An existing
        file keeps its mode, which may be intended.
Rule 2: data written to a file that was removed or replaced is lost when the last connection closes, and SQLite reports
        no error. So before every read and commit the file must still be the one that was opened.
Rule 3: the `-wal` is created by the first connection and removed by the last one. While the connection that writes is
        open, it must be the same file, too.
Rule 4: the server that has the file open holds a lock of the operating system (`flock`) on `FILE-lock`, until its
        process ends. The lock file is never removed: another server might have just opened it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from pathlib import Path

from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

_Identity = tuple[int, int]


class DatabaseFile:
    """The file of a database. A link is resolved to its target."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._wal = _beside(self._path, "-wal")
        self._opened: _Identity | None = None
        self._opened_wal: _Identity | None = None
        self._gone = False

    def create(self) -> None:
        """Create an empty file, unless it exists (rule 1). No connection may be open: this would drop its locks.

        Raises:
            OSError: it cannot be created.
        """
        try:
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return

    def warn_of_others(self) -> None:
        """Log a warning if other users of the machine can open the file (rule 1)."""
        mode = stat.S_IMODE(self._path.stat().st_mode)
        if mode & 0o077:
            logger.warning("Other users can open the database %s (mode %03o): chmod 600 it.", self._path, mode)

    def record_opened(self) -> None:
        """Record which file was opened (rule 2)."""
        self._opened = _identity(self._path)

    def record_writing(self) -> None:
        """Record which `-wal` the writing connection uses (rule 3)."""
        self._opened_wal = self._opened_wal or _identity(self._wal)

    def record_disconnected(self) -> None:
        """Record that the writing connection is closed (rule 3)."""
        self._opened_wal = None

    def check(self) -> None:
        """Raises `Unavailable` if the file was removed or replaced after `record_opened`."""
        gone = not (_same(self._path, self._opened) and _same(self._wal, self._opened_wal))
        if gone and not self._gone:
            logger.critical(
                "The database %s, or the -wal beside it, was removed or replaced while this server has it open. "
                "Nothing more is read or written. Put back the same file, or stop the server, restore a backup and "
                "start again.",
                self._path,
            )
        self._gone = gone
        if gone:
            raise Unavailable(f"the file {self._path} was removed or replaced while the server had it open")


def _same(path: Path, opened: _Identity | None) -> bool:
    return opened is None or _identity(path) == opened


def _identity(path: Path) -> _Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _beside(path: Path, ending: str) -> Path:
    target = path.resolve()
    return target.with_name(target.name + ending)


class DatabaseInUse(Exception):
    """Another server has the file open; `str()` is one line that says what to do."""

    def __init__(self, path: Path, process: str) -> None:
        who = f" (process {process})" if process else ""
        super().__init__(
            f"The database {path} is open in another server{who}. "
            "Stop it, choose another (--database second.db), or use postgresql:// for several servers."
        )
        self.path = path
        self.process = process


class FileLock:
    """The lock of a database file (rule 4).

    Args:
        path: the file of the database. A link is resolved to its target.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock_file = _beside(path, "-lock")
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Hold the lock until `release`, or the end of the process.

        Raises:
            DatabaseInUse: another process holds it.
            OSError: the lock file cannot be created.
        """
        # O_CLOEXEC: programs started by this one must not inherit the lock.
        descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process = os.read(descriptor, 20).decode(errors="replace").strip()
            os.close(descriptor)
            raise DatabaseInUse(self._path, process) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None
