"""The commands that read and change the artifacts of an a2a-canvas server."""

from __future__ import annotations

from typing import Any

import click

from a2a_canvas.server.client.arguments import client_command, given, lines, typed, version, version_or_nothing
from a2a_canvas.server.command_form import CommandForm

_ARTIFACT = click.Argument(["artifact"], type=typed(given))
_CONTEXT = click.Option(
    ["--context"], type=typed(given), required=True, metavar="ID", help="the conversation it belongs to"
)
_STEP = click.Option(["--step"], is_flag=True, help="by one version, not by all that one task made")
_THINKING = click.Option(
    ["--thinking"], is_flag=True, help="on a terminal, show the model's thinking in the status line"
)


def command_forms() -> dict[str, CommandForm]:
    """What each command takes."""
    return {
        "artifacts": client_command("artifacts:run_artifacts", _CONTEXT, examples=("artifacts --context ID",)),
        "show": client_command(
            "artifacts:run_show",
            _ARTIFACT,
            _CONTEXT,
            click.Option(
                ["--version"], type=typed(version), metavar="N", help="this version of it, not the current one"
            ),
            examples=("show report --context ID", "show report --context ID --version 2 > old.md"),
        ),
        "versions": client_command(
            "artifacts:run_versions", _ARTIFACT, _CONTEXT, examples=("versions report --context ID",)
        ),
        "diff": client_command(
            "artifacts:run_diff",
            _ARTIFACT,
            click.Argument(["version"], required=False, type=typed(version)),
            _CONTEXT,
            click.Option(
                ["--from", "since"],
                type=typed(version_or_nothing),
                metavar="M",
                help="compare with this version, 0 is the empty text (default: the version that it was made of)",
            ),
            examples=("diff report --context ID", "diff report 3 --from 1 --context ID"),
        ),
        "edit": client_command(
            "edit:run_edit",
            _ARTIFACT,
            click.Argument(["instruction"]),
            click.Option(["--lines"], type=typed(lines), metavar="N[-M]", help="the passage: these lines"),
            click.Option(
                ["--match"], type=typed(given), metavar="TEXT", help="the passage: this text, which occurs once"
            ),
            *(_beside(side) for side in ("before", "after")),
            _base("the version you have seen, if others may have changed it since"),
            _CONTEXT,
            _THINKING,
            examples=('edit report "make it shorter" --lines 3-5 --context ID',),
        ),
        "put": client_command(
            "edit:run_put",
            _ARTIFACT,
            click.Argument(["file"], default="-"),
            _base("save only if this is still the current version"),
            _CONTEXT,
            more="FILE is the text; - is the standard input (default).",
            examples=("put report report.md --context ID",),
        ),
        "undo": client_command("edit:run_undo", _ARTIFACT, _CONTEXT, _STEP, examples=("undo report --context ID",)),
        "redo": client_command("edit:run_redo", _ARTIFACT, _CONTEXT, _STEP, examples=("redo report --context ID",)),
        "restore": client_command(
            "edit:run_restore",
            _ARTIFACT,
            click.Argument(["version"], type=typed(version)),
            _CONTEXT,
            examples=("restore report 2 --context ID",),
        ),
    }


def _beside(side: str) -> click.Option:
    help = f"write something new {side} the passage and leave it as it is"
    return click.Option([f"--{side}"], is_flag=True, help=help)


def _base(meaning: str) -> click.Option:
    kwargs: dict[str, Any] = {"type": typed(version), "metavar": "N", "help": meaning}
    return click.Option(["--base"], **kwargs)
