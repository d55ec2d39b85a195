"""The README's sessions and its program run, and it stays short."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from a2a_canvas.server.app import create_app
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.testing import TestedAgent, agent
from tests.docs.examples import assert_goes_as_shown, printed
from tests.docs.pages import README, blocks, rows, section


def test_the_sessions_go_as_they_are_shown_one_after_the_other(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    sessions = blocks(README, "console")
    assert len(sessions) == 2
    for session in sessions:
        assert_goes_as_shown(session, address, capsys)


@pytest.mark.process
def test_the_program_prints_the_artifact_as_it_grows(address: str, tmp_path: Path) -> None:
    [code] = blocks(README, "python")
    assert ".venv/bin/python outline.py" in README[: README.index(code)]
    said = printed(code, address, tmp_path)
    assert said.startswith("# Tide pools\n\n")
    assert said.count("## ") == 4


def test_the_comparison_has_eight_rows() -> None:
    assert len(rows(README, "Compared with")) == 8


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 180


def test_the_quick_start_ends_with_what_to_read_next() -> None:
    assert "[the first five minutes](docs/first-five-minutes.md)" in section(README, "Quick start").rpartition("```")[2]


# ------------------------------------------------------------------------- make it your agent

SCRIPT = """
rules:
  - match: {text: "high water in (?P<port>[A-Z][a-z]+)"}
    rounds:
      - tools:
          - {name: high_water, input: {port: "{port}"}}
          - {name: time__get_current_time, input: {timezone: UTC}}
      - text: "It is so."
"""


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The folder in which a reader has followed the page, up to the command that serves."""
    [commands] = [block for block in blocks(README, "sh") if "a2a-canvas new" in block]
    prepare, serve = commands.rsplit("\n", 2)[0], commands.splitlines()[-1]
    assert serve.startswith(".venv/bin/a2a-canvas serve reef --reload")
    here = tmp_path / ".venv/bin"
    here.mkdir(parents=True)
    (here / "a2a-canvas").write_text(f'#!/bin/sh\nexec {sys.executable} -m a2a_canvas "$@"\n')
    (here / "pip").write_text("#!/bin/sh\n")  # it is here already: a test reaches nothing but this machine
    for program in here.iterdir():
        program.chmod(0o755)
    subprocess.run(["bash", "-e", "-c", prepare], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "reef"


@pytest.mark.process
def test_the_agent_of_the_page_has_its_tool_its_mcp_server_and_its_instructions(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "script.yaml").write_text(SCRIPT)
    [question] = re.findall(r'`send "(what time .*?)"`', README)
    with agent(made, tmp_path / "script.yaml") as reef:
        answer = reef.send(question)
    assert answer.state == "completed", answer.text
    tide, time = answer.tool_results
    assert tide == "In Brest at 05:12 and at 17:38."
    assert '"timezone": "UTC"' in time
    assert Settings(agent=made).instructions.read_text().startswith("You are Reef.")
    shape = r"^\.venv/bin/a2a-canvas (serve reef .*)$"
    [command] = re.findall(shape, README, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(command), "--check"]) == 0


@pytest.mark.process
def test_without_a_key_its_tools_are_called_by_their_names(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    settings = Settings(agent=made, database="memory", public_url="http://127.0.0.1:8000")
    app = create_app(settings, Rehearsal(delay=0))
    calls = re.findall(r"`(?:\.venv/bin/a2a-canvas )?send (call .*?)`", README)
    assert README.index(calls[0]) < README.index('send "what time')
    with TestClient(app, base_url=settings.url) as client:
        reef = TestedAgent(client, {}, {}, "C1")
        tide, time = (reef.send(words).text for words in calls)
        card = client.get("/.well-known/agent-card.json").json()
    assert tide.startswith("In Brest at 05:12 and at 17:38.")
    assert '"timezone": "UTC"' in time
    assert (card["name"], card["description"].partition(".")[0]) == ("Reef", "Knows tides, and writes about the sea")


@pytest.mark.process
def test_the_tests_of_the_agent_of_the_page_still_pass(made: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", "reef"],
        cwd=made.parent,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout
