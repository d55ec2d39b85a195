"""docs/a2a-in.md: its example runs, and its numbers are the code's."""

import asyncio
import inspect
import re

from a2a_canvas import a2a_agent
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import TIMEOUT
from a2a_canvas.server.tool_sources.remote_agents.remote_task import DELAYS, RESENDS
from a2a_canvas.tools.functions.results import RESULT_LIMIT
from tests.docs.pages import page, rows, section
from tests.loopback import serving_app
from tests.server.test_own_loop import send, served
from tests.server.tool_sources.remote_agents.test_other_servers import sdk_app

PAGE = page("a2a-in")


async def test_the_example_serves_the_agent() -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert "from a2a_canvas import Settings, a2a_agent, create_app" in code
    [call] = re.findall(r"^agent = (.*)$", code, re.MULTILINE)
    async with serving_app(sdk_app("JSONRPC", "1.0")) as url:
        agent = eval(call.replace("http://127.0.0.1:9999", url), {"a2a_agent": a2a_agent})
        task = await asyncio.to_thread(_sent, agent)
    assert task["status"]["message"]["parts"][0]["text"] == "It rains in Rome."
    [artifact] = task["artifacts"]
    assert (artifact["name"], artifact["parts"][0]["text"]) == ("report.md", "Rain and wind.")


def _sent(agent) -> dict:
    with served(agent) as client:
        return send(client, "Rome")


def test_the_arguments_are_those_of_the_function() -> None:
    names = [name for name in inspect.signature(a2a_agent).parameters if name != "url"]
    assert [row[0].strip("`") for row in rows(PAGE, "An A2A agent behind the canvas")] == names


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"{TIMEOUT:g} unless set" in PAGE
    assert f"more than {RESULT_LIMIT} characters" in PAGE
    limits = " ".join(section(PAGE, "Crashes and limits").split())
    assert f"about {round(sum(DELAYS[:RESENDS]))} seconds" in limits
    assert 90 <= sum(DELAYS) <= 150
    assert "about two minutes" in limits
