"""The agent's own loop, loaded as the settings name it; each mistake is one line before the server starts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.app import create_app
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.settings.settings import Settings, SettingsError
from a2a_canvas.server.tool_sources import framework_extras
from a2a_canvas.server.tool_sources.agent_loop import load_loop, probe_agent
from a2a_canvas.testing import agent
from tests.free_port import free_port
from tests.server.tool_sources.agui_agents.agui_server import agui_server

AGENT = """
async def agent(turn):
    await turn.say("The tide is high.")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An agent's folder as a user names it: from the folder above."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    there = {*sys.modules}
    Path("reef").mkdir()
    yield Path("reef")
    for name in {*sys.modules} - there:
        if name.partition(".")[0] in ("reef", "waters", "marsh"):
            del sys.modules[name]


def written(folder: Path, content: str, name: str = "agent.py") -> Path:
    (folder / name).write_text(content)
    return folder


def loaded(**settings: Any) -> AgentFunction:
    loop = load_loop(Settings(database="memory", model="rehearsal", **settings))
    assert loop
    return loop


def said(**given: Any) -> str:
    with agent(**given) as it:
        return it.send("tides").text


# -------------------------------------------------------------------------- where it comes from


def test_a_folder_with_an_agent_py_alone_is_an_agent_that_its_function_answers(folder: Path) -> None:
    assert said(folder=written(folder, AGENT)) == "The tide is high."


def test_agent_py_may_import_the_files_beside_it(folder: Path) -> None:
    written(folder, "WORDS = 'Low.'", "tide_words.py")
    written(folder, "from tide_words import WORDS\n" + AGENT.replace('"The tide is high."', "WORDS"))
    assert said(folder=folder) == "Low."


def test_an_argument_of_create_app_beats_the_folder(folder: Path) -> None:
    async def other(turn: Any) -> None:
        await turn.say("Other.")

    assert said(folder=written(folder, AGENT), loop=other) == "Other."


@pytest.mark.parametrize("where", [".", "elsewhere"])
def test_a_module_is_found_from_the_working_directory_and_above_the_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    written(folder, AGENT)
    Path("elsewhere").mkdir()
    written(Path("elsewhere"), AGENT.replace("high", "low"), "waters.py")
    monkeypatch.chdir(where)
    folder = Path(".." if where != "." else ".") / "reef"
    assert loaded(agent=folder, loop="reef.agent:agent").name == "agent"
    module = "waters" if where != "." else "elsewhere.waters"
    assert loaded(loop=f"{module}:agent").name == "agent"


