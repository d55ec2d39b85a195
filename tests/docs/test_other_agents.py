"""docs/agents.md, "Other agents": what it says is so."""

from __future__ import annotations

import re
from textwrap import dedent

from a2a_canvas.server.settings.settings import load
from a2a_canvas.server.tool_sources.remote_agents import agent_client, remote_agent, remote_artifacts, remote_task
from a2a_canvas.server.tool_sources.remote_agents.agent_card import INPUT, tool_name
from a2a_canvas.tools.registry import TOOLS
from tests.docs.pages import page, rows, section
from tests.fakes import answer, text
from tests.fakes import tool as tool_call
from tests.server.agent.turn.turn_harness import TurnHarness
from tests.server.tool_sources.remote_agents.fake_agent import FakeAgent, asking_tool, completed, whole

PAGE = page("agents")
OTHERS = section(PAGE, "Other agents")


def test_other_agents_are_settings() -> None:
    [command] = re.findall(r"^    \.venv/bin/a2a-canvas serve (--agent .*)$", OTHERS, re.MULTILINE)
    addresses = tuple(command.split()[1::2])
    assert load({"agents": addresses}).agents == ("https://weather.example.com", "https://books.example.com")
    [tokens] = re.findall(r"`A2A_CANVAS_AGENT_TOKENS=(.*?)`", OTHERS)
    assert load({"agent_tokens": tokens}).agent_tokens == {"weather.example.com": "TOKEN", "books.example.com": "TOKEN"}


def test_the_tool_of_another_agent_is_as_it_is_described() -> None:
    assert [row[0].strip("`") for row in rows(PAGE, "Other agents")] == list(INPUT["properties"])
    named, tool = re.findall(r"“(.*?)” it is\s`(.*?)`", OTHERS)[0]
    assert tool_name(named, ()) == tool


async def test_another_agents_result_is_as_it_is_shown() -> None:
    agent = FakeAgent([whole("report", "Rain."), completed("It rains.")])
    call = answer(tool_call("T1", "ask_weather", {"message": "Go"}))
    turn = TurnHarness(call, answer(text("Done.")), tools=(*TOOLS, asking_tool(agent)))
    await turn.run()
    [shown] = re.findall(r"((?:^      .*\n)+)", OTHERS, re.MULTILINE)
    assert turn.results()[0].content == dedent(shown).strip()


def test_the_limits_of_other_agents_are_those_of_the_page() -> None:
    said = section(OTHERS, "Limits")
    assert f"{remote_agent.TIMEOUT:g} seconds" in said
    assert f"{remote_artifacts.MAX_ARTIFACTS} artifacts" in said
    assert f"up to {agent_client.MAX_MESSAGE // 2**20} MB" in said
    assert 90 <= sum(remote_task.DELAYS) <= 150
    assert f"silent for {agent_client.SILENCE:g} seconds" in OTHERS
    assert f"every {remote_task.POLLS[-1]:g} seconds" in OTHERS
