"""The commands that talk to any A2A server."""

from __future__ import annotations

import click

from a2a_canvas.server.client.arguments import client_command
from a2a_canvas.server.command_form import CommandForm

_THINKING = click.Option(
    ["--thinking"], is_flag=True, help="on a terminal, show the model's thinking in the status line"
)
_GO_ON = click.Option(["-c", "--continue", "go_on"], is_flag=True, help="go on with the last conversation")
_CONTEXT = click.Option(["--context"], default="", metavar="ID", help="go on with this conversation")
STATES = ("submitted", "working", "completed", "failed", "canceled", "rejected", "input-required")


def command_forms() -> dict[str, CommandForm]:
    """What each command takes."""
    limit = click.Option(
        ["--limit"], type=click.IntRange(1, 1000), default=20, metavar="N", help="at most so many (default: 20)"
    )
    return {
        "chat": client_command(
            "chat:chat",
            _GO_ON,
            _CONTEXT,
            _THINKING,
            more="A line is a message, or a command such as /show, /edit, /undo, /versions and /open: /help lists all.",
            examples=("chat", "chat -c"),
        ),
        "tasks": client_command(
            "tasks:tasks",
            click.Option(["--state"], type=click.Choice(STATES), metavar="STATE", help="only those"),
            click.Option(["--context"], default="", metavar="ID", help="only those of this conversation"),
            limit,
            more="STATE is submitted, working, completed, failed, canceled, rejected or input-required.",
            examples=("tasks", "tasks --state working", "tasks --context 7c8d --json"),
        ),
        "contexts": client_command("tasks:contexts", limit, examples=("contexts", "contexts --json")),
        "watch": client_command(
            "tasks:watch",
            click.Argument(["typed"], metavar="TASK|CONTEXT"),
            _THINKING,
            more="The beginning of an id is enough. Of a conversation, the task that works, or the newest one.",
            examples=("watch 7c8d",),
        ),
        "cancel": client_command(
            "tasks:cancel",
            click.Argument(["typed"], metavar="TASK"),
            more="The beginning of an id is enough.",
            examples=("cancel 7c8d",),
        ),
        "send": client_command(
            "send:send",
            click.Argument(["words"], nargs=-1, metavar="TEXT…"),
            _GO_ON,
            _CONTEXT,
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
