"""docs/agents.md: its folder is served as it is described."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from a2a_canvas.server.agent_folder import AGENT_FILE, USUAL_FILES
from a2a_canvas.server.cli import main
from a2a_canvas.server.protocols.a2a_v1.card import Addresses, load_card
from a2a_canvas.server.settings import load
from tests.docs.pages import blocks, page, rows

PAGE = page("agents")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the page, with what its `agent.toml` names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the folder of its tools is added
    monkeypatch.delenv("A2A_CANVAS_DATABASE")
    folder = Path("my-agent")
    folder.mkdir()
    for name in ("who_you_are.md", "tools.py", "more_tools.py", "mcp.json"):
        (folder / name).write_text("")
    return folder


def test_the_table_has_every_file() -> None:
    assert {row[0].strip("`") for row in rows(PAGE, "The folder")} == {AGENT_FILE, *USUAL_FILES.values()}


def test_the_agent_toml_is_taken_as_it_is_described(folder: Path) -> None:
    [toml] = blocks(PAGE, "toml")
    (folder / AGENT_FILE).write_text(toml)
    settings = load({"agent": "my-agent"})
    assert (settings.port, settings.max_turns, settings.instructions) == (9000, 20, folder / "who_you_are.md")
    assert settings.tools == (folder / "tools.py", folder / "more_tools.py")
    assert settings.database == "sqlite:///my-agent/data/agent.db"


def test_a_mistake_is_told_as_the_page_shows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / AGENT_FILE).write_text('port = 9000\nmodle = "x"\n')
    assert main(["serve", "my-agent"]) == 2
    [shown] = re.findall(r"^      (a2a-canvas: .*)$", PAGE, re.MULTILINE)
    assert capsys.readouterr().err.strip() == shown


def test_the_test_passes(folder: Path) -> None:
    rmtree(folder)
    assert main(["new", "my-agent"]) == 0
    [script], [code] = blocks(PAGE, "yaml"), [block for block in blocks(PAGE, "python") if "testing" in block]
    (folder / "tests/script.yaml").write_text(script)
    names: dict[str, Any] = {}
    exec(code, names)
    names["test_it_counts_the_words_of_what_it_has_written"]()


def test_the_card_is_enough(tmp_path: Path) -> None:
    [card] = blocks(PAGE, "json")
    (tmp_path / "agent_card.json").write_text(card)
    assert load_card(tmp_path / "agent_card.json", Addresses("http://localhost"), advertise_0_3=True).name == "Reef"
