"""docs/mcp.md: the first example runs, the second one is read, and the tables and numbers are those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from a2a_canvas.server.tool_sources.mcp_servers import config, mcp_connection, mcp_exchange, process, source, transports
from a2a_canvas.server.tool_sources.mcp_servers.config import load_mcp_config
from a2a_canvas.server.tool_sources.mcp_servers.tool_names import MAX_NAME
from a2a_canvas.testing import agent
from tests.docs.pages import blocks, page, rows

PAGE = page("mcp")
EXAMPLES = blocks(PAGE, "json")

SCRIPT = """
rules:
  - match: {text: "time"}
    rounds:
      - tools: [{name: time__get_current_time, input: {timezone: Asia/Tokyo}}]
      - text: "There you are."
"""


@pytest.mark.process
def test_the_agent_of_the_page_tells_the_time(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").touch()
    (tmp_path / "mcp.json").write_text(EXAMPLES[0])
    (tmp_path / "script.yaml").write_text(SCRIPT)
    with agent(tmp_path, tmp_path / "script.yaml") as clock:
        answer = clock.send("What time is it in Tokyo?")
    assert answer.state == "completed"
    assert json.loads(answer.tool_results[0])["timezone"] == "Asia/Tokyo"


def test_every_example_can_be_loaded(tmp_path: Path) -> None:
    for example in EXAMPLES:
        (tmp_path / "mcp.json").write_text(example)
        assert load_mcp_config(tmp_path / "mcp.json", {"TICKETS_TOKEN": "t"})


def test_the_table_has_every_key() -> None:
    told = [row[0].strip("`") for row in rows(PAGE, "The file")]
    assert sorted(told) == sorted((*config._COMMON, *config._STDIO, *config._HTTP))


@pytest.mark.parametrize(
    ("says", "number"),
    [
        (r"without progress, (\d+) at most", config.MAX_TIMEOUT),
        (r"at most \| (\d+) \|", config.DEFAULT_TIMEOUT),
        (r"at most (\d+) lines a second", process.LOGGED_PER_SECOND),
        (r"`_` and `-`, (\d+) characters at most", MAX_NAME),
        (r"may be up to (\d+) MB", transports.MAX_MESSAGE / 2**20),
        (r"starts without it after (\d+) seconds", mcp_connection.START_TIMEOUT),
        (r"the call waits (\d+) seconds", source.CALL_WAIT),
    ],
)
def test_the_numbers_are_those_of_the_code(says: str, number: float) -> None:
    found = re.search(says, PAGE)
    assert found
    assert int(found[1]) == number


def test_a_call_with_progress_may_take_ten_times_its_timeout() -> None:
    assert "may take ten times its `timeout`" in PAGE
    assert mcp_exchange.MAX_TIMEOUTS == 10
