"""A room has one subject: it is small enough for one head, and says what it owns."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from a2a_canvas.server.settings.settings import Settings
from tests.table_files import defining

ROOT = Path(__file__).parent.parent
MAX_MODULES = 16
"""In one room."""
MAX_ON_THE_GROUND = 5
"""Modules of server/ itself, besides `listening.py`."""
MAX_SETTINGS = 61
"""A commit that adds one raises the number and says why. A limit is a constant until a user asks."""
MAX_IMPORTS, MAX_LINES = 25, 40
"""Imports of ours in `app.py`, and lines of a function there: it puts components together, and decides nothing."""
LINES = {
    "store": 8_200,
    "tools": 4_000,
    "server/accounts": 2_250,
    "server/agent": 14_500,
    "server/client": 5_150,
    "server/commands": 3_750,
    "server/protocols": 16_000,
    "server/push": 1_470,
    "server/settings": 1_400,
    "server/tasks": 12_100,
    "server/tool_sources": 5_600,
}
"""Lines of Python in each large room. Growth of more than `PLAY` raises its number, with a sentence why."""
PLAY = 0.05
ROOMS = [path.parent for top in ("server", "store", "tools") for path in sorted((ROOT / top).rglob("__init__.py"))]
IDS = [str(room.relative_to(ROOT)) for room in ROOMS]


def modules(room: Path) -> list[Path]:
    return [path for path in sorted(room.glob("*.py")) if path.stem != "__init__"]


def docstring(room: Path) -> str:
    return ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""


def tables(room: Path) -> set[str]:
    """The tables that modules of the room define."""
    return {name for name, files in defining().items() if {ROOT / file for file in files} & {*modules(room)}}


@pytest.mark.parametrize("room", ROOMS, ids=IDS)
def test_a_room_is_small_and_says_what_it_is_and_which_tables_it_owns(room: Path) -> None:
    assert len(modules(room)) <= MAX_MODULES
    assert docstring(room)
    owned = re.search(r"Owns the tables (.*?)\.$", docstring(room), re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", owned[1]) if owned else ()) == tables(room)


def test_little_lies_in_the_server_itself() -> None:
    assert len([path for path in modules(ROOT / "server") if path.stem != "listening"]) <= MAX_ON_THE_GROUND


def test_the_app_only_puts_parts_together() -> None:
    tree = ast.parse((ROOT / "server/app.py").read_text())
    ours = [each for each in tree.body if isinstance(each, ast.ImportFrom) and "a2a_canvas" in (each.module or "")]
    assert len(ours) <= MAX_IMPORTS
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    assert all((each.end_lineno or 0) - each.lineno < MAX_LINES for each in functions)


def test_settings_are_counted() -> None:
    assert len(Settings.model_fields) <= MAX_SETTINGS


@pytest.mark.parametrize(("room", "lines"), LINES.items())
def test_a_room_keeps_to_its_lines(room: str, lines: int) -> None:
    count = sum(path.read_text().count("\n") for path in (ROOT / room).rglob("*.py"))
    assert (1 - PLAY) * lines <= count <= (1 + PLAY) * lines


def test_protocols_reach_what_is_in_a_context_through_contexts_alone() -> None:
    """So none of them can forget to ask what the caller may do."""
    for path in sorted((ROOT / "server/protocols").rglob("*.py")):
        nodes = [*ast.walk(ast.parse(path.read_text()))]
        imported = {name.name for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names}
        used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        assert imported.isdisjoint({"Access", "Journal", "ArtifactStore", "OwnedContexts"}), path
        assert used.isdisjoint({"access", "journal", "store", "owned"}), path
