"""docs/agui-in.md: its example runs, and its numbers are the code's."""

import inspect
import json
import re
import tomllib

from a2a_canvas import Settings, agui_agent
from a2a_canvas.server.outbound.answers import MAX_MESSAGE
from a2a_canvas.server.tasks.runtime.runtime import LAST_RUNS
from a2a_canvas.server.tool_sources.agui_agents.documents import LONG
from a2a_canvas.server.tool_sources.remote_agents.agent_client import SILENCE
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import TIMEOUT
from tests.docs.pages import blocks, page, rows, section
from tests.server.test_own_loop import send, served
from tests.server.tool_sources.agui_agents.agui_server import agui_server, said, whole

PAGE = page("agui-in")


async def test_the_example_serves_the_agent() -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert "from a2a_canvas import Settings, agui_agent, create_app" in code
    [call] = re.findall(r"^agent = (.*)$", code, re.MULTILINE)
    state = {"type": "STATE_SNAPSHOT", "snapshot": {"document": "High tide."}}
    async with agui_server(whole(state, *said("Written."))) as server:
        agent = eval(call.replace("http://127.0.0.1:8001/run", server.url), {"agui_agent": agui_agent})
        table = tomllib.loads(blocks(PAGE, "toml")[0])["loop"] | {"url": f"agui:{server.url}"}
        tasks = [await _sent(agent), await _sent(None, loop=table)]
    for task in tasks:
        assert task["status"]["message"]["parts"][0]["text"] == "Written."
        [artifact] = task["artifacts"]
        assert (artifact["name"], artifact["parts"][0]["text"]) == ("report.md", "High tide.")


def test_the_table_of_agent_toml_is_the_loop_of_the_program(tmp_path) -> None:
    [toml], [code] = blocks(PAGE, "toml"), blocks(PAGE, "python")
    (tmp_path / "agent.toml").write_text(toml)
    loop = Settings(agent=tmp_path).loop
    assert f'agui_agent("{loop.url}", artifacts={json.dumps(loop.options["artifacts"])})' in code
    assert f"--loop {loop}\n" in PAGE


async def _sent(agent, **settings) -> dict:
    """A task of a server with this loop, in a thread: it has an event loop of its own."""
    import asyncio

    def run() -> dict:
        with served(agent, **settings) as client:
            return send(client, "Write")

    return await asyncio.to_thread(run)


def test_the_arguments_are_those_of_the_function() -> None:
    names = [name for name in inspect.signature(agui_agent).parameters if name != "url"]
    assert [row[0].strip("`") for row in rows(PAGE, "An AG-UI agent behind the canvas")] == names


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"more than {LONG} lines" in section(PAGE, "Documents")
    limits = " ".join(section(PAGE, "Crashes and limits").split())
    assert f"up to {LAST_RUNS:g} seconds" in limits
    assert f"after {SILENCE:g} seconds" in limits
    assert f"up to {MAX_MESSAGE / 2**20:g} MB" in limits
    assert f"{TIMEOUT:g} unless set" in PAGE
