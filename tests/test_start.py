"""What a command imports, in a process of its own: start-up is quick because nothing is imported before it is used.

`make bench ARGS="--only start"` measures the CPU time.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import a2a_canvas

ROOT = Path(__file__).parent.parent
LIBRARIES = [
    *("a2a", "anthropic", "asyncio", "google.protobuf", "grpc", "httpx", "openai", "prompt_toolkit", "pydantic"),
    *("mcp", "mcp_types", "rich.console", "sqlalchemy", "starlette"),
]
SQL = ["sqlalchemy", "alembic", "asyncpg"]


def imported(program: str, *names: str) -> str:
    """Those of the modules, and of those below them, that a program has imported when it ends, by `names`."""
    check = f"""
import sys
try:
    exec({program!r})
except SystemExit:
    pass
found = {{name for name in {names!r} if any(module == name or module.startswith(name + ".") for module in sys.modules)}}
print("imported:", *sorted(found))
"""
    done = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].removeprefix("imported:").strip()


def test_the_first_process_of_a_container_ends_at_sigterm_while_it_starts() -> None:
    program = """
import os, signal
from a2a_canvas import __main__
os.getpid = lambda: 1
__main__.run = lambda: signal.raise_signal(signal.SIGTERM)
__main__.main()
"""
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 128 + signal.SIGTERM


def test_the_package_alone_imports_none_of_its_modules() -> None:
    assert imported("import a2a_canvas", "a2a_canvas.server", "a2a_canvas.store", "a2a_canvas.tools", *LIBRARIES) == ""


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["send", "--help"], ["diff", "--help"], ["chat", "--help"]]
)
def test_version_and_help_import_no_library(arguments: list[str]) -> None:
    assert imported(f"from a2a_canvas.server.commands.cli import main\nmain({arguments!r})", *LIBRARIES) == ""


@pytest.mark.parametrize("arguments", [["send", "hi"], ["edit", "doc", "shorter", "--lines", "3", "--context", "c"]])
def test_the_arguments_of_the_client_import_no_library(arguments: list[str]) -> None:
    program = f"from tests.command_line import parsed\nassert parsed(*{arguments!r})"
    assert imported(program, *LIBRARIES) == ""


@pytest.mark.parametrize("module", ["send", "edit", "artifacts"])
def test_the_client_imports_nothing_of_the_server(module: str) -> None:
    server = ["a2a_canvas.store", "a2a_canvas.tools", "a2a_canvas.server.app", "a2a_canvas.server.settings.settings"]
    program = f"import a2a_canvas.server.client.commands.{module}"
    assert imported(program, *server, "a2a.server", "anthropic", "pydantic_settings", "uvicorn", *SQL) == ""


SERVED = """
import asyncio, sys
# The SDK imports grpc and SQLAlchemy if it can, and works without them: so shall we.
for name in ("anthropic", "openai", "mcp", "mcp_types", "grpc", "sqlalchemy", "alembic", "asyncpg"):
    sys.modules[name] = None
from a2a_canvas import Settings, create_app

async def main():
    app = create_app(Settings(database="memory", model="rehearsal"))
    import httpx
    async with app.router.lifespan_context(app):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
            card = (await http.get("/.well-known/agent-card.json")).json()
            assert card["name"] == "a2a-canvas", card
            message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Write a haiku."}]}
            call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
            answer = (await http.post("/", json=call, headers={"A2A-Version": "1.0"})).json()
            assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED", answer

asyncio.run(main())
for name in ("anthropic", "openai", "mcp", "mcp_types", "grpc", "sqlalchemy", "alembic", "asyncpg"):
    del sys.modules[name]
"""


def test_an_app_in_memory_runs_without_claude_mcp_grpc_and_sql() -> None:
    ours = [
        "a2a_canvas.store.sql",
        "a2a_canvas.server.tasks.sql",
        "a2a_canvas.server.backend.migrations",
        "a2a_canvas.server.client",
    ]
    assert imported(SERVED, *ours, "anthropic", "openai", "mcp", "mcp_types", *SQL) == ""


def test_without_mcp_a_file_with_servers_is_one_sentence_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"time": {"command": "mcp-server-time"}}}')
    program = f"""
import sys
sys.modules["mcp"] = sys.modules["mcp_types"] = None
from a2a_canvas.server.commands.cli import main
sys.exit(main(["serve", {str(tmp_path)!r}, "--check"]))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    told = f"{tmp_path}/mcp.json needs a library that is not installed: pip install 'a2a-canvas[mcp]'"
    assert done.stderr.splitlines() == [f"a2a-canvas: {told}"]


def test_only_scripts_and_the_rehearsal_import_the_engine_of_scripts() -> None:
    engine = ("a2a_canvas.server.agent.models.script", "yaml")
    assert imported("import a2a_canvas.server.app", *engine) == ""


def test_the_public_surface_is_small() -> None:
    assert a2a_canvas.__all__ == [
        *("LLM", "Canvas", "File", "Settings", "StateConflict", "ToolError", "Turn", "__version__"),
        *("a2a_agent", "agent", "agui_agent", "create_app", "tool"),
    ]
    assert {name for name in dir(a2a_canvas) if not name.startswith("_")} >= {*a2a_canvas.__all__} - {"__version__"}
    for name in a2a_canvas.__all__:
        assert getattr(a2a_canvas, name)
    with pytest.raises(AttributeError, match="has no attribute 'Runtime'"):
        _ = a2a_canvas.Runtime


def test_the_example_of_the_package_runs() -> None:
    example = "\n".join(line.strip() for line in (a2a_canvas.__doc__ or "").splitlines() if line.startswith("    "))
    assert imported(f"{example}\nassert app.routes", "a2a_canvas.server.app", *SQL[1:]) == "a2a_canvas.server.app"
