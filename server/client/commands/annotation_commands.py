"""The arguments of the commands for comments and suggestions."""

from __future__ import annotations

import click

from a2a_canvas.server.client.commands.arguments import (
    client_command,
    completer,
    lines,
    non_empty,
    option,
    value_type,
    version,
)
from a2a_canvas.server.command_form import CommandForm

_TEXT = value_type(non_empty)
_ARTIFACT = click.Argument(["artifact"], type=_TEXT, shell_complete=completer("artifact"))
_ONLY = click.Argument(["artifact"], type=_TEXT, required=False, shell_complete=completer("artifact"))
_CONTEXT = option(
    "--context",
    shell_complete=completer("context"),
    type=_TEXT,
    metavar="ID",
    help="the conversation (default: the last one)",
)
_LINES = option("--lines", type=value_type(lines), metavar="N[-M]", help="the passage: these lines")
_BASE = option(
    "--base",
    type=value_type(version),
    metavar="N",
    help="the version that you have seen, if others may have changed it since",
)
_ASK = option("--ask", is_flag=True, help="ask the agent, which answers in the thread or suggests a change")
_CLOSED = option("--all", "closed", is_flag=True, help="list closed ones as well")
_NUMBERS = "NUMBER is what the lists show, 3 or '#3'. ARTIFACT is optional if the conversation has only one."


def _numbers(kind: str, metavar: str = "[ARTIFACT] NUMBER…", *, required: bool = True) -> click.Argument:
    return click.Argument(
        ["words"], nargs=-1, type=_TEXT, required=required, metavar=metavar, shell_complete=completer(kind)
    )


def command_forms() -> dict[str, CommandForm]:
    """The form of each command."""
    return {
        "comments": client_command(
            "annotations:comments", _ONLY, _CLOSED, _CONTEXT, examples=("comments report", "comments --all")
        ),
        "comment": client_command(
            "annotations:comment",
            _ARTIFACT,
            click.Argument(["words"], nargs=-1, type=_TEXT, required=True, metavar="[PASSAGE] TEXT…"),
            _LINES,
            _BASE,
            _ASK,
            _CONTEXT,
            more="PASSAGE is a text that occurs exactly once. With --lines there is none.",
            examples=(
                "comment report 'text of the passage' 'What about…?'",
                "comment report --lines 3 Which source?",
                "comment report --lines 3 --ask Make it shorter",
            ),
        ),
        "suggestions": client_command(
            "annotations:suggestions",
            _ONLY,
            _CLOSED,
            option("--by", metavar="NAME", help="only those of this author; agent for the agent"),
            _CONTEXT,
            examples=("suggestions report", "suggestions --by bob"),
        ),
        "suggest": client_command(
            "annotations:suggest",
            _ARTIFACT,
            click.Argument(["words"], nargs=-1, required=True, metavar="[PASSAGE] NEW"),
            _LINES,
            _BASE,
            option("-m", "--comment", "because", type=_TEXT, metavar="TEXT", help="say why"),
            _CONTEXT,
            more="PASSAGE is a text that occurs exactly once. With --lines there is none. An empty NEW deletes it.",
            examples=(
                "suggest report 'tide pools' 'rock pools'",
                "suggest report --lines 3 'A better line' -m shorter",
            ),
        ),
        "reply": client_command(
            "annotations:reply",
            _numbers("annotation", "[ARTIFACT] NUMBER TEXT…"),
            _ASK,
            _CONTEXT,
            more=_NUMBERS,
            examples=("reply report 3 Because it is so", "reply report 3 --ask Is that right?"),
        ),
        "resolve": client_command(
            "annotations:resolve_comments",
            _numbers("comment"),
            _CONTEXT,
            more=_NUMBERS,
            examples=("resolve report 3", "resolve 3 4"),
        ),
        "accept": client_command(
            "annotations:accept",
            _numbers("suggestion", "[ARTIFACT] [NUMBER…]", required=False),
            option("--all", "every", is_flag=True, help="accept all open suggestions, as one version"),
            option("--by", metavar="NAME", help="with --all: only those of this author; agent for the agent"),
            _CONTEXT,
            more=_NUMBERS,
            examples=("accept report 3", "accept report --all --by agent"),
        ),
        "reject": client_command(
            "annotations:reject", _numbers("suggestion"), _CONTEXT, more=_NUMBERS, examples=("reject report 3",)
        ),
        "withdraw": client_command(
            "annotations:withdraw", _numbers("annotation"), _CONTEXT, more=_NUMBERS, examples=("withdraw report 3",)
        ),
        "agents": client_command(
            "annotations:agents",
            click.Argument(["policy"], type=click.Choice(["suggest", "write"]), required=False),
            _CONTEXT,
            more="With suggest, what agents would change becomes suggestions; people accept or reject them. With "
            "write, the default, agents change artifacts directly. Without either, prints which applies. Only the "
            "owner of the conversation can change it.",
            examples=("agents suggest", "agents write --context 7c8d", "agents"),
        ),
    }
