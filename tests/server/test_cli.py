"""The command line of the server: what it refuses, in one line and with which exit code, and what it starts."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest

from server.cli import main
from server.settings import PREFIX
from tests.server.serving import free_port

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "scripts" / "app.yaml"
VERSION = f"a2a-canvas {version('a2a-canvas')}"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No settings and no keys but those of the test; `serve` turns the SDK's log down."""
    for name in tuple(os.environ):
        if name.startswith((PREFIX, "ANTHROPIC_")):
            monkeypatch.delenv(name)
    level = logging.getLogger("a2a").level
    yield
    logging.getLogger("a2a").setLevel(level)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and the one line on stderr of a command that does nothing else."""
    try:
        code = main(arguments)
    except SystemExit as exit:
        code = int(exit.code or 0)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith("\n")
    assert said.err.count("\n") == 1
    return code, said.err[:-1]


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "a2a-canvas: the following arguments are required: COMMAND. See a2a-canvas --help."),
        (["sevre"], "a2a-canvas: argument COMMAND: invalid choice: 'sevre' (choose from 'serve', 'send')."),
        (["serve", "--prot", "9"], "a2a-canvas: unrecognized arguments: --prot 9. See a2a-canvas --help."),
        (["serve", "--port", "x"], "a2a-canvas: --port=x: Input should be a valid integer"),
        (["serve", "--grpc-port", "8000"], "a2a-canvas: port and grpc_port are both 8000"),
        (["serve", "--model", "claude-x"], "a2a-canvas: --model claude-x needs ANTHROPIC_API_KEY"),
        (["serve", "--model", "script:/none.yaml"], "a2a-canvas: /none.yaml:1: cannot be read"),
        (["serve", "--agent-card", "/none.json"], "a2a-canvas: The agent card /none.json cannot be read"),
        (["serve", "--agent-card", str(SCRIPT)], f"a2a-canvas: The agent card {SCRIPT} is not valid: "),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    code, said = refused(capsys, *arguments)
    assert code == 2
    assert said.startswith(line)


def test_an_unknown_environment_variable_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A2A_CANVAS_PROT", "9000")
    assert refused(capsys, "serve") == (
        2,
        "a2a-canvas: Unknown setting A2A_CANVAS_PROT. Did you mean A2A_CANVAS_PORT?",
    )


@pytest.mark.parametrize(
    ("script", "line", "reason"),
    [
        ("rules:\n  - match: {text: x}\n    rounds: [{txt: hello}]\n", 3, "unknown key `txt`"),
        ("rules:\n  - match: {text: '('}\n    rounds: [{text: x}]\n", 2, "not a regular expression"),
        ("rules: [\n", 2, "not YAML"),
        ("", 1, ""),
    ],
)
def test_a_broken_script_is_refused_with_file_line_and_reason(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, script: str, line: int, reason: str
) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(script)
    code, said = refused(capsys, "serve", "--model", f"script:{path}")
    assert code == 2
    assert said.startswith(f"a2a-canvas: {path}:{line}: ")
    assert reason in said


@pytest.mark.parametrize("which", ["--port", "--grpc-port"])
def test_a_port_that_is_taken_is_one_line_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], taken: int, which: str
) -> None:
    other = [] if which == "--port" else ["--port", str(free_port())]
    code, said = refused(capsys, "serve", "--model", f"script:{SCRIPT}", which, str(taken), *other)
    assert code == 1
    assert said == (
        f"a2a-canvas: Cannot listen on 127.0.0.1:{taken}: Address already in use. Choose another host or port."
    )


def test_a_host_that_is_none_is_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = refused(capsys, "serve", "--model", f"script:{SCRIPT}", "--host", "a..b")
    assert (code, said) == (
        1,
        "a2a-canvas: Cannot listen on a..b:8000: no such host. Choose another host or port.",
    )


def test_the_version_is_that_of_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "server", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (VERSION + "\n", "")


@pytest.mark.parametrize("command", ["serve", "send"])
def test_help_is_there_for_every_command(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert command in capsys.readouterr().out


async def test_serve_serves_until_it_is_told_to_stop() -> None:
    port, grpc_port = free_port(), free_port()
    arguments = ["--port", str(port), "--grpc-port", str(grpc_port), "--model", f"script:{SCRIPT}"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "server", "serve", *arguments),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert await process.stdout.readline() == f"{VERSION} on http://127.0.0.1:{port} with script:app.yaml\n".encode()
    while b"Uvicorn running" not in await process.stderr.readline():
        pass
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        card = (await client.get("/.well-known/agent-card.json")).json()
    assert f"127.0.0.1:{grpc_port}" in {interface["url"] for interface in card["supportedInterfaces"]}
    process.send_signal(signal.SIGTERM)
    _, errors = await process.communicate()
    # uvicorn stops gracefully, then hands the signal on.
    assert process.returncode in (0, -signal.SIGTERM)
    assert b"Traceback" not in errors