def test_a_loop_on_the_command_line_beats_agent_py(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(folder, "x = 1 / 0")
    written(folder, AGENT, "other.py")
    assert main(["serve", "reef", "--loop", "reef.other:agent", "--model", "rehearsal", "--check"]) == 0
    assert capsys.readouterr().out == "reef can be served with its loop reef.other:agent.\n"


def test_options_of_the_decorator_are_kept(folder: Path) -> None:
    content = AGENT.replace("async", "@a2a_canvas.agent(restartable=False)\nasync")
    written(folder, f"import a2a_canvas\n{content}")
    assert not loaded(agent=folder).restartable


def test_an_agui_agent_gets_the_options_of_the_table_and_the_tokens(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from a2a_canvas.server.tool_sources.agui_agents import agui_loop

    made: dict[str, Any] = {}

    class Client:
        def __init__(self, url: str, tokens: Any) -> None:
            made.update(url=url, tokens=dict(tokens))

    monkeypatch.setattr(agui_loop, "AguiClient", Client)
    table = {"url": "agui:http://agent.example.com/run", "restart": True, "artifacts": {"state.document": "report.md"}}
    assert loaded(loop=table, agent_tokens="agent.example.com=s3cret").restartable
    assert made == {"url": "http://agent.example.com/run", "tokens": {"agent.example.com": "s3cret"}}
    assert not loaded(loop="agui:http://agent.example.com/run").restartable


# -------------------------------------------------------------------------- mistakes

WRITE = "Write: async def agent(turn: Turn) -> None"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("x = 1", f"reef/agent.py has no function agent. {WRITE}"),
        ("from a2a_canvas import agent", f"reef/agent.py has no function agent. {WRITE}"),
        (
            "class Agent: ...\nAgent.__module__ = 'google.adk.agents'\nroot_agent = Agent()",
            "reef/agent.py has no function agent. Write: from a2a_canvas.frameworks import adk_agent; "
            "agent = adk_agent(root_agent)",
        ),
        (
            "from a2a_canvas.frameworks import pydantic_ai_agent as agent",
            "reef/agent.py: pydantic_ai_agent makes an agent of yours. Call it: agent = pydantic_ai_agent(…)",
        ),
        ("agent = 3", f"reef/agent.py: int is not a function. {WRITE}"),
        ("def agent(turn): ...", f"reef/agent.py: agent is not async. {WRITE}"),
        ("async def agent(): ...", "reef/agent.py: agent must take one argument, the turn: too many positional arg"),
        ("async def agent(turn, more): ...", "reef/agent.py: agent must take one argument, the turn: missing a requ"),
        (
            "import a2a_canvas\n\n@a2a_canvas.agent\ndef agent(turn): ...",
            f"reef/agent.py, line 3: agent is not async. {WRITE}",
        ),
        ("\nasync def agent(:", "reef/agent.py, line 2: invalid syntax. Correct it."),
        ("\nnope()", "reef/agent.py, line 2: NameError: name 'nope' is not defined."),
        ("import sys\nsys.exit(3)", "reef/agent.py, line 2: SystemExit: 3."),
        ("raise ValueError('one\\ntwo')", "reef/agent.py, line 1: ValueError: one two."),
        (
            "\nimport no_such_module.deep",
            "reef/agent.py, line 2: No module named 'no_such_module'. Install it where a2a-canvas runs: pip install no",
        ),
    ],
)
def test_a_mistake_in_agent_py_is_one_line_and_exit_code_2(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str, says: str
) -> None:
    written(folder, content)
    for arguments in (["--check"], []):
        assert main(["serve", "reef", "--model", "rehearsal", *arguments]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"a2a-canvas: {says}")
        assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("loop", "says"),
    [
        ("reef.agnet:agent", "There is no module reef.agnet in {here}. Write its name as in import."),
        ("no_such.agent:agent", "There is no module no_such.agent in {here}. Write its name as in import."),
        ("marsh:agent", "marsh.py, line 2: ZeroDivisionError: division by zero."),
        ("marsh_missing:agent", "marsh_missing.py, line 1: No module named 'no_such_module'. Install it where"),
        ("reef.agent:agnet", "reef.agent has no function agnet. Did you mean agent?"),
        ("reef.agent:tides", "reef.agent has no function tides. Write: async def tides(turn: Turn) -> None"),
        ("reef.agent:DELAY", "reef.agent: float is not a function. Write: async def agent(turn: Turn) -> None"),
        ("reef.agent:plain", "reef.agent: plain is not async. Write: async def plain(turn: Turn) -> None"),
    ],
)
def test_a_mistake_in_a_module_is_one_line(folder: Path, loop: str, says: str) -> None:
    written(folder, f"{AGENT}\n\ndef plain(turn): ...\nDELAY = 0.0")
    Path("marsh.py").write_text("\nx = 1 / 0")
    Path("marsh_missing.py").write_text("import no_such_module")
    with pytest.raises(SettingsError) as caught:
        loaded(loop=loop)
    assert str(caught.value).startswith(says.format(here=Path.cwd()))
    assert "\n" not in str(caught.value)


def test_a_library_in_an_environment_in_the_folder_is_not_blamed(folder: Path) -> None:
    library = Path("env/lib/site-packages")
    library.mkdir(parents=True)
    (library / "marsh_library.py").write_text("\n\nx = 1 / 0")
    Path("marsh_user.py").write_text(f"import sys\nsys.path.append({str(library)!r})\nimport marsh_library")
    with pytest.raises(SettingsError, match=r"^marsh_user\.py, line 3: ZeroDivisionError"):
        loaded(loop="marsh_user:agent")


def test_an_a2a_agent_is_named_by_its_address_and_has_a_timeout() -> None:
    table = {"url": "a2a:http://agent.example.com", "timeout": 60}
    assert (
        loaded(loop=table).name == loaded(loop="a2a:http://agent.example.com").name == "the agent at agent.example.com"
    )


def test_options_that_an_agent_does_not_have_are_refused() -> None:
    table = {"url": "a2a:http://agent.example.com", "restart": True}
    with pytest.raises(SettingsError, match=r"^a2a:http://agent.example.com: restart of \[loop\] is not for a2a: "):
        loaded(loop=table)


