"""The command line of the server: what it refuses, in one line and with which exit code, and what it starts."""

import asyncio
import gc
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from a2a_canvas.server.commands.cli import COMMANDS, cli, main, program
from a2a_canvas.server.settings.settings import PREFIX
from tests.command_line import commands, parsed
from tests.free_port import free_port
from tests.server.app_server import serving
from tests.server.canvas_client import SCRIPT as CANVAS_SCRIPT
from tests.server.canvas_client import made

ROOT = Path(__file__).parents[3]
SCRIPT = Path(__file__).parents[1] / "scripts" / "app.yaml"
VERSION = f"a2a-canvas {version('a2a-canvas')}"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings and no keys but those of the test."""
    for name in tuple(os.environ):
        if name.startswith((PREFIX, "ANTHROPIC_", "OPENAI_", "OLLAMA_")):
            monkeypatch.delenv(name)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and the one line on stderr of a command that does nothing else."""
    code = main(arguments)
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
        (["servee"], "a2a-canvas: No such command 'servee'. Did you mean 'serve'? See a2a-canvas --help."),
        (
            ["serve", "--prot", "9"],
            "a2a-canvas: No such option '--prot'. (Did you mean one of: '--host', '--port'?) S",
        ),
        (
            ["tasks", "--limit", "0"],
            "a2a-canvas: Invalid value for '--limit': must be a whole number from 1 to 1000: '0'.",
        ),
        (["serve", "--workers", "0"], "a2a-canvas: --workers=0: must be 1 to 256"),
        (
            ["serve", "--workers", "2", "--database", "sqlite:///a.db"],
            "a2a-canvas: workers is 2, and only one process can use the database sqlite:///a.db: set database to "
            "postgresql://USER:PASSWORD@HOST/DATABASE, or workers to 1",
        ),
        (
            ["serve", "--workers", "2", "--database", "memory"],
            "a2a-canvas: workers is 2, and only one process can use the database memory: set database to postgresql://",
        ),
        (
            ["serve", "agent", "--workers", "2", "--reload"],
            "a2a-canvas: --reload restarts one process, and cannot have --workers: leave out one of the two.",
        ),
        (
            ["serve", "--workers", "2", "--database", "postgresql://nobody@127.0.0.1:1/none"],
            "a2a-canvas: The database postgresql://nobody@127.0.0.1:1/none cannot be used: ",
        ),
        (["demo", "--speed", "x"], "a2a-canvas: Invalid value for '--speed': must be a number from 0.1 to 100: 'x'."),
        (["serve", "--port", "x"], "a2a-canvas: --port=x: must be a whole number"),
        (["serve", "--grpc-port", "8000"], "a2a-canvas: port and grpc_port are both 8000"),
        (["serve", "--model", "claude-x"], "a2a-canvas: The model claude-x has no provider. "),
        (["serve", "--model", "script:/none.yaml"], "a2a-canvas: /none.yaml: cannot be read"),
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


def test_a_terminal_shows_it_broken_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, line = refused(capsys, "serve", "--model", "nonsense")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["serve", "--model", "nonsense"]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert " ".join(shown) == line
    assert max(map(len, shown)) <= 40


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
        f"a2a-canvas: Cannot listen on 127.0.0.1:{taken}: Address already in use. "
        f"Choose another host or port, such as {which} {taken + 1}."
    )


def test_a_file_that_cannot_be_written_is_named_with_the_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "notes.md")

    monkeypatch.setattr(cli, "main", refuse)
    assert refused(capsys, "models") == (1, "a2a-canvas: notes.md: Permission denied.")


def test_a_host_that_is_none_is_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = refused(capsys, "serve", "--model", f"script:{SCRIPT}", "--host", "a..b")
    assert (code, said) == (
        1,
        "a2a-canvas: Cannot listen on a..b:8000: no such host. Choose another host or port.",
    )


@pytest.mark.process
def test_the_version_is_that_of_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "a2a_canvas", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (VERSION + "\n", "")


