"""Loads the agent's own loop, as the settings name it: from Python, or as the client of an agent that runs elsewhere.

Rule: an error is one line that says what to write or to install.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from inspect import isasyncgenfunction, iscoroutinefunction
from pathlib import Path
from types import ModuleType
from typing import Any, Final, assert_never

from a2a_canvas.server.agent.loops.agent_function import (
    AgentDefinitionError,
    AgentFunction,
    adapter_of,
    agent,
    agent_function,
)
from a2a_canvas.server.settings.loop_setting import A2A, AGUI, FileLoop, LoopOrigin, ModuleLoop, RemoteLoop
from a2a_canvas.server.settings.settings import Settings, SettingsError
from a2a_canvas.server.tool_sources.framework_extras import find_fault, version_of
from a2a_canvas.server.tool_sources.python_import import PythonImportError, import_by_name, import_file

_PROTOCOLS: Final[Mapping[str, tuple[str, str]]] = {
    AGUI: ("agui_agents.agui_loop", "agui_agent"),
    A2A: ("a2a_agents.a2a_loop", "a2a_agent"),
}
"""The function that makes a loop of an address, by prefix: its module, imported when it is used, and its name."""


def load_loop(settings: Settings) -> AgentFunction | None:
    """The loop that the settings name; None if they name none.

    Raises:
        SettingsError: it cannot be used.
    """
    if settings.loop is None:
        return None
    try:
        loop = _load(settings.loop, settings)
    except (PythonImportError, AgentDefinitionError) as error:
        raise SettingsError(" ".join(str(error).split())) from error
    if sentence := find_fault(loop.package):
        raise SettingsError(f"{settings.loop}: {sentence}")
    return loop


async def probe_agent(loop: AgentFunction | None) -> str:
    """Why an agent that runs elsewhere cannot be used now; empty if it can, or runs here."""
    return await loop.probe() if loop and loop.probe else ""


def describe_agent(settings: Settings, loop: AgentFunction | None) -> str:
    """That the agent can be served, and with which loop of its own."""
    own = describe_loop(settings, loop)
    return f"{settings.agent or 'The agent'} can be served{f' with its loop {own}' if own else ''}."


def describe_loop(settings: Settings, loop: AgentFunction | None) -> str:
    """Where a loop comes from, and the framework that it uses, with its version; empty without a loop."""
    if loop is None:
        return ""
    framework = f" ({f'{loop.package} {version_of(loop.package)}'.strip()})" if loop.package else ""
    return f"{settings.loop or loop.name}{framework}"


def _load(origin: LoopOrigin, settings: Settings) -> AgentFunction:
    match origin:
        case FileLoop(path):
            return _function_of(import_file(path), "agent", str(path))
        case ModuleLoop(module, function):
            return _function_of(import_by_name(module, _folders(settings)), function, module)
        case RemoteLoop():
            return _remote_loop(origin, settings.agent_tokens)
        case _:
            assert_never(origin)


def _folders(settings: Settings) -> Sequence[Path]:
    """Where modules are looked for, besides the installed ones."""
    return (Path(), *([settings.agent.parent] if settings.agent else ()))


def _function_of(module: ModuleType, name: str, place: str) -> AgentFunction:
    value = getattr(module, name, None)
    if value is None or value is agent:  # the decorator, imported
        raise AgentDefinitionError(f"{place} has no function {name}. {_suggestion(module, name)}")
    try:
        return agent_function(value)
    except AgentDefinitionError as error:
        raise AgentDefinitionError(f"{place}: {error}") from None


def _suggestion(module: ModuleType, name: str) -> str:
    """What to write for a function that a module does not have."""
    own = {each: value for each, value in vars(module).items() if not each.startswith("_")}
    for each in get_close_matches(name, [each for each, value in own.items() if _is_agent(value)], n=1):
        return f"Did you mean {each}?"
    for each in sorted(own, key=lambda each: name not in each):  # as in root_agent
        if not isinstance(own[each], type) and (adapter := adapter_of(own[each])):
            return f"Write: from a2a_canvas.frameworks import {adapter}; {name} = {adapter}({each})"
    return f"Write: async def {name}(turn: Turn) -> None"


def _is_agent(value: object) -> bool:
    return isinstance(value, AgentFunction) or iscoroutinefunction(value) or isasyncgenfunction(value)


def _remote_loop(origin: RemoteLoop, tokens: Mapping[str, str]) -> AgentFunction:
    module, name = _PROTOCOLS[origin.prefix]
    make: Any = getattr(import_module(f"{__package__}.{module}"), name)
    if unknown := origin.options.keys() - inspect.signature(make).parameters.keys():
        raise AgentDefinitionError(f"{origin}: {min(unknown)} of [loop] is not for {origin.prefix} agents. Remove it.")
    try:
        loop: AgentFunction = make(origin.url, tokens=tokens, **origin.options)
    except AgentDefinitionError as error:
        raise AgentDefinitionError(f"{origin}: {error}") from None
    return loop
