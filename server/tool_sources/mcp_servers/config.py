"""MCP servers, read from the common `mcpServers` form of JSON (`mcp.json`). Pure, but for `load_mcp_config`.

Rule 1: an error is one line: the file, the place in it, and what it must contain.
Rule 2: `${VAR}` and `${VAR:-default}` in any string are replaced by the environment's value.
Rule 3: relative paths are relative to the file's folder, and a server runs in it, unless it has a `cwd`.
Rule 4: unknown keys belong to other programs that share the file: they are logged and ignored.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from a2a_canvas.server.tool_sources.mcp_servers.tool_names import MAX_PREFIX, unique_names
from a2a_canvas.store.text.wording import choice, format_value, nearest

logger = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 60.0
MAX_TIMEOUT = 3600.0

Http = Literal["http", "sse", "auto"]

_TYPES: Mapping[str, Http | Literal["stdio"]] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
_COMMON = ("type", "disabled", "timeout", "approval")
_STDIO = ("command", "args", "env", "cwd")
_HTTP = ("url", "headers")
_DESCRIPTIVE = ("$schema", "name", "title", "description", "icon", "enabled", "transport")
"""Keys of other programs that do not matter here."""

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class McpConfigError(Exception):
    """The file cannot be used; the text is one line (rule 1)."""


@dataclass(frozen=True, slots=True)
class Command:
    """A server that is a program, reached over its stdin and stdout.

    Attributes:
        env: added to the few variables that every server gets.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "."


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server at an address. `kind` is the transport: streamable HTTP, SSE, or whichever of them answers."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: Http = "auto"


@dataclass(frozen=True, slots=True)
class McpServer:
    """One server of the file.

    Attributes:
        name: as the file has it.
        prefix: of its tools' names; unique in the file.
        timeout: seconds that a call may take without progress.
        approval: the tools whose calls the user must approve, or all.
    """

    name: str
    prefix: str
    connection: Command | Endpoint
    timeout: float = DEFAULT_TIMEOUT
    approval: frozenset[str] | Literal["all"] = frozenset()

    def approval_of(self, tool: str) -> Literal["never", "ask"]:
        return "ask" if self.approval == "all" or tool in self.approval else "never"


