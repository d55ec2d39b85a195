"""`a2a-canvas new`: the folder that it makes passes its tests and is served; and `a2a_canvas.testing`."""

from __future__ import annotations

import os
import re
import runpy
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from a2a_canvas.server.commands import new_agent
from a2a_canvas.server.commands.cli import main
from a2a_canvas.testing import agent
from tests.server.app_server import asking, said, sent, serving

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["new", "my-agent"]) == 0
    return Path("my-agent")


def passed(where: str | Path, what: str | None) -> str:
    """What pytest prints of the tests of an agent, which pass."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("A2A_CANVAS", "PYTEST"))}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", *filter(None, [what])],
        cwd=where,
        env=alone,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


@pytest.mark.process
@pytest.mark.parametrize(("where", "what"), [(".", "my-agent"), ("my-agent", "."), ("my-agent", None)])
def test_it_passes_its_own_tests_whatever_is_around_it(made: Path, where: str, what: str | None) -> None:
    Path("pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '--strict-config'\nunknown_option = 1\n")
    assert "2 passed" in passed(where, what)


@pytest.fixture
def own_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["new", "reef", "--loop"]) == 0
    return Path("reef")


@pytest.mark.process
def test_one_with_a_loop_passes_its_own_tests(own_loop: Path) -> None:
    assert "3 passed" in passed(".", str(own_loop))


def test_one_with_a_loop_is_answered_by_its_agent_py(own_loop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = runpy.run_path(str(own_loop / "tests/test_agent.py"))
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 3
    for test in tests:
        test()
    capsys.readouterr()
    assert main(["serve", "reef", "--model", "rehearsal", "--check"]) == 0
    assert capsys.readouterr().out == "reef can be served with its loop reef/agent.py.\n"


def test_one_with_a_loop_has_no_files_for_a_model(own_loop: Path) -> None:
    assert {path.name for path in own_loop.iterdir()} == {
        *("agent.py", "agent.toml", "agent_card.json", "README.md", "requirements.txt", "Dockerfile"),
        *(".dockerignore", ".gitignore", "pytest.ini", "tests"),
    }
    assert not [
        path
        for path in own_loop.rglob("*")
        if path.is_file() and re.search(r"\{(name|program|python|folder|image)\}", path.read_text())
    ]


async def test_it_is_served_and_answers_the_client_of_the_sdk(made: Path) -> None:
    async with serving(made / "tests/script.yaml", agent=made, grpc=False) as served:
        task = await sent(served, ("JSONRPC", "1.0"), asking("write a poem"))
        assert said(task.status) == "Here is the poem. It has 10 words."
        assert served.model.requests[0].system.startswith("You write texts of the length that you are asked for.")
        card = (await served.http.get("/.well-known/agent-card.json")).json()
        assert card["name"] == "my-agent"
        assert card["skills"][0]["id"] == "count_words"


def test_a_folder_that_cannot_be_made_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").touch()
    assert main(["new", str(tmp_path / "notes/agent")]) == 2
    said = f"The folder {tmp_path}/notes/agent cannot be created: Not a directory. Choose another place."
    assert capsys.readouterr().err == f"a2a-canvas: {said}\n"


def test_an_agent_is_not_made_in_a_read_only_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert main(["new", str(tmp_path / "agent")]) == 2
    said = f"The folder {tmp_path}/agent cannot be created: Permission denied. Choose another place."
    assert capsys.readouterr().err == f"a2a-canvas: {said}\n"


def test_the_next_two_commands_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "an agent"
    assert main(["new", str(folder)]) == 0
    _, serve, about, test = capsys.readouterr().out.splitlines()
    assert serve.endswith(f" serve '{folder}' --reload")
    assert about == "Its tests need no model:"
    assert test.endswith(f" -m pytest '{folder}'")  # a comment behind it would be arguments in zsh


def test_without_pytest_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_agent, "find_spec", lambda name: None)
    said = list(new_agent.new_agent(tmp_path / "reef", ".venv/bin/a2a-canvas"))
    assert said[-1] == "The tests need pytest: .venv/bin/python -m pip install pytest"


def test_an_empty_folder_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "."]) == 0
    assert (tmp_path / ".gitignore").is_file()


@pytest.mark.parametrize("there", ["file", "folder"])
def test_what_is_there_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], there: str
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = Path("reef") if there == "file" else Path("reef/notes.md")
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("mine")
    assert main(["new", "reef"]) == 2
    assert capsys.readouterr().err == (
        "a2a-canvas: reef already exists and is not an empty folder. Choose another name.\n"
    )
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / kept]


def test_every_file_is_one_that_the_user_may_change(made: Path) -> None:
    assert all(path.stat().st_mode & stat.S_IWUSR for path in made.rglob("*"))
    assert not list(made.rglob("*.template"))
    assert not [path for path in made.rglob("*") if path.is_file() and re.search(r"\{[a-z]+\}", path.read_text())]


def test_its_readme_has_the_commands_as_the_user_types_them(tmp_path: Path) -> None:
    list(new_agent.new_agent(tmp_path / "reef", ".venv/bin/a2a-canvas"))
    text = (tmp_path / "reef/README.md").read_text()
    assert f"    .venv/bin/a2a-canvas serve {tmp_path}/reef --reload" in text
    assert f"    .venv/bin/python -m pytest {tmp_path}/reef" in text


# ---------------------------------------------------------------------------- the helper of its tests

ASKING = """
rules:
  - match: {text: "ask"}
    rounds:
      - tools: [{name: ask_user, input: {question: "Which port?"}}]
      - text: "Thank you."
  - match: {text: "fail"}
    rounds: [{error: {status: 400}}]
"""


def test_a_test_talks_with_the_agent_and_answers_it(made: Path, tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(ASKING)
    with agent(made, tmp_path / "script.yaml") as it:
        asks = it.send("ask me")
        assert (asks.state, asks.text, asks.artifacts) == ("input-required", "Which port?", {})
        thanks = it.send("Brest")
        assert (thanks.state, thanks.text) == ("completed", "Thank you.")
        assert it.send("fail").state == "failed"


def test_an_mcp_server_that_is_not_there_fails_the_test_with_the_reason(made: Path) -> None:
    (made / "mcp.json").write_text('{"mcpServers": {"tides": {"command": "no-such-program"}}}')
    told = "The MCP server tides is not there: there is no program no-such-program"
    with pytest.raises(RuntimeError, match=told), agent(made, made / "tests/script.yaml"):
        pass
