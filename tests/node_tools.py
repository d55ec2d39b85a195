"""Node for the tests of the page, and of what others have written in JavaScript. `make setup-node` installs it.

Without it they are skipped, unless the environment variable `TESTS_NEED_NODE` is set: then they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDS_NODE = "TESTS_NEED_NODE"
ENVIRONMENT = {**os.environ, "LC_ALL": "en_GB.UTF-8"}
"""Otherwise numbers and dates follow the locale of the machine."""


def run_node(*arguments: Path | str, installed: str = "", within: Path = ROOT) -> str:
    """What a program in JavaScript prints.

    Args:
        installed: a package that it imports.
        within: the folder with the packages.

    Raises:
        AssertionError: it failed; the message is all that it printed.
    """
    need_node(installed, within=within)
    done = subprocess.run(
        ["node", *arguments], cwd=within, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed_file(package: str, path: str) -> str:
    """The text of a file of a package. Skips the test, or fails it, if the package is not installed."""
    need_node(package)
    return (ROOT / "node_modules" / package / path).read_text()


def need_node(*packages: str, within: Path = ROOT) -> None:
    """Skips the test, or fails it, if node or one of these packages is not installed."""
    if reason := missing(packages, within):
        if os.environ.get(NEEDS_NODE):
            pytest.fail(f"{reason}, and {NEEDS_NODE} is set")
        pytest.skip(reason)


def missing(packages: Iterable[str], within: Path = ROOT) -> str:
    """Why these packages cannot be used, "" if they can."""
    if not shutil.which("node"):
        return "node is not installed"
    absent = [each for each in packages if each and not (within / "node_modules" / each).is_dir()]
    return f"{', '.join(absent)} is not installed; `make setup-node` does it" if absent else ""
