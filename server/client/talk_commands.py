"""The commands that talk to any A2A server."""

from __future__ import annotations

import click

from a2a_canvas.server.client.arguments import client_command
from a2a_canvas.server.command_form import CommandForm

_THINKING = click.Option(
    ["--thinking"], is_flag=True, help="on a terminal, show the model's thinking in the status line"
)


def command_forms() -> dict[str, CommandForm]:
    """What each command takes."""
    return {
        "send": client_command(
            "send:send_words",
            click.Argument(["words"], nargs=-1, required=True, metavar="TEXT…"),
            click.Option(["--context"], default="", metavar="ID", help="continue a conversation"),
            click.Option(
                ["--task"], default="", metavar="ID", help="answer a task that asked, or add to one that works"
            ),
            _THINKING,
            examples=("send write a haiku about tea",),
        ),
    }
