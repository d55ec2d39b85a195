"""The folder of an agent: what it sets, in which order, and one line for each fault."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.app import create_app
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.commands.serve import check_agent
from a2a_canvas.server.settings.settings import PREFIX, Settings, SettingsError, load
from tests.server.app_server import asking, sent, serving

COUNT = '''
from a2a_canvas import tool

@tool
def count(text: str) -> str:
    """Counts the words of a text."""
    return str(len(text.split()))
'''
AGENT = Path(__file__).parents[1] / "fixtures" / "agent"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent with a file of each kind, named as a user names it: from the folder above."""
    monkeypatch.chdir(tmp_path)
    folder = Path("reef")
    folder.mkdir()
    for name in ("instructions.md", "tools.py", "mcp.json", "agent_card.json"):
        (folder / name).write_text("")
    return folder


def served(folder: Path, toml: str = "", **given: object) -> Settings:
    (folder / "agent.toml").write_text(toml)
    return load({"agent": str(folder), **given})


def test_files_of_the_usual_names_are_used_without_an_agent_toml(folder: Path) -> None:
    settings = load({"agent": "reef"})
    assert settings.instructions == folder / "instructions.md"
    assert settings.tools == (folder / "tools.py",)
    assert settings.mcp_config == folder / "mcp.json"
    assert settings.agent_card == folder / "agent_card.json"


def test_what_is_not_there_is_not_used(folder: Path) -> None:
    for name in ("instructions.md", "tools.py", "mcp.json", "agent_card.json"):
        (folder / name).unlink()
    settings = served(folder, "port = 9000")
    assert (settings.instructions, settings.tools, settings.mcp_config, settings.agent_card) == (None, (), None, None)


def test_the_paths_of_agent_toml_are_those_in_the_folder(folder: Path) -> None:
    for name in ("who.md", "more.py"):
        (folder / name).write_text("")
    settings = served(
        folder,
        'instructions = "who.md"\ntools = ["tools.py", "more.py"]\nmcp = "mcp.json"\nagent_card = "/tmp/card.json"\n'
        'model = "script:script.yaml"\nagents = ["https://agent.example.com/"]\n',
    )
    assert settings.instructions == folder / "who.md"
    assert settings.tools == (folder / "tools.py", folder / "more.py")
    assert (settings.mcp_config, settings.agent_card) == (folder / "mcp.json", Path("/tmp/card.json"))
    assert settings.model == "script:reef/script.yaml"
    assert settings.agents == ("https://agent.example.com",)


@pytest.mark.parametrize(
    ("toml", "database"),
    [
        ("", "sqlite:///reef/a2a-canvas.db"),
        ('database = "data/my.db"', "sqlite:///reef/data/my.db"),
        ('database = "sqlite:///my.db"', "sqlite:///reef/my.db"),
        ('database = "sqlite:////data/my.db"', "sqlite:////data/my.db"),
        ('database = "memory"', "memory"),
        ('database = "postgresql://db/canvas"', "postgresql://db/canvas"),
    ],
)
def test_the_database_is_in_the_folder_unless_it_is_set(folder: Path, toml: str, database: str) -> None:
    assert served(folder, toml).database == database


@pytest.mark.parametrize("key", ["max_turns", "max-turns", '"max-turns"'])
def test_keys_have_underscores_or_hyphens(folder: Path, key: str) -> None:
    assert served(folder, f"{key} = 3").max_turns == 3


def test_lists_are_lists_or_texts_with_commas(folder: Path) -> None:
    one, other = (
        served(folder, f"cors_origin = {value}").cors_origin
        for value in ('"http://a.example, http://b.example"', '["http://a.example", "http://b.example"]')
    )
    assert one == other == ("http://a.example", "http://b.example")


