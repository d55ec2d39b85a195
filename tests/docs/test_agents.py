"""docs/agents.md: its folder is served as it is described."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from a2a_canvas import File
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.protocols.a2a_v1.card.card import Addresses, load_card
from a2a_canvas.server.settings.agent_folder import AGENT_FILE, USUAL_FILES
from a2a_canvas.server.settings.settings import load
from a2a_canvas.testing import agent
from a2a_canvas.tools.functions.python_tool import PythonTool
from a2a_canvas.tools.registry import TOOLS
from tests.docs.pages import blocks, page, rows, section
from tests.fakes import FakeLLM, answer, text
from tests.fakes import tool as call
from tests.server.agent.turn.turn_harness import results_of
from tests.server.agent.turn.turn_life import Life
from tests.server.agent.turn.turn_scripts import START

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
    [shown] = re.findall(r"^      (a2a-canvas: .*)$", section(PAGE, "agent.toml"), re.MULTILINE)
    assert capsys.readouterr().err.strip() == shown


def test_the_test_passes(folder: Path) -> None:
    rmtree(folder)
    assert main(["new", "my-agent"]) == 0
    [script], [code, _] = blocks(PAGE, "yaml"), [block for block in blocks(PAGE, "python") if "testing" in block]
    (folder / "tests/script.yaml").write_text(script)
    names: dict[str, Any] = {}
    exec(code, names)
    names["test_it_counts_the_words_of_what_it_has_written"]()


def test_the_test_of_a_tool_passes_where_another_package_is_called_tools(folder: Path) -> None:
    source = blocks(section(PAGE, "Tools"), "python")[0]
    [code] = [block for block in blocks(PAGE, "python") if "runpy" in block]
    (folder / "tools.py").write_text(source)
    names: dict[str, Any] = {"__file__": str(folder / "tests/test_tools.py")}
    exec(code, names)
    names["test_it_knows_the_tides_of_brest"]()


def test_the_card_is_enough(tmp_path: Path) -> None:
    [card] = blocks(PAGE, "json")
    (tmp_path / "agent_card.json").write_text(card)
    card = load_card(tmp_path / "agent_card.json", Addresses("http://localhost"), advertise_0_3=True)
    assert card.content.name == "Reef"


def test_the_loop_answers_and_its_mistake_is_reported_as_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = section(PAGE, "A loop of its own")
    [code] = blocks(told, "python")
    (folder / "tools.py").unlink()
    (folder / "mcp.json").unlink()
    (folder / "agent.py").write_text(code)
    with agent(folder) as it:
        answer = it.send("Tides")
    assert (answer.text, answer.artifacts) == ("Written.", {"note": "# Tides\n"})
    (folder / "agent.py").write_text(code.replace("async def", "def").replace("await ", ""))
    assert main(["serve", "my-agent", "--model", "rehearsal"]) == 2
    [shown] = re.findall(r"^      (a2a-canvas: .*)$", told, re.MULTILINE)
    assert capsys.readouterr().err.strip() == shown


async def test_the_tools_do_what_the_page_says(tmp_path: Path) -> None:
    source, files = blocks(section(PAGE, "Tools"), "python")
    module: dict[str, Any] = {}
    exec(compile(source, "tools.py", "exec"), module)
    tools = [each.tool for each in module.values() if isinstance(each, PythonTool)]
    assert [tool.name for tool in tools] == ["water", "book"]
    llm = FakeLLM(
        [
            answer(call("T1", "water", {"port": "Brest"}), call("T2", "water", {"port": "Rome"}, at=1)),
            answer(call("T3", "book", {"port": "Brest"})),
            answer(text("Booked.")),
        ]
    )
    life = Life(llm, START, tools=(*TOOLS, *tools))
    await life.run()
    told = [result.content for message in llm.requests[1].messages for result in results_of(message)]
    assert told == ["Brest: 5.9 m, 1.2 m", "There is no port Rome. There are Brest, Cuxhaven."]
    for question, words in (("May I run book", "yes"), ("How many nights in Brest?", "2")):
        assert life.record.state is State.INPUT_REQUIRED
        assert life.record.message.text.startswith(question)
        life.answer(words)
        await life.run()
    assert life.texts() == {"log": "Brest, 2 nights: number 42\n"}
    assert "Sending the receipt…" in life.told.tool_labels
    assert life.record.message.text == "Booked."
    exec(compile(files, "files.py", "exec"), module)
    assert module["tide_table"]("Brest") == File("tides.csv", "text/csv", b"port,high\nBrest,5.9\n")
    assert [type(each) for each in module["chart"]("Brest")] == [str, File]


def test_the_test_of_a_loop_passes() -> None:
    [code] = [block for block in blocks(PAGE, "python") if "agent(loop=" in block]
    names: dict[str, Any] = {}
    exec(code, names)
    names["test_a_passage_is_changed_and_that_is_undone"]()
