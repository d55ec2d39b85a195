"""The frameworks whose agents can be the loop: which extra installs one, and which version it needs.

Rule: the versions are those that the distribution a2a-canvas declares for its extras.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

EXTRAS: Final[Mapping[str, str]] = {
    "pydantic_ai": "pydantic-ai",
    "langgraph": "langgraph",
    "agents": "openai-agents",
    "google.adk": "google-adk",
}
"""The extras by the modules of the frameworks."""


_PARTS: Final[Mapping[str, str]] = {
    "google.genai": "google-adk",
    "langchain_core": "langgraph",
    "pydantic_graph": "pydantic-ai",
}
"""The extras by modules that a framework brings with it."""


def how_to_install(module: str) -> str:
    """What the user must do if there is no such module."""
    for framework, extra in (*EXTRAS.items(), *_PARTS.items()):
        if module == framework or module.startswith(f"{framework}."):
            return upgrade_advice(_requirement(extra)[0]) or f"Install it where a2a-canvas runs: {_command(extra)}"
    return f"Install it where a2a-canvas runs: pip install {module.partition('.')[0]}"


def upgrade_advice(distribution: str) -> str:
    """Why an installed framework is too old, and what to do; empty if it is not, or is not installed."""
    for extra in EXTRAS.values():
        name, least = _requirement(extra)
        if name == distribution and (found := version_of(name)) and _release(found) < _release(least):
            return f"{name} {found} is too old, because a2a-canvas needs {least}: {_command(extra)} --upgrade"
    return ""


def find_fault(distribution: str) -> str:
    """Why a framework cannot be imported, and what to do; empty if it has been, or is not one of ours."""
    for module, extra in EXTRAS.items():
        if _requirement(extra)[0] == distribution:
            try:
                import_module(module)
            except ImportError as error:
                return f"{error}. {how_to_install(module)}"
    return upgrade_advice(distribution)


def advise_upgrades(named: str = "") -> Iterator[str]:
    """The `upgrade_advice` of imported frameworks.

    Args:
        named: the module that an error names: its framework is the first.
    """
    for module in sorted(EXTRAS.keys() & sys.modules.keys(), key=lambda each: not f"{named}.".startswith(f"{each}.")):
        if sentence := upgrade_advice(_requirement(EXTRAS[module])[0]):
            yield sentence


def version_of(distribution: str) -> str:
    """The version of a distribution; empty if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _command(extra: str) -> str:
    return f"pip install 'a2a-canvas[{extra}]'"


def _requirement(extra: str) -> tuple[str, str]:
    """The distribution of an extra, and its lowest version."""
    for line in requires("a2a-canvas") or ():
        found = re.match(r"([\w.-]+).*>=([\d.]+)", line)
        if found and line.endswith(f'extra == "{extra}"'):
            return found[1], found[2]
    raise LookupError(f"a2a-canvas declares no extra {extra}")


def _release(number: str) -> tuple[int, ...]:
    """The numbers of a version, without zeros at the end and a suffix such as `b1`."""
    found = re.match(r"\d+(\.\d+)*", re.sub(r"(\.0+)+(?![.\d])", "", number))
    return tuple(map(int, found[0].split("."))) if found else ()
