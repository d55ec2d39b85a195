"""Imports the user's Python: a file, or a module by its name.

Rule: an error is one line, with the file, the line in it, and what to do.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from a2a_canvas.server.agent.loops.agent_function import AgentDefinitionError
from a2a_canvas.server.tool_sources.framework_extras import advise_upgrades, how_to_install
from a2a_canvas.tools.functions.python_tool import ToolDefinitionError


class PythonImportError(Exception):
    """The user's Python cannot be imported; `str()` is one line that says what to do."""


def import_file(path: Path) -> ModuleType:
    """Import a file. It may import the files beside it.

    Raises:
        PythonImportError: it cannot be imported.
    """
    _make_importable(path.parent)
    # The file may have the name of another module: tools, types, mcp.
    spec = spec_from_file_location(f"agent_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise PythonImportError(f"{path} is not a Python file. Its name must end with .py.")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    with _faults(str(path), [path.parent]):
        spec.loader.exec_module(module)
    return module


def import_by_name(name: str, folders: Sequence[Path]) -> ModuleType:
    """Import a module that is installed, or in one of these folders.

    Raises:
        PythonImportError: there is none, or it cannot be imported.
    """
    for folder in reversed(folders):
        _make_importable(folder)
    with _faults(name, folders):
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name and f"{name}.".startswith(f"{error.name}."):
                places = " or ".join(dict.fromkeys(str(folder.resolve()) for folder in folders))
                raise PythonImportError(
                    f"There is no module {name} in {places}. Write its name as in import."
                ) from None
            raise


def _make_importable(folder: Path) -> None:
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)  # as Python does for a script


@contextmanager
def _faults(name: str, folders: Sequence[Path]) -> Iterator[None]:
    try:
        yield
    except PythonImportError:
        raise
    except (Exception, SystemExit) as error:
        raise PythonImportError(" ".join(_explain(error, name, folders).split())) from error


def _explain(error: BaseException, name: str, folders: Sequence[Path]) -> str:
    """What is wrong with the user's code.

    Args:
        name: of the file or the module.
        folders: of the user's code, as the user wrote them.
    """
    place = _place(error, name, folders)
    match error:
        case ToolDefinitionError():
            return _as_written(str(error), folders)
        case AgentDefinitionError():
            return f"{place}: {error}"
        case SyntaxError():
            line = f", line {error.lineno}" if error.lineno else ""
            return f"{_as_written(error.filename or name, folders)}{line}: {error.msg}. Correct it."
        case ModuleNotFoundError():
            return f"{place}: {error}. {how_to_install(error.name or '')}"
        case _:
            advice = next(
                advise_upgrades(getattr(error, "name", None) or ""), "It must be possible to import the file."
            )
            return f"{place}: {type(error).__name__}: {error}. {advice}"


def _place(error: BaseException, name: str, folders: Sequence[Path]) -> str:
    """The last line executed in the user's own files."""
    lines = [each for each in extract_tb(error.__traceback__) if _is_own(each.filename, folders)]
    return f"{_as_written(lines[-1].filename, folders)}, line {lines[-1].lineno}" if lines else name


def _is_own(file: str, folders: Sequence[Path]) -> bool:
    """Whether a file is the user's, and not one that is installed in an environment in the folder."""
    path = Path(file).resolve()
    return "site-packages" not in path.parts and any(path.is_relative_to(each.resolve()) for each in folders)


def _as_written(text: str, folders: Sequence[Path]) -> str:
    """A text with the paths of files in these folders as the user would write them."""
    for folder in folders:
        shown = "" if folder == Path() else f"{folder}{os.sep}"
        for place in {folder.resolve(), folder.absolute()}:
            text = re.sub(rf"(?<![\w.]){re.escape(f'{place}{os.sep}')}", shown, text)
    return text
