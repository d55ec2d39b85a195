"""`a2a-canvas demo`: it runs to its end as recorded, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.process, pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes there")]

RECORDED = """\
A server runs, on a new SQLite file. One client asks for a guide to tide pools.
Another client joins late, and sees the same document grow.
While the rest is written, someone selects line 3: “Make it warmer”. Nothing is locked.
kill -9 19198: the server is gone, in the middle of a sentence.
It starts again. What was committed is there; the model is asked for the rest once more.
Undo: one step back, for both.
Redo: no version is ever lost.

To start your own server:
  python -m a2a_canvas serve
To talk to it, in a second terminal:
  python -m a2a_canvas send "write an outline about tide pools"
With Claude as the model:
  ANTHROPIC_API_KEY=... python -m a2a_canvas serve
"""
"""What it prints, without what the clients have by then."""


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The demo, ten times faster, with its files in `tmp_path`."""
    environ = {**os.environ, "TMPDIR": str(tmp_path), "A2A_CANVAS_PORT": "1"}
    command = [sys.executable, "-m", "a2a_canvas", "demo", "--speed", "10"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def running(place: Path) -> list[bytes]:
    """The command lines of processes that name a file in `place`."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_bytes())
        except OSError:  # it has just ended
            continue
    return [line for line in lines if str(place).encode() in line]


def steps(text: str) -> list[str]:
    """What is said; a process has another id each time, and clients may be faster or slower."""
    return [re.sub(r"-9 \d+", "-9 …", line) for line in text.splitlines() if not line.startswith("    ")]


def test_it_runs_to_its_end_as_recorded(demo: subprocess.Popen[str], tmp_path: Path) -> None:
    out, err = demo.communicate(timeout=100)
    assert (demo.returncode, err) == (0, "")
    assert steps(out) == steps(RECORDED)
    assert (running(tmp_path), list(tmp_path.iterdir())) == ([], [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_its_server_and_removes_its_file(
    demo: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    assert demo.stdout
    assert demo.stdout.readline().startswith("A server runs")
    assert running(tmp_path)
    demo.send_signal(number)
    assert (demo.wait(timeout=30), demo.stderr.read() if demo.stderr else "") == (130, "")
    assert (running(tmp_path), list(tmp_path.iterdir())) == ([], [])
