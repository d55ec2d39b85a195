"""Node for the tests of the page, and of what others have written for it. `make setup-node` installs what they need.

Without it they are skipped, unless the environment variable `TESTS_NEED_NODE` is set: then they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NEEDS_NODE = "TESTS_NEED_NODE"
ENVIRONMENT = {**os.environ, "LC_ALL": "en_GB.UTF-8"}
"""Otherwise numbers and dates follow the locale of the machine."""


def run_node(*arguments: Path | str, installed: str = "") -> str:
    """What a program in JavaScript prints.

    Args:
        installed: a package that it imports.

    Raises:
        AssertionError: it failed; the message is all that it printed.
    """
    need_node(installed)
    done = subprocess.run(["node", *arguments], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed_file(package: str, path: str) -> str:
    """The text of a file of a package. Skips the test, or fails it, if the package is not installed."""
    need_node(package)
    return (ROOT / "node_modules" / package / path).read_text()


def need_node(package: str) -> None:
    """Skips the test, or fails it, if node or this package is not installed."""
    if reason := _missing(package):
        if os.environ.get(NEEDS_NODE):
            pytest.fail(f"{reason}, and {NEEDS_NODE} is set")
        pytest.skip(reason)


def _missing(package: str) -> str:
    if not shutil.which("node"):
        return "node is not installed"
    if package and not (ROOT / "node_modules" / package).is_dir():
        return f"{package} is not installed; `make setup-node` does it"
    return ""
