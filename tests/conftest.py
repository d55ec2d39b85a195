"""Which tests a run has, and what holds for all of them.

Rule 1: `pytest` runs every test with every example. `--quick` leaves out what is marked `process`, `postgres` or
        `slow`, and gives each property a twentieth of its examples.
Rule 2: a marker follows from where a test is (`MARKED`) or from its parameters; elsewhere a test names it itself.
Rule 3: a quick run does not import what it leaves out whole: imports are a good part of its time.
Rule 4: a test that is not marked `postgres` cannot start PostgreSQL: a quick run must not find out that it needs one.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import certifi
import pytest
from hypothesis import HealthCheck, settings

from tests import database_fixtures, property_examples

ROOT = Path(__file__).parents[1]
LEFT_OUT = ("process", "postgres", "slow")
"""The markers of what a quick run leaves out."""
FIRST_WAY = ("JSONRPC", "1.0")
"""The transport by which a quick run tests what all of them show (`app_server.WAYS`)."""
LATE_AGAIN = 20.0
"""After so many seconds a test that goes on when its time is up is ended again. To end its servers takes less."""
MARKED = {
    "tests/bench": "process",
    "tests/server/agent/models/rehearsal/test_rehearsal.py": "slow",
    "tests/server/agent/turn/test_conversations.py": "slow",
    "tests/server/agent/turn/test_too_long.py": "slow",
    "tests/server/canvas/browser": "process",
    "tests/server/faults": "process",
    "tests/server/tasks/sql/projections/test_named_versions.py": "slow",
    "tests/server/tasks/sql/replica": "postgres",
    "tests/server/test_mcp.py": "process",
    "tests/server/test_stock_clients.py": "slow",
    "tests/server/tool_sources/agui_agents/test_real_agents.py": "process",
    "tests/server/tool_sources/mcp_servers/test_hostile_servers.py": "process",
    "tests/server/tool_sources/mcp_servers/test_process.py": "process",
    "tests/server/tool_sources/mcp_servers/test_source.py": "process",
    "tests/test_dockerfile.py": "process",
    "tests/test_package.py": "process",
    "tests/test_start.py": "process",
}
"""The marker of all tests of a folder or a file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help=f"leave out what is marked {', '.join(LEFT_OUT)}")


def pytest_configure(config: pytest.Config) -> None:
    gone = [place for place in MARKED if not (ROOT / place).exists()]
    assert not gone, f"MARKED names files that do not exist: {gone}"
    state = tempfile.mkdtemp(prefix="a2a-canvas-state-")
    os.environ["XDG_STATE_HOME"] = state
    config.add_cleanup(lambda: shutil.rmtree(state, ignore_errors=True))
    _trust_one_authority(Path(state, "authority.pem"))
    property_examples.quick = config.getoption("--quick")
    os.environ["EXAMPLES_SHARE"] = str(property_examples.share())
    # On a busy machine an example may take any time.
    settings.register_profile(
        "tests",
        max_examples=property_examples.examples(100),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("tests")
    # What collecting makes stays: each search for garbage in it would find none and take longer than the one before.
    gc.disable()


def _trust_one_authority(file: Path) -> None:
    """Have clients trust one authority instead of all of the internet, which each of them takes 15 ms to read."""
    end = "-----END CERTIFICATE-----"
    file.write_text(Path(certifi.where()).read_text().partition(end)[0] + end)
    certifi.where = lambda: str(file)
    os.environ["SSL_CERT_FILE"] = str(file)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    place = collection_path.relative_to(ROOT).as_posix() if collection_path.is_relative_to(ROOT) else ""
    left_out = config.getoption("--quick") and MARKED.get(place) in ("process", "slow")
    # What the command line names is collected: pytest takes a path without tests for a wrong one.
    return True if left_out and not any(place in argument for argument in config.args) else None


def pytest_collection_finish() -> None:
    """Leaves modules and tests, which stay to the end, out of every later search for garbage."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for marker in _markers(item):
            item.add_marker(marker)
    if config.getoption("--quick"):
        left_out = {item for item in items if any(item.get_closest_marker(name) for name in LEFT_OUT)}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@cache
def _markers_of_place(path: Path) -> Sequence[str]:
    return [marker for folder, marker in MARKED.items() if path.is_relative_to(ROOT / folder)]


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes no tests of parameters that a quick run leaves out: a tenth of the time of collecting would be theirs."""
    if metafunc.config.getoption("--quick"):
        transports = metafunc.definition.get_closest_marker("transports") is not None
        calls = metafunc._calls
        kept = [call for call in calls if not any(_markers_of_parameters(call.id, call.params, transports))]
        # Without any, pytest would make a test without parameters.
        metafunc._calls = kept or calls[:1]


def _markers(item: pytest.Item) -> Iterator[str]:
    parameters = getattr(item, "callspec", None)
    if parameters:
        yield from _markers_of_parameters(
            parameters.id, parameters.params, item.get_closest_marker("transports") is not None
        )
    for marker in _markers_of_place(item.path):
        if not (marker == "postgres" and parameters and "sqlite" in parameters.id):
            yield marker


def _markers_of_parameters(name: str, parameters: Mapping[str, object], transports: bool) -> Iterator[str]:
    if "postgresql" in name:
        yield "postgres"
    # All transports show the same projection: a quick run tests it by the first one, and a few tests by all.
    if parameters.get("way", FIRST_WAY) != FIRST_WAY and not transports:
        yield "slow"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    database_fixtures.permitted = any(item.get_closest_marker(name) for name in ("postgres", "process"))


@pytest.fixture(scope="session", autouse=True)
def no_file_in_the_working_directory() -> Iterator[None]:
    """A server keeps what it has in memory, unless its test names a database: no test finds what another one left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A2A_CANVAS_DATABASE", "memory")
        yield


@pytest.fixture(autouse=True)
def levels_of_the_log() -> Iterator[None]:
    """A command that runs in a test sets the levels of the log; the next test has the levels from before it."""
    loggers = [logging.getLogger(name) for name in ("a2a", "a2a_canvas", "uvicorn.access")]
    levels = [each.level for each in loggers]
    yield
    for each, level in zip(loggers, levels, strict=True):
        each.setLevel(level)


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(settings: Any) -> Iterator[None]:
    """End a test whose time is up until it has ended.

    The exception reaches whichever task of asyncio runs just then: a test that waits for that task would not end.
    """
    set_once = yield
    signal.setitimer(signal.ITIMER_REAL, settings.timeout, LATE_AGAIN)
    return set_once


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what tests have recorded as their `summary`, also those of other processes."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, said in report.user_properties:
            if name == "summary":
                terminalreporter.write_line(said)


@pytest.fixture(autouse=True)
def called_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages name the program as it was called, which in a test would be pytest."""
    monkeypatch.setattr("sys.argv", ["a2a-canvas"])
