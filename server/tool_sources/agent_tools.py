"""The agent's own tools: their sources by the settings, and the tools available now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from a2a_canvas.server.settings.settings import Settings, SettingsError
from a2a_canvas.tools.functions.function_tool import AnyTool, ToolSource
from a2a_canvas.tools.registry import SCRIPT_TOOLS
from a2a_canvas.tools.tool import Tool

MCP_EXTRA: Final = "pip install 'a2a-canvas[mcp]'"
"""The command that installs the library of MCP."""


def tool_sources(settings: Settings) -> tuple[ToolSource, ...]:
    """The sources of the agent's own tools.

    Raises:
        SettingsError: one of them is unusable.
    """
    files = _python_files(settings.tools) if settings.tools else ()
    servers = _mcp_servers(settings.mcp_config) if settings.mcp_config else ()
    agents = _other_agents(settings) if settings.agents else ()
    return (*files, *servers, *agents)


def _python_files(paths: Sequence[Path]) -> Iterator[ToolSource]:
    from a2a_canvas.server.tool_sources.python_file import ToolFileError, load_python_file

    taken = {tool.name: "the agent itself" for tool in SCRIPT_TOOLS}
    for path in paths:
        try:
            source = load_python_file(path)
        except ToolFileError as error:
            raise SettingsError(str(error)) from error
        for tool in source.tools():
            if tool.name in taken:
                raise SettingsError(
                    f'{path} has a tool {tool.name}, as {taken[tool.name]} has: give it another name, @tool(name="…").'
                )
            taken[tool.name] = str(path)
        yield source


def _mcp_servers(config: Path) -> Sequence[ToolSource]:
    from a2a_canvas.server.tool_sources.mcp_servers.config import McpConfigError, load_mcp_config

    try:
        from a2a_canvas.server.tool_sources.mcp_servers.source import mcp_sources
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise SettingsError(f"{config} needs a library that is not installed: {MCP_EXTRA}") from None
    try:
        return mcp_sources(load_mcp_config(config))
    except McpConfigError as error:
        raise SettingsError(str(error)) from None


def _other_agents(settings: Settings) -> Sequence[ToolSource]:
    from a2a_canvas.server.tool_sources.remote_agents.agents_source import RemoteAgents

    return (RemoteAgents(settings.agents, settings.agent_tokens),)


def check_programs(config: Path) -> None:
    """Check that the programs of MCP servers exist. Without `--reload`, an agent runs without them, and retries.

    Raises:
        SettingsError: one is missing.
    """
    from a2a_canvas.server.tool_sources.mcp_servers.config import load_mcp_config
    from a2a_canvas.server.tool_sources.mcp_servers.transports import describe_missing_program, missing_program

    for server in load_mcp_config(config):
        if program := missing_program(server):
            place = f"{config}: mcpServers.{server.name}.command"
            raise SettingsError(f"{place}: {describe_missing_program(program)}.")


def all_tools(own: Sequence[Tool], sources: Sequence[ToolSource]) -> list[AnyTool]:
    """The tools available now; of two with the same name, the first."""
    names = {tool.name for tool in own}
    return [*own, *(tool for tool in tools_from(sources) if tool.name not in names)]


def tools_from(sources: Sequence[ToolSource]) -> list[AnyTool]:
    found: dict[str, AnyTool] = {}
    for tool in (tool for source in sources for tool in source.tools()):
        found.setdefault(tool.name, tool)
    return list(found.values())


async def find_tool(sources: Sequence[ToolSource], name: str) -> AnyTool | str:
    """A tool, once its source has it; or why it is missing."""
    reasons = await asyncio.gather(*(source.wait_for(name) for source in sources))
    found = (tool for tool in tools_from(sources) if tool.name == name)
    return next(found, " and ".join(filter(None, reasons)))
