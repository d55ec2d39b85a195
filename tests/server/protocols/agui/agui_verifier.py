"""Holds AG-UI event sequences against the checkers of the AG-UI client itself (`verify.mjs`), which run under node.

`make setup-node` installs what they need. Without it the tests that call `verify` are skipped, unless the environment
variable `TESTS_NEED_NODE` is set: then they fail.
"""

import atexit
import functools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import IO, Any

import pytest

HERE = Path(__file__).parent
CLIENTS = ("@ag-ui/client", "client-0.0")
"""AG-UI's own client: that of version 1.0, and the last one before it."""

NEEDS_NODE = "TESTS_NEED_NODE"


def missing() -> str:
    """What is missing to run the checkers; empty if nothing is."""
    if not shutil.which("node"):
        return "node is not installed, so AG-UI's own checkers cannot run"
    if not all((HERE / "node_modules" / client).is_dir() for client in CLIENTS):
        return "AG-UI's own checkers are not installed; `make setup-node` does it"
    return ""


def verify(*sequences: list[dict[str, Any]]) -> None:
    """Check whole runs: the schema of every event, their order, and that every patch applies.

    Args:
        sequences: of events as they go over the wire, each from its RUN_STARTED to its end.

    Raises:
        AssertionError: which event of which sequence is wrong, and why.
    """
    if reason := missing():
        if os.environ.get(NEEDS_NODE):
            pytest.fail(f"{reason}, and {NEEDS_NODE} is set")
        pytest.skip(reason)
    to, answers = _checkers()
    to.write(json.dumps(sequences) + "\n")
    to.flush()
    complaints = json.loads(answers.readline() or '["the checkers have ended"]')
    assert not complaints, "\n".join(complaints)


@functools.cache
def _checkers() -> tuple[IO[str], IO[str]]:
    """Input and output of the checkers. They take 0.3 s to start: one process serves all tests of this one."""
    process = subprocess.Popen(
        ["node", str(HERE / "verify.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(process.communicate)
    assert process.stdin
    assert process.stdout
    return process.stdin, process.stdout
