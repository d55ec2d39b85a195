"""The setting `loop`: its forms on the command line and in `agent.toml`, and one line for each mistake."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.settings.loop_setting import FileLoop, ModuleLoop, RemoteLoop, parse_loop
from a2a_canvas.server.settings.settings import PREFIX, Settings, SettingsError, load

URL = "http://127.0.0.1:8001/run"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent's folder as a user names it, with nothing but an `agent.py`."""
    for name in tuple(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    Path("reef").mkdir()
    Path("reef/agent.py").write_text("")
    return Path("reef")


def loop_of(folder: Path, toml: str | None = None, **given: str) -> Any:
    if toml is not None:
        (folder / "agent.toml").write_text(toml)
    return load({"agent": str(folder), **given}).loop


@pytest.mark.parametrize(
    ("written", "origin"),
    [
        ("reef.agent:agent", ModuleLoop("reef.agent", "agent")),
        ("my-agent.agent:agent", ModuleLoop("my-agent.agent", "agent")),
        (f"agui:{URL}", RemoteLoop("agui:", URL)),
        ("a2a:https://agent.example.com", RemoteLoop("a2a:", "https://agent.example.com")),
        (Path("reef/agent.py"), FileLoop(Path("reef/agent.py"))),
        (None, None),
    ],
)
def test_a_loop_has_these_forms_and_is_shown_as_it_is_written(written: Any, origin: Any) -> None:
    assert parse_loop(written) == origin
    assert str(origin) == str(written)


def test_the_loop_of_a_folder_is_its_agent_py(folder: Path) -> None:
    assert loop_of(folder) == FileLoop(Path("reef/agent.py"))


def test_a_folder_without_one_has_no_loop(folder: Path) -> None:
    (folder / "agent.py").unlink()
    assert loop_of(folder, "") is None


def test_an_empty_setting_turns_agent_py_off(folder: Path) -> None:
    assert loop_of(folder, 'loop = ""') is None


def test_the_option_beats_the_variable_agent_toml_and_agent_py(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toml = f'loop = "agui:{URL}"'
    assert loop_of(folder, toml) == RemoteLoop("agui:", URL)
    monkeypatch.setenv("A2A_CANVAS_LOOP", "waters:tides")
    assert loop_of(folder, toml) == ModuleLoop("waters", "tides")
    assert loop_of(folder, toml, loop="reef.other:agent") == ModuleLoop("reef.other", "agent")


def test_a_table_of_agent_toml_adds_options(folder: Path) -> None:
    toml = f'[loop]\nurl = "agui:{URL}"\nrestart = true\ntimeout = 60\nartifacts = {{"state.document" = "report.md"}}'
    options = {"restart": True, "timeout": 60, "artifacts": {"state.document": "report.md"}}
    assert loop_of(folder, toml) == RemoteLoop("agui:", URL, options)
    assert Settings(loop={"url": f"a2a:{URL}", "restart": True}).loop == RemoteLoop("a2a:", URL, {"restart": True})


FORMS = "must be MODULE:FUNCTION such as reef.agent:agent, agui:URL or a2a:URL"


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("reef", FORMS),
        ("reef/agent.py:agent", FORMS),
        ("agent.py", FORMS),
        ("reef.agent:", FORMS),
        (f"mcp:{URL}", FORMS),
        (URL, f"must say how the agent is spoken to: agui:{URL} or a2a:{URL}"),
        ("agui:reef", "must be agui: and an address such as http://127.0.0.1:8001/, without a password"),
        ("agui:ftp://h", "must be agui: and an address such as "),
        ("a2a:http://h:0", "must be a2a: and an address such as "),
        ("a2a:http://[", "must be a2a: and an address such as "),
        ("agui:http://", "must be agui: and an address such as "),
    ],
)
def test_a_wrong_option_is_one_line_that_names_it(folder: Path, written: str, says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loop_of(folder, loop=written)
    assert str(caught.value).startswith(f"--loop={written}: {says}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("prefix", ["agui:", ""])
def test_no_message_shows_a_password(folder: Path, prefix: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loop_of(folder, loop=f"{prefix}http://me:s3cret@h/")
    assert str(caught.value).startswith(f"--loop={prefix}http://me:***@h/: must ")
    assert "s3cret" not in str(caught.value)


TABLE = f'[loop]\nurl = "agui:{URL}"\n'


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("\nloop = 3", "line 2: loop=3: must be MODULE:FUNCTION"),
        ("\nloop = true", "line 2: loop=true: must be MODULE:FUNCTION"),
        ('\nloop = "reef"', "line 2: loop=reef: must be MODULE:FUNCTION"),
        ("[loop]\nrestart = true", 'line 1: loop=[loop]: [loop] must have a url such as "agui:http://127.0.0.1:8001/"'),
        ('[loop]\nurl = "reef:agent"', 'line 2: loop=reef:agent: [loop] must have a url such as "agui:'),
        ('[loop]\nurl = "agui:reef"', "line 2: loop=agui:reef: must be agui: and an address"),
        (f"{TABLE}token = 1", f"line 3: loop=agui:{URL}: [loop] has no key token; its keys are url, restart, art"),
        (f'\n{TABLE}timeout = 1\nrestart = "yes"', f"line 5: loop=agui:{URL}: restart of [loop] must be true or false"),
        (f'loop = {{url = "agui:{URL}", restart = 1}}', f"line 1: loop=agui:{URL}: restart of [loop] must be true or"),
        (f"{TABLE}timeout = true", f"line 3: loop=agui:{URL}: timeout of [loop] must be a number of seconds"),
        (f"{TABLE}timeout = 0", "timeout of [loop] must be a number of seconds"),
        (f"{TABLE}timeout = inf", "timeout of [loop] must be a number of seconds"),
        (f'{TABLE}artifacts = "report.md"', "artifacts of [loop] must be a table of file names, such as {"),
        (f'{TABLE}[loop.artifacts]\n"state.x" = 1', f"line 3: loop=agui:{URL}: artifacts of [loop] must be"),
    ],
)
def test_a_mistake_in_agent_toml_is_one_line_with_its_place(folder: Path, toml: str, says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loop_of(folder, toml)
    assert str(caught.value).startswith("reef/agent.toml, line ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
