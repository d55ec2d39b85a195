"""`a2a-canvas new`: creates the folder of an agent that runs and passes its tests."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from a2a_canvas.server.settings.agent_folder import FolderError

TEMPLATE = Path(__file__).parent / "template"
_SUFFIX = ".template"
"""Without it, tools would take the files for parts of this program."""
_PARTS = {"model": "instructions, tools", "loop": "loop in agent.py"}
_HIDDEN = ("gitignore", "dockerignore")


def new_agent(folder: Path, program: str, *, loop: bool = False) -> Iterator[str]:
    """Create an agent in a new or empty folder.

    Args:
        program: how the user calls this program.
        loop: it has a loop of its own, instead of instructions and tools for a model.

    Yields:
        lines for the user.

    Raises:
        FolderError: the folder is not empty.
        OSError: the folder cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderError(f"{folder} already exists and is not an empty folder. Choose another name.")
    name = folder.resolve().name
    image = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "agent"
    values = {
        "name": json.dumps(name, ensure_ascii=False)[1:-1],
        "image": image,
        "program": program,
        "python": _python(program),
        "folder": shlex.quote(str(folder)),
    }
    kind = "loop" if loop else "model"
    for place, source in _files(kind):
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        for key, value in values.items():
            text = text.replace(f"{{{key}}}", value)
        file.write_text(text, encoding="utf-8")
    yield f"Created the agent {name} in {folder}: its {_PARTS[kind]}, card, settings and tests. Next:"
    yield f"{program} serve {values['folder']} --reload"
    yield "Its tests need no model:"
    yield f"{_python(program)} -m pytest {values['folder']}"
    if not find_spec("pytest"):
        yield f"The tests need pytest: {_python(program)} -m pip install pytest"


def _files(kind: str) -> Iterator[tuple[Path, Path]]:
    """The place of each file in the folder, and its template."""
    for part in (TEMPLATE / "common", TEMPLATE / kind):
        for source in sorted(part.rglob(f"*{_SUFFIX}")):
            yield _target(source.relative_to(part)), source


def _target(place: Path) -> Path:
    name = place.name.removesuffix(_SUFFIX)
    return place.with_name(f".{name}" if name in _HIDDEN else name)


def _python(program: str) -> str:
    """The Python that has this program installed, as the user would call it."""
    if program.startswith("python "):
        return "python"
    return f"{program.rpartition('/')[0]}/python" if "/" in program else "python"
