"""The lock of a SQLite file: one holder at a time, however the last one ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from a2a_canvas.store.sql.sqlite_file import DatabaseInUse, FileLock

ROOT = Path(__file__).parents[3]
HOLDING = """
import sys
from pathlib import Path
from a2a_canvas.store.sql.sqlite_file import FileLock
lock = FileLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_elsewhere(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


def test_a_file_that_another_process_holds_is_refused_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "canvas.db"
    with held_elsewhere(path) as process:
        with pytest.raises(DatabaseInUse) as caught:
            FileLock(path).acquire()
        assert str(caught.value) == (
            f"The database {path} is open in another server (process {process.pid}). "
            "Stop it, choose another (--database second.db), or use postgresql:// for several servers."
        )


def test_a_file_is_free_as_soon_as_its_holder_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "canvas.db"
    with held_elsewhere(path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        lock = FileLock(path)
        lock.acquire()
        lock.release()


def test_a_stopped_holder_still_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "canvas.db"
    with held_elsewhere(path) as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(DatabaseInUse):
            FileLock(path).acquire()


def test_one_process_does_not_open_a_file_twice_and_can_open_it_again(tmp_path: Path) -> None:
    path = tmp_path / "canvas.db"
    first, second = FileLock(path), FileLock(path)
    first.acquire()
    with pytest.raises(DatabaseInUse) as caught:
        second.acquire()
    assert caught.value.process == str(os.getpid())
    first.release()
    second.acquire()
    first.release()
    with pytest.raises(DatabaseInUse):
        first.acquire()
    second.release()


def test_two_files_in_one_folder_do_not_hinder_each_other(tmp_path: Path) -> None:
    locks = [FileLock(tmp_path / name) for name in ("a.db", "b.db")]
    for lock in locks:
        lock.acquire()
    for lock in locks:
        lock.release()


def test_a_file_is_the_same_by_whatever_link_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to("canvas.db")
    lock = FileLock(tmp_path / "canvas.db")
    lock.acquire()
    with pytest.raises(DatabaseInUse):
        FileLock(tmp_path / "link.db").acquire()
    lock.release()


def test_a_program_that_the_holder_started_does_not_hold_it(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "canvas.db")
    lock.acquire()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as process:
        lock.release()
        again = FileLock(tmp_path / "canvas.db")
        again.acquire()
        again.release()
        assert process.poll() is None


def test_where_no_file_can_be_made_it_fails_as_the_system_says(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "nowhere" / "canvas.db").acquire()
