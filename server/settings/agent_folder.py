"""An agent is a folder: settings in its `agent.toml`, and files of the usual names.

Rule 1: a path in `agent.toml` is one in the folder. The database is there, too, unless it is set: a folder that is
        served again, from wherever, finds its tasks.
Rule 2: a file of a usual name is used if there is one and `agent.toml` does not name another.
Rule 3: an error is one line with the file, the line in it, and what to do.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AGENT_FILE = "agent.toml"

USUAL_FILES: Mapping[str, str] = {
    "instructions": "instructions.md",
    "tools": "tools.py",
    "loop": "agent.py",
    "mcp_config": "mcp.json",
    "agent_card": "agent_card.json",
}
"""The names of files, by the settings that name others."""

SHORT_KEYS: Mapping[str, str] = {"mcp": "mcp_config"}
"""Other names of settings in `agent.toml`."""

DATABASE = "a2a-canvas.db"
SCRIPT = "script:"
SQLITE = "sqlite:///"


class FolderError(Exception):
    """The folder of an agent cannot be used; `str()` is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """What a folder sets.

    Attributes:
        values: by setting.
        places: where in `agent.toml` a setting, or a key of its table (`loop.url`), stands: the file, and its line.
    """

    values: Mapping[str, Any]
    places: Mapping[str, str]


def read_folder(folder: Path, settings: Collection[str]) -> AgentFolder:
    """What a folder sets.

    Args:
        settings: the names of all settings that can be set in `agent.toml`.

    Raises:
        FolderError: it is no agent's folder, or its `agent.toml` is broken or names what is no setting.
    """
    file = folder / AGENT_FILE
    try:
        usual = {field: folder / name for field, name in USUAL_FILES.items() if (folder / name).is_file()}
        if not usual and not file.is_file():
            raise FolderError(_explain_no_agent(folder))
    except OSError as error:
        raise FolderError(f"The folder {folder} cannot be read: {error.strerror}.") from None
    text = _read(file) if file.is_file() else ""
    table = _parse(file, text)
    keys = {_setting(file, text, key, value, settings): key for key, value in table.items()}
    if twice := table.keys() - keys.values():
        raise FolderError(f"{_place(file, text, min(twice))}: {min(twice)} is set twice. Leave one out.")
    values = {field: _resolve_paths(folder, field, table[key]) for field, key in keys.items()}
    places = {field: _place(file, text, key) for field, key in keys.items()}
    for field, key in keys.items():
        inner = table[key] if isinstance(table[key], dict) else {}
        places |= {f"{field}.{name}": _place(file, text, key, name) for name in inner}
    return AgentFolder({"database": f"{SQLITE}{folder / DATABASE}"} | usual | values, places)


def is_database_file(value: str) -> bool:
    """Whether a database is named by the path of its file. A word alone is more likely a misspelt `memory`, and what
    has one of these characters a misspelt address, whose password must not become the name of a file."""
    return bool(re.fullmatch(r"[^:@?#]*(/|[^/]\.)[^:@?#/]+", value))


def _explain_no_agent(folder: Path) -> str:
    if address := re.fullmatch("(https?:/)(.*)", str(folder)):  # a path has one slash where an address has two
        named = f"{address[1]}/{address[2]}"
        return f"{named} is not a folder. Addresses of agents go into A2A_CANVAS_AGENTS (--agent URL)."
    if not folder.exists():
        return f"There is no folder {folder}. To make an agent there: a2a-canvas new {folder}"
    if not folder.is_dir():
        return f"{folder} is a file. Name the folder of the agent."
    names = ", ".join((AGENT_FILE, *USUAL_FILES.values()))
    return (
        f"The folder {folder} is not an agent folder: it has none of {names}. To make an agent: a2a-canvas new my-agent"
    )


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FolderError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise FolderError(f"{file} is not UTF-8: byte {error.start} is {error.object[error.start]:#x}.") from None


def _parse(file: Path, text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error), re.DOTALL)
        why, line = (found[1], found[2]) if found else (str(error), None)
        number = line or len(text.splitlines()) or 1
        raise FolderError(f"{file}, line {number}: {why}. It must be TOML: key = value, text in quotes.") from None
    except RecursionError:
        raise FolderError(f"{file} is nested too deeply.") from None


def _setting(file: Path, text: str, key: str, value: Any, settings: Collection[str]) -> str:
    """The setting that a key names, with hyphens or underscores."""
    name = key.replace("-", "_").replace(".", "_")
    name = SHORT_KEYS.get(name, name)
    if name in settings:
        return name
    if isinstance(value, dict):
        raise FolderError(
            f"{_place(file, text, key)}: the settings stand at the top, not below [{key}]. Remove that line."
        )
    close = difflib.get_close_matches(name, [*settings, *SHORT_KEYS], n=1)
    hint = f"Did you mean {close[0]}?" if close else "a2a-canvas serve --help lists the settings."
    raise FolderError(f"{_place(file, text, key)}: {key} is not a setting. {hint}")


def _place(file: Path, text: str, key: str, inner: str = "") -> str:
    """The file, and the line in which a key, or one of its table, stands, as far as that is easy to tell."""
    found = re.search(rf"^[ \t\[]*[\"']?{re.escape(key)}\b", text, re.MULTILINE)
    if found and inner:
        pattern = re.compile(rf"(?:^[ \t]*|[{{,.][ \t]*)[\"']?{re.escape(inner)}\b", re.MULTILINE)
        found = pattern.search(text, found.end()) or found
    return f"{file}, line {text.count(chr(10), 0, found.start()) + 1}" if found else str(file)


def _resolve_paths(folder: Path, field: str, value: Any) -> Any:
    """A value whose paths are those in the folder (rule 1)."""
    if isinstance(value, list):
        return [_resolve_paths(folder, field, each) for each in value]
    if not isinstance(value, str) or not value:
        return value
    if field in USUAL_FILES and field != "loop":  # which is no path if it is set
        return folder / Path(value).expanduser()
    if field == "model" and value.startswith(SCRIPT):
        return f"{SCRIPT}{folder / Path(value.removeprefix(SCRIPT)).expanduser()}"
    if field == "database" and (value.startswith(SQLITE) or is_database_file(value)):
        return f"{SQLITE}{folder / Path(value.removeprefix(SQLITE)).expanduser()}"
    return value
