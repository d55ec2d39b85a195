"""docs/scripts.md: scripts load, and every tool has its row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from a2a_canvas.server.agent.models.script import ScriptedModel
from a2a_canvas.server.agent.models.script.text_transforms import CHANGES
from a2a_canvas.tools.registry import SCRIPT_TOOLS
from tests.docs.pages import blocks, page, rows

SCRIPTS = [*blocks(page("scripts"), "yaml"), *blocks(page("turn"), "yaml"), *blocks(page("canvas"), "yaml")]


def test_there_are_four_scripts() -> None:
    assert len(SCRIPTS) == 4


@pytest.mark.parametrize("script", SCRIPTS, ids=["scripts", "documents", "turn", "edit"])
def test_every_script_loads(script: str, tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(script)
    ScriptedModel(tmp_path / "script.yaml")


def test_every_tool_has_a_row_with_its_input() -> None:
    told = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[1])) for row in rows(page("scripts"), "Tools")}
    assert told.keys() == {tool.name for tool in SCRIPT_TOOLS}
    for tool in SCRIPT_TOOLS:
        schema = tool.spec.input_schema if hasattr(tool, "spec") else tool.input_schema
        assert set(schema.get("properties", {})) <= told[tool.name]


def test_every_change_has_a_row() -> None:
    assert sorted(name for row in rows(page("scripts"), "Changes") for name in row[0].strip("`").split("`, `")) == (
        sorted(CHANGES)
    )
