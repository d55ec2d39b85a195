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
            "send:send",
            click.Argument(["words"], nargs=-1, metavar="TEXT…"),
            click.Option(["-c", "--continue", "go_on"], is_flag=True, help="go on with the last conversation"),
            click.Option(["--context"], default="", metavar="ID", help="go on with this conversation"),
            click.Option(
                ["--task"], default="", metavar="ID", help="answer a task that asked, or add to one that works"
            ),
            click.Option(
                ["--attach"],
                multiple=True,
                type=click.Path(),
                metavar="FILE",
                help="send a file, too: an image, a PDF or text; repeatable",
            ),
            click.Option(
                ["-o", "--output"],
                default="",
                type=click.Path(),
                metavar="FILE",
                help="write the artifact to this file, or the artifacts to this folder",
            ),
            _THINKING,
            click.Option(["--quiet"], is_flag=True, help="print only the artifacts, or the reply if there is none"),
            more="TEXT needs no quotation marks. - is the standard input; what is piped in is sent below TEXT.",
            examples=(
                "send write a haiku about tea",
                'send -c "make it longer, please"',
                "send review this --attach report.pdf -o review.md",
                "send --quiet explain this < notes.txt > explained.md",
            ),
        ),
    }