def load_mcp_config(path: Path, environ: Mapping[str, str] | None = None) -> tuple[McpServer, ...]:
    """The enabled servers of a file.

    Args:
        environ: the variables for `${VAR}`; by default those of this process.

    Raises:
        McpConfigError: the file is unreadable or wrong.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise McpConfigError(f"{path}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise McpConfigError(f"{path}: this is not text in UTF-8.") from None
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise McpConfigError(f"{path}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}.") from None
    except RecursionError:
        raise McpConfigError(f"{path}: this is not JSON that can be read: it is nested too deeply.") from None
    servers, unknown = read_mcp_config(content, str(path), os.environ if environ is None else environ)
    for place in unknown:
        logger.warning("%s: %s is not a key that this server knows, and is ignored", path, place)
    return servers


def read_mcp_config(
    content: object, file: str, environ: Mapping[str, str]
) -> tuple[tuple[McpServer, ...], tuple[str, ...]]:
    """The servers in a file's JSON, and the places of its unknown keys.

    Raises:
        McpConfigError: see `load_mcp_config`.
    """
    reader = _EntryReader(file, Path(file).absolute().parent, environ)
    top = reader.mapping("the file", content)
    if "mcpServers" not in top:
        raise reader.error("mcpServers", "is missing" + _form_hint(top))
    entries = reader.mapping("mcpServers", top["mcpServers"])
    prefixes = unique_names({name: (name,) for name in entries}, MAX_PREFIX)
    servers = tuple(server for name in entries if (server := reader.server(name, prefixes[name], entries[name])))
    return servers, (*(key for key in top if key not in ("mcpServers", "$schema")), *reader.unknown)


def _form_hint(top: Mapping[str, Any]) -> str:
    if isinstance(top.get("servers"), dict):
        return "; “servers” is the form of another program: rename it"
    return ': {"mcpServers": {"name": {"command": …}}} is the form'


class _EntryReader:
    """Reads the entries of one file, and collects its unknown keys."""

    def __init__(self, file: str, folder: Path, environ: Mapping[str, str]) -> None:
        self.unknown: list[str] = []
        self._file = file
        self._folder = folder
        self._environ = environ

    def error(self, place: str, reason: str) -> McpConfigError:
        return McpConfigError(f"{self._file}: {place} {reason}.")

    def server(self, name: str, prefix: str, value: object) -> McpServer | None:
        place = f"mcpServers.{name}"
        entry = self.mapping(place, value)
        if self._flag(place, entry, "disabled", False) or not self._flag(place, entry, "enabled", True):
            return None
        connection = self._connection(place, entry)
        self._note_unknown(place, entry, _STDIO if isinstance(connection, Command) else _HTTP)
        return McpServer(name, prefix, connection, self._timeout(place, entry), self._approval(place, entry))

    def _note_unknown(self, place: str, entry: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in entry:
            if key not in (*_COMMON, *known, *_DESCRIPTIVE):
                meant = nearest(key, (*_COMMON, *known))
                self.unknown.append(f"{place}.{key}" + (f" (is {choice(meant)} meant?)" if meant else ""))

    def _connection(self, place: str, entry: Mapping[str, Any]) -> Command | Endpoint:
        has_command, has_url = "command" in entry, "url" in entry
        if has_command == has_url:
            meant = [f"{key} is no key, perhaps {choice(near)} is meant" for key in entry if (near := _misspelt(key))]
            raise self.error(place, "; ".join(("must have either command (a program) or url (an address)", *meant)))
        kind = self._kind(place, entry, "stdio" if has_command else "auto")
        if (kind == "stdio") != has_command:
            raise self.error(
                f"{place}.type",
                f"is {format_value(entry.get('type'))}, which does not go with {_connection_key(has_url)}",
            )
        return self._command(place, entry) if has_command else self._endpoint(place, entry, kind)  # type: ignore[arg-type]

    def _kind(self, place: str, entry: Mapping[str, Any], default: str) -> str:
        key = "type" if "type" in entry else "transport"
        value = entry.get(key, default)
        if value == default:
            return default
        if value not in _TYPES:
            raise self.error(f"{place}.{key}", f"is {format_value(value)} and must be stdio, http or sse")
        return _TYPES[value]

    def _command(self, place: str, entry: Mapping[str, Any]) -> Command:
        args = entry.get("args", [])
        if not isinstance(args, list):
            raise self.error(f"{place}.args", f"is {format_value(args)} and must be a list of strings")
        command = self._text(f"{place}.command", entry["command"])
        if not command:
            raise self.error(f"{place}.command", "is empty and must be a program")
        return Command(
            self._path(command) if command.startswith((".", "~")) else command,
            tuple(self._text(f"{place}.args[{n}]", each) for n, each in enumerate(args)),
            self._texts(f"{place}.env", entry.get("env", {})),
            self._path(self._text(f"{place}.cwd", entry.get("cwd", "."))),
        )

    def _endpoint(self, place: str, entry: Mapping[str, Any], kind: Http) -> Endpoint:
        url = self._text(f"{place}.url", entry["url"])
        try:
            parts = urlsplit(url)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise self.error(
                f"{place}.url", f"is {format_value(url)} and must be an address that begins with http:// or https://"
            )
        headers = self._texts(f"{place}.headers", entry.get("headers", {}))
        for name, value in headers.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not re.fullmatch(r"[^\x00-\x1f\x7f]*", value):
                raise self.error(f"{place}.headers.{name}", "is not a header that HTTP can carry")
        return Endpoint(url, headers, kind)

    def _path(self, value: str) -> str:
        return str(self._folder / Path(value).expanduser())

    def _timeout(self, place: str, entry: Mapping[str, Any]) -> float:
        value = entry.get("timeout", DEFAULT_TIMEOUT)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_TIMEOUT:
            reason = f"is {format_value(value)} and must be a number of seconds, {MAX_TIMEOUT:.0f} at most"
            raise self.error(f"{place}.timeout", reason)
        return float(value)

    def _approval(self, place: str, entry: Mapping[str, Any]) -> frozenset[str] | Literal["all"]:
        match entry.get("approval", "never"):
            case "ask":
                return "all"
            case "never":
                return frozenset()
            case [*names] if all(isinstance(name, str) for name in names):
                return frozenset(names)
            case value:
                reason = f'is {format_value(value)} and must be "ask", "never" or a list of names of tools'
                raise self.error(f"{place}.approval", reason)

    def _flag(self, place: str, entry: Mapping[str, Any], key: str, default: bool) -> bool:
        value = entry.get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"{place}.{key}", f"is {format_value(value)} and must be true or false")
        return value

    def mapping(self, place: str, value: object) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.error(place, f"is {format_value(value)} and must be an object")
        return value

    def _texts(self, place: str, value: object) -> dict[str, str]:
        return {key: self._text(f"{place}.{key}", value) for key, value in self.mapping(place, value).items()}

    def _text(self, place: str, value: object) -> str:
        if not isinstance(value, str) or "\0" in value:
            raise self.error(place, f"is {format_value(value)} and must be a string")
        return "".join(self._expand(place, value))

    def _expand(self, place: str, text: str) -> Iterator[str]:
        end = 0
        for match in _VARIABLE.finditer(text):
            name, default = match.groups()
            value = self._environ.get(name) or default or self._environ.get(name)
            if value is None:
                raise self.error(place, f"needs the variable {name}, which the environment does not have")
            yield from (text[end : match.start()], value)
            end = match.end()
        yield text[end:]


def _misspelt(key: str) -> tuple[str, ...]:
    known = (*_COMMON, *_STDIO, *_HTTP)
    return () if key in (*known, *_DESCRIPTIVE) else tuple(nearest(key, known))


def _connection_key(has_url: bool) -> str:
    return "a url" if has_url else "a command"