def test_the_command_line_comes_before_the_environment_before_the_folder_before_the_defaults(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = "port = 9001\nmax_turns = 3\nmax_streams = 4"
    monkeypatch.setenv("A2A_CANVAS_PORT", "9002")
    monkeypatch.setenv("A2A_CANVAS_MAX_TURNS", "5")
    settings = served(folder, toml, port="9003")
    assert (settings.port, settings.max_turns, settings.max_streams, settings.max_rounds) == (9003, 5, 4, 30)


def test_the_folder_can_be_a_variable_or_an_argument_of_the_settings(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Settings(agent=folder).instructions == folder / "instructions.md"
    monkeypatch.setenv("A2A_CANVAS_AGENT", "reef")
    assert load({}).instructions == folder / "instructions.md"


def test_a_file_on_the_command_line_is_where_the_user_is(folder: Path) -> None:
    Path("other.md").write_text("")
    assert served(folder, 'instructions = "instructions.md"', instructions="other.md").instructions == Path("other.md")


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ('# who\nmodle = "x"', "reef/agent.toml, line 2: modle is not a setting. Did you mean model?"),
        ("[agent]\nport = 1", "line 1: the settings stand at the top, not below [agent]. Remove that line."),
        ("agent = 'x'", "line 1: agent is not a setting. Did you mean agents?"),
        ("port = 1\n[limits]\nx = 1", "line 2: the settings stand at the top, not below [limits]. Remove that line."),
        ("max_turns = 1\nmax-turns = 2", "line 1: max_turns is set twice. Leave one out."),
        ("port", "reef/agent.toml, line 1: Expected '=' after a key in a key/value pair. It must be TOML"),
        ("\nport = [", "reef/agent.toml, line 2: Invalid value. It must be TOML"),
        ("\n\nport = 70000", "reef/agent.toml, line 3: port=70000: must be 1 to 65535"),
        ("port = 3.5", "line 1: port=3.5: must be a whole number"),
        ("\nport = true", "reef/agent.toml, line 2: port=true: must be a number, not true or false"),
        ("context_window = false", "line 1: context_window=false: must be a number, not true or false"),
        ("shutdown_grace = true", "line 1: shutdown_grace=true: must be a number, not true or false"),
        ("host = true", "line 1: host=true: must be text, in quotation marks"),
        ("agent_tokens = 3", "line 1: agent_tokens='***': must be text, in quotation marks"),
        ("allow_anonymous = 3", "line 1: allow_anonymous=3: must be true or false"),
        ("model = 3", "line 1: model=3: must be text, in quotation marks"),
        ("instructions = 3", "line 1: instructions=3: must be the name of a file, in quotation marks"),
        ('instructions = "no.md"', "line 1: instructions=reef/no.md: there is no file reef/no.md"),
        ('tools = ["tools.py", "no.py"]', "line 1: tools=reef/no.py: there is no file reef/no.py"),
        ("tools = 3", 'line 1: tools=3: must be text in quotation marks, or a list of such: ["…", "…"]'),
        ('agents = ["reef"]', "line 1: agents=reef: must be an address such as https://agent.example.com"),
        ("x = " + "[" * 5000, "reef/agent.toml"),
    ],
)
def test_a_fault_is_one_line_with_file_line_and_what_to_do(folder: Path, toml: str, says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        served(folder, toml)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_without_a_provider_is_told_with_its_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (folder / "agent.toml").write_text('\nmodel = "cluade-opus"')
    said = "The model cluade-opus has no provider. Did you mean claude-opus?"
    with pytest.raises(SettingsError, match=f"^reef/agent.toml, line 2: {re.escape(said)}"):
        check_agent({"agent": "reef"})
    with pytest.raises(SettingsError, match=f"^{re.escape(said)}"):
        check_agent({"agent": "reef", "model": "cluade-opus"})


def test_a_wrong_variable_is_not_blamed_on_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_CANVAS_PORT", "x")
    with pytest.raises(SettingsError, match=r"^A2A_CANVAS_PORT=x: must be a whole number$"):
        served(folder, "port = 9000")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none", "There is no folder none. To make an agent there: a2a-canvas new none"),
        ("file", "file is a file. Name the folder of the agent."),
        ("https://h", "https://h is not a folder. Addresses of agents go into A2A_CANVAS_AGENTS "),
        ("empty", "The folder empty is not an agent folder: it has none of agent.toml, instructions.md, tools.py, "),
    ],
)
def test_what_is_no_agent_is_refused(folder: Path, name: str, says: str) -> None:
    Path("file").write_text("")
    Path("empty").mkdir()
    with pytest.raises(SettingsError, match=f"^{says}"):
        load({"agent": name})