def test_without_a_command_the_help_lists_all_of_them_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    places = [
        said.index(f"\n{words}")
        for group in COMMANDS
        for words in (f"{group}:\n", *map("  {} ".format, COMMANDS[group]))
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_the_help_of_every_command_has_an_example_that_can_be_typed(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main([*name.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert not re.search("x[<>]|[<>]=?x", said)
    examples = said.partition("Examples:\n")[2].splitlines()
    assert examples
    for example in examples:
        program, *words = shlex.split(re.split("[<|>]", example)[0])
        assert program == "a2a-canvas"
        assert parsed(*words)[0] == name


def test_the_completion_for_a_shell_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        assert "_A2A_CANVAS_COMPLETE" in capsys.readouterr().out


def test_what_serve_imports_is_never_searched_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[tuple[int, bool]] = []

    def served(*_: object) -> int:
        frozen.append((gc.get_freeze_count(), gc.isenabled()))
        return 0

    monkeypatch.setattr("a2a_canvas.server.commands.serve.serve", served)
    gc.unfreeze()
    assert main(["serve"]) == 0
    [(objects, enabled)] = frozen
    assert objects > 10_000
    assert enabled


def test_the_help_of_serve_tells_which_numbers_an_option_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "bytes of one request; at least 1024 (default: 10485760)" in said
    assert "port for gRPC; off by default; 1 to 65535" in said


@pytest.mark.parametrize("on_path", [True, False])
def test_a_program_is_called_as_its_user_called_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: bool
) -> None:
    installed = tmp_path / "a2a-canvas"
    installed.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path if on_path else tmp_path / "elsewhere"))
    assert program(str(installed)) == ("a2a-canvas" if on_path else str(installed))


@pytest.mark.parametrize(
    ("called", "shown"),
    [
        (".venv/bin/a2a-canvas", ".venv/bin/a2a-canvas"),
        ("my tools/a2a-canvas", "'my tools/a2a-canvas'"),
        (f"{ROOT}/a2a_canvas/__main__.py", "python -m a2a_canvas"),
    ],
)
def test_a_program_is_called_by_what_can_be_typed_again(called: str, shown: str) -> None:
    assert program(called) == shown


@pytest.mark.parametrize("command", [["send", "hello"], ["show", "doc", "--context", "c"]])
def test_a_standard_output_that_is_closed_is_no_reason_to_fail(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main([*command, "--url", "ftp://h"]) == 1
    assert capsys.readouterr().err == "a2a-canvas: ftp://h is not an http:// or https:// address\n"


@pytest.mark.process
async def test_an_artifact_is_written_edited_compared_and_undone_from_the_command_line() -> None:
    """As a user types it; the model is a script."""
    async with serving(CANVAS_SCRIPT, grpc=False, database="memory") as served:
        doc = await made(served, "def f():\n    return 1\n", "f.py", "text/x-python")
        there = ["--url", served.url, "--context", doc.context]

        async def typed(*arguments: str) -> tuple[int | None, str, str]:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "a2a_canvas", *arguments, *there),
                cwd=ROOT,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await process.communicate()
            return process.returncode, out.decode(), err.decode()

        edited = "Editing f.py…\nEdited f.py at line 1: version 2 is saved.\n"
        assert await typed("edit", "doc", "--match", "def f():", "make it async") == (0, "async def f():\n", edited)
        code, out, err = await typed("diff", "doc")
        assert (code, err) == (0, "")
        assert out.splitlines()[2:] == ["@@ -1,2 +1,2 @@", "-def f():", "+async def f():", "     return 1"]
        assert await typed("undo", "doc") == (0, "Undone: f.py is at version 1 again.\n", "")
        nothing = "a2a-canvas: There is nothing to undo: version 1 of artifact 'doc' is the first.\n"
        assert await typed("undo", "doc") == (1, "", nothing)
        code, _, err = await typed("edit", "doc", "--match", "f", "make it async")
        assert code == 2
        assert err.startswith('a2a-canvas: "f" occurs 2 times in version 1, on line 1.')


@pytest.mark.parametrize("command", [(), ("serve",), ("send",), ("key", "new")])
def test_h_is_help(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main((*command, "-h")) == 0
    assert capsys.readouterr().out.startswith("Usage: a2a-canvas")


def test_an_option_without_its_value_names_the_help_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("serve", "--port")) == 2
    assert capsys.readouterr().err.endswith("See a2a-canvas serve --help.\n")
