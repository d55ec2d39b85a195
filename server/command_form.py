"""The form of a command: options in groups, examples below them. Of click, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click


class GroupedOption(click.Option):
    """An option that `--help` lists under the heading of its group."""

    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose options are listed in groups, in the order in which the groups first appear."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                groups.setdefault(getattr(param, "group", "Options"), []).append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)


@dataclass(frozen=True, slots=True)
class CommandForm:
    """What a command takes.

    Attributes:
        run: is called with the parameters, returns the exit code.
        more: what `--help` says below the line in which the list of commands tells what it does.
        examples: what can be typed after the name of the program.
    """

    run: Callable[..., int]
    params: tuple[click.Parameter, ...] = ()
    more: str = ""
    examples: tuple[str, ...] = ()

    def command(self, name: str, does: str) -> click.Command:
        """The command; `does` is one line without a full stop."""
        lines = "\n".join(f"  a2a-canvas {example}" for example in self.examples)
        return GroupedCommand(
            name,
            params=list(self.params),
            callback=self.run,
            help="\n\n".join(filter(None, (f"{does[:1].upper()}{does[1:]}.", self.more))),
            short_help=does,
            epilog=f"\b\nExamples:\n{lines}" if lines else None,
        )
