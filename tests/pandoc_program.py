"""pandoc for the tests of documents: the installed one, and programs that behave badly in its place.

Without pandoc these tests are skipped, unless the environment variable `TESTS_NEED_PANDOC` is set: then they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NEEDS_PANDOC = "TESTS_NEED_PANDOC"
VERSION = "pandoc 3.1.9"


def need_pandoc() -> None:
    """Skips the test, or fails it, if pandoc is not installed."""
    if shutil.which("pandoc") is None:
        if os.environ.get(NEEDS_PANDOC):
            pytest.fail(f"pandoc is not installed, and {NEEDS_PANDOC} is set")
        pytest.skip("pandoc is not installed (Debian: apt-get install pandoc)")


def text_in(document: bytes, form: str) -> str:
    """The plain text of a document, as pandoc reads it."""
    command = ["pandoc", "--from", form, "--to", "plain", "--wrap", "none"]
    return subprocess.run(command, input=document, capture_output=True, check=True).stdout.decode()


def program(folder: Path, body: str, version: str = VERSION) -> str:
    """The path of a program in shell script that has pandoc's version, and does `body` with its input."""
    path = folder / "pandoc"
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version}"; exit; fi\n{body}\n')
    path.chmod(0o755)
    return str(path)
