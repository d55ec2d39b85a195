"""What the command line understands, without running it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from a2a_canvas.server.commands.cli import cli


def parsed(*arguments: str) -> tuple[str, dict[str, Any]]:
    """The command that is chosen, such as `db prune`, and the values of its parameters."""
    context: click.Context = click.Context(cli, info_name="a2a-canvas")
    command: click.Command = cli
    rest, names = list(arguments), []
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, rest)
        assert name
        assert found
        names.append(name)
        command, context = found, click.Context(found, parent=context, info_name=name)
    return " ".join(names), command.make_context(names[-1], rest, parent=context.parent).params


def commands(group: click.Group = cli, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands, with their names as `parsed` has them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        if isinstance(command, click.Group):
            yield from commands(command, f"{above}{name} ")
        else:
            yield above + name, command


def option_strings(command: click.Command) -> set[str]:
    """All options of a command, `--help` included."""
    params = command.get_params(click.Context(command))
    return {word for param in params for word in (*param.opts, *param.secondary_opts) if word.startswith("-")}
