"""The tools of a Python file: its functions with `@tool`.

Rule: an error is one line, with the file, the line in it, and what to do.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb

from a2a_canvas.tools.functions.function_tool import FunctionTool
from a2a_canvas.tools.functions.python_tool import PythonTool, ToolDefinitionError

_NAME = re.compile("[A-Za-z0-9_-]{1,64}")
"""The tool names that providers accept."""


class ToolFileError(Exception):
    """A file has no usable tools; `str()` is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class PythonFile:
    """The `ToolSource` of a file. Its tools exist from the start."""

    name: str
    found: Sequence[FunctionTool]

    def tools(self) -> Sequence[FunctionTool]:
        return self.found

    async def wait_for(self, name: str) -> str:
        return ""

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass


def load_python_file(path: Path) -> PythonFile:
    """Import a file. It may import the files beside it.

    Raises:
        ToolFileError: it cannot be imported, or has no tools.
    """
    try:
        found = tuple(_tools_of(_import_file(path)))
    except (Exception, SystemExit) as error:
        raise ToolFileError(" ".join(_fault(path, error).split())) from error
    if not found:
        raise ToolFileError(f"{path} has no tools. Write @tool above the functions that the agent may call.")
    for tool in found:
        if not _NAME.fullmatch(tool.name):
            raise ToolFileError(f"{path}: a tool cannot be called {tool.name!r}. Take ASCII letters, digits, _ and -.")
    return PythonFile(str(path), found)


def _import_file(path: Path) -> object:
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as Python does for a script
    # The file may have the name of another module: tools, types, mcp.
    spec = spec_from_file_location(f"agent_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ToolFileError(f"{path} is not a Python file. Its name must end with .py.")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _tools_of(module: object) -> list[FunctionTool]:
    values = [value.tool if isinstance(value, PythonTool) else value for value in vars(module).values()]
    return list({value.name: value for value in values if isinstance(value, FunctionTool)}.values())


def _fault(path: Path, error: BaseException) -> str:
    match error:
        case ToolFileError():
            return str(error)
        case ToolDefinitionError():
            return str(error).replace(str(path.absolute()), str(path))
        case SyntaxError():
            line = f", line {error.lineno}" if error.lineno else ""
            return f"{_display_path(path, error.filename or str(path))}{line}: {error.msg}. Correct it."
        case ModuleNotFoundError():
            root = (error.name or "").partition(".")[0]
            return f"{_place(path, error)}: {error}. Install it where a2a-canvas runs: pip install {root}"
        case _:
            return f"{_place(path, error)}: {type(error).__name__}: {error}. It must be possible to import the file."


def _place(path: Path, error: BaseException) -> str:
    """The last line executed in the user's own files."""
    folder = path.resolve().parent
    lines = [each for each in extract_tb(error.__traceback__) if Path(each.filename).resolve().is_relative_to(folder)]
    return f"{_display_path(path, lines[-1].filename)}, line {lines[-1].lineno}" if lines else str(path)


def _display_path(path: Path, name: str) -> Path:
    """The path of a file as the user wrote it, also of one beside it."""
    folder = path.resolve().parent
    file = Path(name).resolve()
    return path.parent / file.relative_to(folder) if file.is_relative_to(folder) else file
