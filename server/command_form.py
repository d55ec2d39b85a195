"""The form of a command: options in groups, examples below them. Of click, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import click

_NAMED = re.compile(r"\ba2a-canvas (?=(?:new|key|serve|send|chat|contexts|db|doctor|models)\b)")
"""Commands that messages suggest; messages of the server name the program as it is installed."""


def with_program_name(text: str, program: str) -> str:
    """A message whose commands begin with what the user types to call this program."""
    return _NAMED.sub(lambda _: f"{program} ", text)


class GroupedOption(click.Option):
    """An option that `--help` lists under the heading of its group."""

    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose options are listed in groups, in the order in which the groups first appear.

    Args:
        of_others: what to say of options that only other commands have.
    """

    def __init__(self, *args: Any, of_others: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._of_others = of_others

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if said := self._of_others.get(error.option_name):
                raise click.UsageError(said, ctx) from None
            raise
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # its --help is the one to read
            raise

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
        of_others: what to say of options that only other commands have.
    """

    run: Callable[..., int]
    params: tuple[click.Parameter, ...] = ()
    more: str = ""
    examples: tuple[str, ...] = ()
    of_others: Mapping[str, str] = field(default_factory=dict)

    def command(self, name: str, does: str) -> click.Command:
        """The command; `does` is one line without a full stop."""
        lines = "\n".join(f"  a2a-canvas {example}" for example in self.examples)
        return GroupedCommand(
            name,
            params=list(self.params),
            callback=self.run,
            help="\n\n".join(filter(None, (f"{does[:1].upper()}{does[1:]}.", self.more))),
            short_help=does,
            of_others=self.of_others,
            epilog=f"\b\nExamples:\n{lines}" if lines else None,
        )
