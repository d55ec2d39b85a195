"""How a process starts this program again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def own_command(arguments: Sequence[str]) -> list[str]:
    """The command line that runs this program, as it was called, with other arguments."""
    called = sys.argv[0]
    program = ["-m", "a2a_canvas"] if Path(called).name == "__main__.py" else [called]
    return [sys.executable, *program, *arguments]
