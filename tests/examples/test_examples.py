"""Each folder of examples/ is an agent that can be read in a minute, and is served without a provider."""

from __future__ import annotations

import runpy
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from a2a_canvas.server.commands.cli import main
from a2a_canvas.testing import agent

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/agent.py"))
PACKAGES = {
    "google_adk": "google-adk",
    "langgraph": "langgraph",
    "openai_agents": "openai-agents",
    "pydantic_ai": "pydantic-ai-slim",
}
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY")

pytestmark = pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


def test_it_writes_a_document_which_is_edited_and_the_edit_undone(folder: Path) -> None:
    with agent(folder) as it:
        first = it.send("Write about tides.")
        assert (first.state, first.text) == ("completed", "The note is ready.")
        assert first.statuses[:2] == ("I look it up.", "Running high_water…")
        assert set(first.statuses[2:]) <= {"Writing tides.md…"}  # there is a label a second
        [text] = first.artifacts.values()
        assert it.edit("tides", "upper case", "Low water").artifacts == {
            "tides": text.replace("Low water", "LOW WATER")
        }
        assert it.undo("tides").artifacts == {"tides": text}
        assert it.send("Write it again.").text == "The note is ready."


def test_its_own_test_passes(folder: Path) -> None:
    tests = runpy.run_path(str(folder / "test_agent.py"))
    for name in tests.keys() & {"test_it_writes_a_note_whose_passages_can_be_edited"}:
        with pytest.MonkeyPatch.context() as patch:
            tests[name](*([patch] if folder.name in PACKAGES else []))


def test_check_names_its_framework(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(folder), "--check"]) == 0
    package = PACKAGES.get(folder.name)
    assert (f"({package} {version(package)})" if package else "agent.py") in capsys.readouterr().out


def test_it_is_short(folder: Path) -> None:
    assert len((folder / "agent.py").read_text().splitlines()) <= 70
