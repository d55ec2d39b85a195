"""The tools of a Python file, and one line for each thing that is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_canvas.server.app import create_app
from a2a_canvas.server.settings.settings import Settings, SettingsError
from a2a_canvas.server.tool_sources.python_file import ToolFileError, load_python_file
from tests.server.app_server import asking, sent, serving

COUNT = '''
from a2a_canvas import tool

@tool
def count(text: str) -> str:
    """Counts the words of a text."""
    return str(len(text.split()))
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent's folder as a user names it: from the folder above."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "none"))  # restores the path afterwards
    Path("reef").mkdir()
    return Path("reef")


def written(folder: Path, content: str | bytes, name: str = "tools.py") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_the_tools_are_the_functions_with_tool(folder: Path) -> None:
    source = load_python_file(written(folder, COUNT + "\ndef helper(): ...\n"))
    assert [(tool.name, tool.description) for tool in source.tools()] == [("count", "Counts the words of a text.")]
    assert source.name == "reef/tools.py"


def test_a_file_may_import_those_beside_it(folder: Path) -> None:
    written(folder, COUNT, "counting_words.py")
    assert load_python_file(written(folder, "from counting_words import count")).tools()[0].name == "count"


def test_its_name_may_be_that_of_a_module(folder: Path) -> None:
    import json

    assert load_python_file(written(folder, COUNT, "json.py")).tools()
    assert json.loads("1") == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("x = 1", "reef/tools.py has no tools. Write @tool above the functions that the agent may call."),
        ("\ndef f(:\n    pass", "reef/tools.py, line 2: invalid syntax. Correct it."),
        (
            "\n\nimport no_such_module.deep",
            "reef/tools.py, line 3: No module named 'no_such_module'. Install it where ",
        ),
        ("from a2a_canvas import nothing", "reef/tools.py, line 1: ImportError: cannot import name 'nothing'"),
        ("\nnope()", "reef/tools.py, line 2: NameError: name 'nope' is not defined."),
        ("import sys\nsys.exit(3)", "reef/tools.py, line 2: SystemExit: 3."),
        ("raise ValueError('one\\ntwo')", "reef/tools.py, line 1: ValueError: one two."),
        ("from broken_helper import x", "reef/broken_helper.py, line 2: ZeroDivisionError: division by zero."),
        (b"x = '\xff'", "reef/tools.py"),
        (b"x = 1\0", "reef/tools.py"),
        (COUNT.replace("text: str", "text"), "reef/tools.py, line 4: the tool count has a parameter without a type"),
        (
            COUNT.replace('"""Counts the words of a text."""', "..."),
            "reef/tools.py, line 4: the tool count has no docstring.",
        ),
        (
            COUNT.replace("@tool", '@tool(approval="Ask")'),
            'reef/tools.py, line 4: the tool count has approval=\'Ask\'; it must be "ask" or "never".',
        ),
        (COUNT.replace("def count", "def zähle"), "reef/tools.py: a tool cannot be called 'zähle'. Take ASCII letters"),
    ],
)
def test_a_fault_is_one_line_with_file_line_and_what_to_do(folder: Path, content: str | bytes, says: str) -> None:
    written(folder, "\nx = 1 / 0", "broken_helper.py")
    with pytest.raises(ToolFileError) as caught:
        load_python_file(written(folder, content))
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_python_is_refused(folder: Path) -> None:
    with pytest.raises(ToolFileError, match=r"^reef/tools\.txt is not a Python file\. Its name must end with \.py\.$"):
        load_python_file(written(folder, COUNT, "tools.txt"))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("artifact_read", "reef/more.py has a tool artifact_read, as the agent itself has: give it another name"),
        ("count", "reef/more.py has a tool count, as reef/tools.py has: give it another name"),
    ],
)
def test_two_tools_of_one_name_are_refused(folder: Path, name: str, says: str) -> None:
    files = (written(folder, COUNT), written(folder, COUNT.replace("def count", f"def {name}"), "more.py"))
    with pytest.raises(SettingsError, match=f"^{says}"):
        create_app(Settings(tools=files, database="memory", model="rehearsal"))


async def test_the_model_is_offered_the_tools_and_the_card_has_skills_of_them(folder: Path) -> None:
    async with serving(tools=(written(folder, COUNT),), grpc=False) as served:
        await sent(served, ("JSONRPC", "1.0"), asking("write report"))
        assert "count" in {spec.name for spec in served.model.requests[0].tools}
        skills = (await served.http.get("/.well-known/agent-card.json")).json()["skills"]
        assert [skill["id"] for skill in skills] == ["count", "write-artifacts", "edit-selections"]
