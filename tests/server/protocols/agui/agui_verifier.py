"""Holds AG-UI event sequences against the checkers of the AG-UI client itself (`verify.mjs`), which run under node.

Without what `make setup-node` installs, the tests that call `verify` are skipped (`node_tools.py`).
"""

import atexit
import functools
import json
import subprocess
from pathlib import Path
from typing import IO, Any

from tests.node_tools import need_node

HERE = Path(__file__).parent
CLIENTS = ("@ag-ui/client", "client-0.0")
"""AG-UI's own client: that of version 1.0, and the last one before it."""


def verify(*sequences: list[dict[str, Any]]) -> None:
    """Check whole runs: the schema of every event, their order, and that every patch applies.

    Args:
        sequences: of events as they go over the wire, each from its RUN_STARTED to its end.

    Raises:
        AssertionError: which event of which sequence is wrong, and why.
    """
    need_node(*CLIENTS, within=HERE)
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
