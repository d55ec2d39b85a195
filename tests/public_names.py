"""What programs read of this one, by name: `python -m tests.public_names` writes public_names.txt.

Rule 1: a line is a kind and a name: a command or option, a setting, a metric with its labels, a reason of errors with
        its codes, a field of log lines, a key of JSON that the protocols write, an entrance
        (`tests/docs/entrances.py`), or a name that Python imports.
Rule 2: keys of JSON and fields of log lines are read from the code: those in dictionaries that are written out, and
        the keyword arguments of `about`. Others are covered by the tests of their answers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click
from a2a.utils.errors import A2A_ERROR_MAPPING

import a2a_canvas
from a2a_canvas import llm, testing
from a2a_canvas.server.commands.cli import cli
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.edge.error_tables import rpc_code
from a2a_canvas.server.settings.settings import PREFIX, Settings
from tests.docs.entrances import entrances
from tests.docs.pages import ROOT
from tests.metric_values import all_series

LIST = Path(__file__).with_suffix(".txt")


def public_names() -> list[str]:
    """All of them, sorted."""
    found = {f"entrance {each}" for each in entrances()}  # imports the app, and with it all errors
    found |= {*_commands("a2a-canvas", cli), *_errors(), *_from_code()}
    found |= {f"setting {name} {PREFIX}{name.upper()}" for name in Settings.model_fields}
    found |= {f"metric {each.name} {','.join(each.labels)}".rstrip() for each in all_series(Metrics())}
    found |= {f"name a2a_canvas.{name}" for name in a2a_canvas.__all__}
    for module in (llm, testing):
        found |= {f"name {module.__name__}.{name}" for name in module.__all__}
    return sorted(found)


def _commands(path: str, command: click.Command) -> Iterator[str]:
    yield f"command {path}"
    for param in command.params:
        yield from (f"option {path} {option}" for option in (*param.opts, *param.secondary_opts))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if inner := command.get_command(context, name):
                yield from _commands(f"{path} {name}", inner)


def _errors() -> Iterator[str]:
    for kind, (http_status, status, reason) in A2A_ERROR_MAPPING.items():
        yield f"error {reason} {http_status} {status} {rpc_code(kind)}"


_PANDOC_TREES = ("source_tree", "tracked_tree", "paragraph_ends")
"""Modules whose keys are those of pandoc's trees."""


def _from_code() -> Iterator[str]:
    for path in (ROOT / "server").rglob("*.py"):
        written = "protocols" in path.parts and path.stem not in _PANDOC_TREES
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="about"), keywords=keywords):
                    yield from (f"log field {each.arg}" for each in keywords if each.arg)
                case ast.Dict(keys=keys) if written:
                    for key in keys:
                        if isinstance(key, ast.Constant) and isinstance(key.value, str):
                            yield f"key {key.value}"
                case _:
                    pass


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n")
