"""The files of a SQLite database: nobody else's to read, and the same ones for as long as they are open.

Rule 1: a new database can be read by its owner alone; SQLite gives its `-wal` and `-shm` the same mode. An existing
        one keeps the mode that somebody may have given it on purpose.
Rule 2: what is written to a file that was removed or replaced is lost when the last connection closes, and SQLite does
        not say so. So before anything is read or committed it must still be the file that was opened.
Rule 3: its `-wal` comes with the first connection and goes with the last one. So while one connection stays, that which
        writes, it must be the same file, too.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from a2a_canvas.store.errors import Unavailable

logger = logging.getLogger(__name__)

_Identity = tuple[int, int]


class DatabaseFile:
    """The file of a database; a link stands for what it leads to."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._wal = self._path.resolve().with_name(self._path.resolve().name + "-wal")
        self._opened: _Identity | None = None
        self._opened_wal: _Identity | None = None
        self._gone = False

    def create(self) -> None:
        """Make an empty file, if there is none (rule 1). No connection may be open: this would drop its locks.

        Raises:
            OSError: it cannot be made.
        """
        try:
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            mode = stat.S_IMODE(self._path.stat().st_mode)
            if mode & 0o077:
                logger.warning("Other users can open the database %s (mode %03o): chmod 600 it.", self._path, mode)

    def opened(self) -> None:
        """It has been opened: from now on it must be the same."""
        self._opened = _identity(self._path)

    def writing(self) -> None:
        """The connection that writes has begun a transaction (rule 3)."""
        self._opened_wal = self._opened_wal or _identity(self._wal)

    def disconnected(self) -> None:
        """The connection that writes is closed (rule 3)."""
        self._opened_wal = None

    def check(self) -> None:
        """Raises `Unavailable` if it was removed or replaced since it was `opened`."""
        gone = not (_same(self._path, self._opened) and _same(self._wal, self._opened_wal))
        if gone and not self._gone:
            logger.critical(
                "The database %s, or the -wal beside it, was removed or replaced while this server has it open. "
                "Nothing more is read or written. Put back the very file, or stop the server, restore a backup and "
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