def test_a_folder_that_may_not_be_read_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)  # tests may run as root, who may read everything
    with pytest.raises(SettingsError, match=r"^The folder reef cannot be read: Permission denied\.$"):
        load({"agent": "reef"})


def test_an_agent_toml_that_is_not_text_is_refused(folder: Path) -> None:
    (folder / "agent.toml").write_bytes(b'model = "\xff"')
    with pytest.raises(SettingsError, match=r"^reef/agent\.toml is not UTF-8: byte 9 is 0xff\.$"):
        load({"agent": "reef"})


# ------------------------------------------------------------------------- the agent


async def test_the_agent_has_the_name_and_the_instructions_of_its_folder() -> None:
    async with serving(agent=AGENT, grpc=False) as served:
        card = (await served.http.get("/.well-known/agent-card.json")).json()
        assert card["name"] == "agent"
        await sent(served, ("JSONRPC", "1.0"), asking("write report"))
        assert {request.system.partition("\n\n")[0] for request in served.model.requests} == {"You are Captain Reef."}


@pytest.fixture
def only_read(folder: Path) -> Iterator[Path]:
    """The folder, which may not be written to, and is not, even if the superuser runs the test."""
    (folder / "tools.py").write_text(COUNT)
    (folder / "mcp.json").write_text('{"mcpServers": {}}')
    (folder / "agent_card.json").write_text('{"name": "Reef"}')
    there = {*folder.iterdir()}
    for path in (*there, folder):
        path.chmod(path.stat().st_mode & ~0o222)
    yield folder
    folder.chmod(0o755)
    assert {*folder.iterdir()} - there <= {folder / "__pycache__"}  # which Python does without


async def test_a_folder_that_may_only_be_read_is_served(only_read: Path, tmp_path: Path) -> None:
    async with serving(agent=only_read, database=f"sqlite:///{tmp_path}/elsewhere.db", grpc=False) as served:
        await sent(served, ("JSONRPC", "1.0"), asking("write report"))
        assert "count" in {tool.name for tool in served.model.requests[0].tools}


@pytest.mark.parametrize(("content", "says"), [(b"\xff", "are not UTF-8"), (None, "cannot be read")])
def test_instructions_that_cannot_be_read_are_refused(folder: Path, content: bytes | None, says: str) -> None:
    for name in ("tools.py", "mcp.json", "agent_card.json"):
        (folder / name).unlink()
    settings = served(folder, 'database = "memory"\nmodel = "rehearsal"')
    file = folder / "instructions.md"
    file.unlink()
    if content:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=f"reef/instructions.md {says}"):
        create_app(settings)


# ---------------------------------------------------------------------------- serve --check


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"command": "no-such-program"}, "there is no program no-such-program. Install it, or name its path."),
        (
            {"command": "./no-such-program"},
            "there is no program {folder}/no-such-program. Install it, or name its path.",
        ),
        (
            {"command": "python", "env": {"PATH": "/nowhere"}},
            "there is no program python. Install it, or name its path.",
        ),
        ({"command": "python"}, ""),
        ({"url": "http://127.0.0.1:1/mcp"}, ""),
        ({"command": "no-such-program", "disabled": True}, ""),
    ],
)
def test_a_check_looks_for_the_programs_of_mcp_servers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], server: dict[str, Any], why: str
) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"tides": server}}))
    assert main(["serve", str(tmp_path), "--check"]) == (2 if why else 0)
    told = f"a2a-canvas: {tmp_path}/mcp.json: mcpServers.tides.command: {why}\n".replace("{folder}", str(tmp_path))
    assert capsys.readouterr().err == (told if why else "")


def test_a_check_refuses_a_tool_whose_result_can_never_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tools.py").write_text(
        'from a2a_canvas import tool\n\n\n@tool\ndef picture() -> bytes:\n    """Draws."""\n    return b""\n'
    )
    assert main(["serve", str(tmp_path), "--check"]) == 2
    assert "the tool picture returns bytes: return them as a File" in capsys.readouterr().err
