import json
import logging
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.tool_sources.mcp_servers.config import (
    Command,
    Endpoint,
    McpConfigError,
    McpServer,
    load_mcp_config,
)

ENVIRON = {"TOKEN": "t1", "EMPTY": ""}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


def load(file: Path, **servers: Any) -> tuple[McpServer, ...]:
    file.write_text(json.dumps({"mcpServers": servers}))
    return load_mcp_config(file, ENVIRON)


def test_a_program_runs_in_the_folder_of_the_file(file: Path) -> None:
    (server,) = load(file, files={"command": "npx", "args": ["-y", "server"], "env": {"A": "b"}})
    assert server.connection == Command("npx", ("-y", "server"), {"A": "b"}, str(file.parent))
    assert (server.name, server.prefix, server.timeout) == ("files", "files", 60)


@pytest.mark.parametrize(
    ("given", "command", "cwd"),
    [
        ({"command": "./run.sh"}, "{}/run.sh", "{}"),
        ({"command": "run", "cwd": "sub"}, "run", "{}/sub"),
        ({"command": "run", "cwd": "/abs"}, "run", "/abs"),
    ],
)
def test_paths_are_relative_to_the_file(file: Path, given: dict[str, str], command: str, cwd: str) -> None:
    (server,) = load(file, files=given)
    assert isinstance(server.connection, Command)
    assert server.connection.command == command.format(file.parent)
    assert server.connection.cwd == cwd.format(file.parent)


@pytest.mark.parametrize(
    ("given", "kind"),
    [({}, "auto"), ({"type": "http"}, "http"), ({"type": "streamable-http"}, "http"), ({"transport": "sse"}, "sse")],
)
def test_an_address_has_headers_and_a_transport(file: Path, given: dict[str, str], kind: str) -> None:
    (server,) = load(file, web={"url": "https://example.com/mcp", "headers": {"A": "b"}, **given})
    assert server.connection == Endpoint("https://example.com/mcp", {"A": "b"}, kind)  # type: ignore[arg-type]


def test_variables_are_those_of_the_environment(file: Path) -> None:
    url = "http://h/${TOKEN}/${NONE:-none}/${EMPTY:-full}/${EMPTY}"
    (server,) = load(file, web={"url": url, "headers": {"Authorization": "Bearer ${TOKEN}"}})
    assert server.connection == Endpoint("http://h/t1/none/full/", {"Authorization": "Bearer t1"})


@pytest.mark.parametrize("off", [{"disabled": True}, {"enabled": False}])
def test_a_disabled_server_is_left_out_with_whatever_it_needs(file: Path, off: dict[str, bool]) -> None:
    assert load(file, a={"command": "${NONE}", **off}, b={"command": "b"})[0].name == "b"


@pytest.mark.parametrize(
    ("given", "asks", "does_not"),
    [("ask", ["a", "b"], []), (["a"], ["a"], ["b"]), ("never", [], ["a"]), (None, [], ["a"])],
)
def test_tools_need_approval(file: Path, given: Any, asks: list[str], does_not: list[str]) -> None:
    (server,) = load(file, s={"command": "x", **({} if given is None else {"approval": given})})
    assert [server.approval_of(tool) for tool in asks + does_not] == ["ask"] * len(asks) + ["never"] * len(does_not)


def test_prefixes_are_unique_and_leave_room_for_the_names_of_tools(file: Path) -> None:
    servers = load(file, **{"a b": {"command": "x"}, "a.b": {"command": "x"}, "l" * 60: {"command": "x"}})
    prefixes = [server.prefix for server in servers]
    assert len(set(prefixes)) == 3
    assert max(map(len, prefixes)) <= 32


def test_unknown_keys_are_told_and_ignored(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_text('{"inputs": [], "mcpServers": {"s": {"command": "x", "timeuot": 3, "alwaysAllow": []}}}')
    with caplog.at_level(logging.WARNING):
        assert len(load_mcp_config(file, {})) == 1
    assert [record.message.replace(str(file), "F") for record in caplog.records] == [
        "F: inputs is not a key that this server knows, and is ignored",
        "F: mcpServers.s.timeuot (is timeout meant?) is not a key that this server knows, and is ignored",
        "F: mcpServers.s.alwaysAllow is not a key that this server knows, and is ignored",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", ":1:2: this is not JSON: Expecting property name enclosed in double quotes."),
        ("[" * 100_000, ": this is not JSON that can be read: it is nested too deeply."),
        ("[]", ": the file is a list and must be an object."),
        ("{}", ': mcpServers is missing: {"mcpServers": {"name": {"command": …}}} is the form.'),
        ('{"servers": {}}', ": mcpServers is missing; “servers” is the form of another program: rename it."),
        ('{"mcpServers": []}', ": mcpServers is a list and must be an object."),
    ],
)
def test_a_file_that_is_wrong_is_told_in_one_line(file: Path, text: str, reason: str) -> None:
    file.write_text(text)
    with pytest.raises(McpConfigError) as error:
        load_mcp_config(file, {})
    assert str(error.value) == f"{file}{reason}"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "mcpServers.s must have either command (a program) or url (an address)."),
        ({"command": "x", "url": "http://h"}, "mcpServers.s must have either command (a program) or url (an address)."),
        (
            {"comand": "x"},
            "mcpServers.s must have either command (a program) or url (an address); "
            "comand is no key, perhaps command is meant.",
        ),
        ({"command": 3}, "mcpServers.s.command is 3 and must be a string."),
        ({"command": ""}, "mcpServers.s.command is empty and must be a program."),
        ({"command": "x", "args": "y"}, "mcpServers.s.args is 'y' and must be a list of strings."),
        ({"command": "x", "args": ["y", 1]}, "mcpServers.s.args[1] is 1 and must be a string."),
        ({"command": "x", "env": {"A": None}}, "mcpServers.s.env.A is null and must be a string."),
        (
            {"command": "x", "env": {"A": "${NONE}"}},
            "mcpServers.s.env.A needs the variable NONE, which the environment does not have.",
        ),
        ({"command": "x", "type": "http"}, "mcpServers.s.type is 'http', which does not go with a command."),
        ({"url": "http://h", "type": "ws"}, "mcpServers.s.type is 'ws' and must be stdio, http or sse."),
        ({"url": "h/mcp"}, "mcpServers.s.url is 'h/mcp' and must be an address that begins with http:// or https://."),
        ({"url": "http://h", "headers": {"A": "a\nb"}}, "mcpServers.s.headers.A is not a header that HTTP can carry."),
        (
            {"command": "x", "timeout": 60000},
            "mcpServers.s.timeout is 60000 and must be a number of seconds, 3600 at most.",
        ),
        (
            {"command": "x", "approval": True},
            'mcpServers.s.approval is true and must be "ask", "never" or a list of names of tools.',
        ),
        ({"command": "x", "disabled": "no"}, "mcpServers.s.disabled is 'no' and must be true or false."),
    ],
)
def test_an_entry_that_is_wrong_is_told_with_its_place(file: Path, given: dict[str, Any], reason: str) -> None:
    with pytest.raises(McpConfigError) as error:
        load(file, s=given)
    assert str(error.value) == f"{file}: {reason}"


def test_a_file_that_is_not_there_is_told(file: Path) -> None:
    with pytest.raises(McpConfigError, match="No such file or directory"):
        load_mcp_config(file, {})
