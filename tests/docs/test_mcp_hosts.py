"""docs/mcp-hosts.md and server.json: what hosts are given is what the server and the command take."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from a2a_canvas.server.protocols.mcp_server.tool_forms import TOOLS
from a2a_canvas.server.wire import MCP_PATH, TOKEN_VARIABLE, URL_VARIABLE
from tests.command_line import parsed
from tests.docs.pages import ADDRESS, README, ROOT, blocks, page, section

PAGE = page("mcp-hosts")
CONFIGURATIONS = [json.loads(block) for block in blocks(PAGE, "json")]
SERVER = json.loads((ROOT / "server.json").read_text())


def servers(configuration: dict[str, Any]) -> dict[str, Any]:
    [found] = [configuration[key] for key in ("mcpServers", "servers", "context_servers") if key in configuration]
    return found


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=["Cursor", "VS Code", "Zed", "Claude Desktop"])
def test_a_host_is_given_the_address_or_the_command(configuration: dict[str, Any]) -> None:
    [server] = servers(configuration).values()
    if "url" in server:
        assert server["url"] == ADDRESS + MCP_PATH
        assert server["headers"]["Authorization"].startswith("Bearer ")
    else:
        assert server["command"].endswith("/a2a-canvas")
        command, options = parsed(*server["args"])
        assert (command, options["url"]) == ("mcp", ADDRESS)
        assert [*server["env"]] == [TOKEN_VARIABLE]


def test_the_page_names_every_tool_and_no_other() -> None:
    assert set(re.findall(r"^\| (`.*?) \|", section(PAGE, "Write together"), re.MULTILINE))
    rows = "".join(re.findall(r"^\| (`.*?) \|", section(PAGE, "Write together"), re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", rows)) == set(TOOLS)


def test_the_registry_is_told_of_this_version_and_of_the_command() -> None:
    [package] = SERVER["packages"]
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert (SERVER["version"], package["version"]) == (version[1], version[1])
    command, _ = parsed(*(each["value"] for each in package["packageArguments"]))
    assert command == "mcp"
    assert [each["name"] for each in package["environmentVariables"]] == [URL_VARIABLE, TOKEN_VARIABLE]
    assert f"<!-- mcp-name: {SERVER['name']} -->" in README  # by which the registry knows the package on PyPI
    assert len(SERVER["description"]) <= 100
