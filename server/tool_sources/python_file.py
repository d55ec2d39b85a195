"""The tools of a Python file: its functions with `@tool`.

Rule: an error is one line, with the file, the line in it, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from a2a_canvas.server.tool_sources.python_import import PythonImportError, import_file
from a2a_canvas.tools.functions.function_tool import FunctionTool
from a2a_canvas.tools.functions.python_tool import PythonTool

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
        found = tuple(_tools_of(import_file(path)))
    except PythonImportError as error:
        raise ToolFileError(str(error)) from error
    if not found:
        raise ToolFileError(f"{path} has no tools. Write @tool above the functions that the agent may call.")
    for tool in found:
        if not _NAME.fullmatch(tool.name):
            raise ToolFileError(f"{path}: a tool cannot be called {tool.name!r}. Take ASCII letters, digits, _ and -.")
    return PythonFile(str(path), found)


def _tools_of(module: object) -> list[FunctionTool]:
    values = [value.tool if isinstance(value, PythonTool) else value for value in vars(module).values()]
    return list({value.name: value for value in values if isinstance(value, FunctionTool)}.values())
