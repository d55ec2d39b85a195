"""The setting `loop`: where the agent's own loop comes from.

Rule: `MODULE:FUNCTION`, a Python file (the folder's `agent.py`), or a prefix and the address of an agent that runs
      elsewhere. A table of `agent.toml` adds options to an address.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import BeforeValidator
from pydantic_settings import NoDecode

from a2a_canvas.server.settings.value_types import without_password

AGUI: Final = "agui:"
A2A: Final = "a2a:"
PREFIXES: Final = (AGUI, A2A)
"""What precedes the address of an agent that runs elsewhere, by its protocol."""

FORMS: Final = "MODULE:FUNCTION such as reef.agent:agent, agui:URL or a2a:URL"
_EXAMPLE: Final = "http://127.0.0.1:8001/"


@dataclass(frozen=True, slots=True)
class ModuleLoop:
    """A function of a module."""

    module: str
    function: str

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


@dataclass(frozen=True, slots=True)
class FileLoop:
    """The function `agent` of a Python file."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class RemoteLoop:
    """An agent that runs elsewhere.

    Attributes:
        prefix: one of `PREFIXES`.
        options: those that the operator has set: `restart`, `artifacts`, `timeout`.
    """

    prefix: str
    url: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.prefix}{self.url}"


class LoopKeyError(ValueError):
    """A key of the table is wrong."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


LoopOrigin = ModuleLoop | FileLoop | RemoteLoop


def parse_loop(value: Any) -> LoopOrigin | None:
    """Where a loop comes from, by the value of the setting.

    Raises:
        ValueError: it has none of the forms; the message says what it must be.
    """
    match value:
        case None | ModuleLoop() | FileLoop() | RemoteLoop():
            return value
        case Path():
            return FileLoop(value)
        case str():
            return _parse_text(value.strip())
        case Mapping():
            return _parse_table(value)
        case _:
            raise ValueError(f"must be {FORMS}, in quotation marks")


def display_text(value: Any) -> str:
    """A value of the setting in a message, without its password: of a table the address."""
    text = str(value.get("url", "[loop]") if isinstance(value, Mapping) else value)
    prefix = next(filter(text.startswith, PREFIXES), "")
    return prefix + without_password(text.removeprefix(prefix))


def _parse_text(text: str) -> LoopOrigin:
    for prefix in PREFIXES:
        if text.startswith(prefix):
            return RemoteLoop(prefix, _address(prefix, text.removeprefix(prefix)))
    if re.match(r"https?:", text):
        address = without_password(text)
        raise ValueError(f"must say how the agent is spoken to: {AGUI}{address} or {A2A}{address}")
    if not (found := re.fullmatch(r"([\w-]+(?:\.[\w-]+)*):([^\W\d]\w*)", text)):
        raise ValueError(f"must be {FORMS}")
    return ModuleLoop(*found.groups())


def _address(prefix: str, url: str) -> str:
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not parts.username
    except ValueError:
        whole = False
    if not whole:
        raise ValueError(f"must be {prefix} and an address such as {_EXAMPLE}, without a password (see agent_tokens)")
    return url


def _parse_table(table: Mapping[str, Any]) -> RemoteLoop:
    if unknown := table.keys() - {"url", *_OPTIONS}:
        raise LoopKeyError(min(unknown), f"[loop] has no key {min(unknown)}; its keys are url, {', '.join(_OPTIONS)}")
    origin = _parse_url(table.get("url"))
    options = {name: value for name, value in table.items() if name in _OPTIONS}
    for name, value in options.items():
        is_valid, needed = _OPTIONS[name]
        if not is_valid(value):
            raise LoopKeyError(name, f"{name} of [loop] must be {needed}")
    return RemoteLoop(origin.prefix, origin.url, options)


def _parse_url(url: Any) -> RemoteLoop:
    try:
        origin = _parse_text(url) if isinstance(url, str) else None
    except ValueError as error:
        raise LoopKeyError("url", str(error)) from None
    if not isinstance(origin, RemoteLoop):
        raise LoopKeyError(
            "url", f'[loop] must have a url such as "{AGUI}{_EXAMPLE}"; write loop = "MODULE:FUNCTION" otherwise'
        )
    return origin


def _is_artifacts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, str) and each for pair in value.items() for each in pair)


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf


_OPTIONS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "restart": (lambda value: isinstance(value, bool), "true or false"),
    "artifacts": (_is_artifacts, 'a table of file names, such as {"state.document" = "report.md"}'),
    "timeout": (_is_seconds, "a number of seconds"),
}
"""The options of an agent that runs elsewhere: whether a value is one, and what it must be."""

Loop = Annotated[LoopOrigin | None, NoDecode, BeforeValidator(parse_loop)]
