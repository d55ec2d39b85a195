"""One server per SQLite file: whoever opens it holds a lock beside it.

Rule 1: the lock is the operating system's (`flock`) on `FILE-lock`, so it ends with the process, however that ends.
Rule 2: the file of the lock stays. Who removed it could remove it from under another one, who has just opened it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class DatabaseInUse(Exception):
    """Another server has the file open; `str()` is one line that says what to do."""

    def __init__(self, path: Path, process: str) -> None:
        who = f" (process {process})" if process else ""
        super().__init__(
            f"The database {path} is open in another server{who}. "
            "Stop it, choose another --database, or use postgresql:// for several servers."
        )
        self.path = path
        self.process = process


class FileLock:
    """The lock of a database.

    Args:
        path: the file of the database; a link stands for what it leads to.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        whole = path.resolve()
        self._beside = whole.with_name(whole.name + "-lock")
        self._held: int | None = None

    def take(self) -> None:
        """Hold the lock until `release`, or the end of the process.

        Raises:
            DatabaseInUse: somebody holds it.
            OSError: the file beside the database cannot be made.
        """
        # Not handed on to programs that this one starts: they would go on holding it.
        descriptor = os.open(self._beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process = os.read(descriptor, 20).decode(errors="replace").strip()
            os.close(descriptor)
            raise DatabaseInUse(self._path, process) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._held = descriptor

    def release(self) -> None:
        """Let it go; nothing if it is not held."""
        if self._held is not None:
            os.ftruncate(self._held, 0)
            os.close(self._held)
            self._held = None