def test_documents_that_cannot_be_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"^agui:http://h: .*document"):
        loaded(loop={"url": "agui:http://h", "artifacts": {"document": "report.md"}})


# -------------------------------------------------------------------------- frameworks

WITH_FRAMEWORK = """
from a2a_canvas.server.agent.loops.agent_function import AgentFunction

async def run(turn): ...

agent = AgentFunction("agent", run, package="langgraph")
"""


def test_a_check_imports_the_framework_and_prints_its_version(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    imported: list[str] = []
    monkeypatch.setattr(framework_extras, "import_module", imported.append)
    written(folder, WITH_FRAMEWORK)
    assert main(["serve", "reef", "--model", "rehearsal", "--check"]) == 0
    version = framework_extras.version_of("langgraph")
    assert capsys.readouterr().out == f"reef can be served with its loop reef/agent.py (langgraph {version}).\n"
    assert imported == ["langgraph"]


def test_an_agent_of_a_framework_names_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(
        folder,
        "from pydantic_ai import Agent\nfrom a2a_canvas.frameworks import pydantic_ai_agent\n\n"
        'agent = pydantic_ai_agent(Agent("test", name="reef"))\n',
    )
    assert main(["serve", "reef", "--check"]) == 0
    version = framework_extras.version_of("pydantic-ai-slim")
    assert f"reef can be served with its loop reef/agent.py (pydantic-ai-slim {version})." in capsys.readouterr().out


def test_an_old_framework_that_lacks_what_is_imported_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework_extras, "version", lambda name: "1.9")
    for module in framework_extras.EXTRAS.keys() - {"pydantic_ai"}:  # imported, too, and not the one that is named
        monkeypatch.setitem(sys.modules, module, ModuleType(module))
    says = (
        r"^reef/agent\.py, line 1: ImportError: .*\. pydantic-ai-slim 1\.9 is too old, because a2a-canvas needs 2\.68: "
    )
    with pytest.raises(SettingsError, match=says):
        loaded(agent=written(folder, "from pydantic_ai import no_such_thing"))


def test_a_framework_that_is_too_old_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework_extras, "version", lambda name: "1.2.21")
    says = (
        r"^reef/agent\.py: langgraph 1\.2\.21 is too old, because a2a-canvas needs 1\.2\.22: "
        r"pip install 'a2a-canvas\[langgraph\]' --upgrade$"
    )
    with pytest.raises(SettingsError, match=says):
        create_app(Settings(agent=written(folder, WITH_FRAMEWORK), database="memory", model="rehearsal"))


def test_a_framework_that_is_missing_is_said_with_its_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "langgraph"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "langgraph", None)  # type: ignore[arg-type]
    monkeypatch.setattr(framework_extras, "version_of", lambda name: "")
    install = r"Install it where a2a-canvas runs: pip install 'a2a-canvas\[langgraph\]'$"
    with pytest.raises(SettingsError, match=rf"^reef/agent\.py: .*langgraph.*\. {install}"):
        loaded(agent=written(folder, WITH_FRAMEWORK))
    with pytest.raises(SettingsError, match=rf"^reef/agent\.py, line 1: .*langgraph.*\. {install}"):
        loaded(agent=written(folder, "import langgraph.graph"))


# ------------------------------------------------------------------- agents that run elsewhere


@pytest.mark.parametrize("prefix", ["a2a:", "agui:"])
def test_a_check_asks_the_agent(folder: Path, prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}/run"
    assert main(["serve", "--loop", f"{prefix}{url}", "--check"]) == 2
    said = capsys.readouterr()
    assert f"The agent at {url} cannot be asked: the connection to it was lost, or nothing answers there." in said.err
    assert not said.out


async def test_any_answer_of_an_agui_agent_will_do() -> None:
    async with agui_server([]) as server:
        assert not await probe_agent(loaded(loop=f"agui:{server.url}"))
    assert not server.bodies


async def test_an_a2a_agent_needs_a_card() -> None:
    async with agui_server([]) as server:
        reason = await probe_agent(loaded(loop=f"a2a:{server.url}"))
    assert reason == f"The agent at {server.url} cannot be asked: it answers with HTTP 404."
