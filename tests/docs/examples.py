"""Programs and terminal sessions that the pages show, run against a server."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from a2a_canvas.server.commands.cli import main
from tests.docs.pages import ADDRESS

UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?\b")
TIME = re.compile(r"\b\d\d:\d\d\b")


def printed(code: str, address: str, folder: Path) -> str:
    """What a program of a page prints."""
    assert ADDRESS in code
    (folder / "example.py").write_text(code.replace(ADDRESS, address))
    ran = subprocess.run(
        [sys.executable, folder / "example.py"],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONIOENCODING": "utf-8"},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def assert_goes_as_shown(session: str, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the commands of a session: each one prints the lines shown, in their order, `[…]` standing for any.

    A command fails if an error is shown.
    """
    context = ""
    for command in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        line, *shown = command.splitlines()
        program, *arguments = [context if UUID.fullmatch(word) else word for word in shlex.split(line)]
        assert program == ".venv/bin/a2a-canvas"
        fails = any(each.startswith("a2a-canvas: ") for each in shown)
        assert bool(main([*arguments, "--url", address])) is fails
        said = "".join(capsys.readouterr()).splitlines()
        context = next((line.split()[-1] for line in said if line.startswith("context")), context)
        rest = iter([_normal(line) for line in said])
        missing = [line for line in shown if line != "[…]" and line[:1] != "─" and _normal(line) not in rest]
        assert missing == []


def _normal(line: str) -> str:
    return re.sub("  +", " ", TIME.sub("TIME", UUID.sub("ID", line)))
