"""The commands that read and change the artifacts of an a2a-canvas server."""

from __future__ import annotations

import click

from a2a_canvas.server.client.arguments import client_command, given, lines, typed, version, version_or_nothing
from a2a_canvas.server.command_form import CommandForm

_ARTIFACT = click.Argument(["artifact"], type=typed(given))
_CONTEXT = click.Option(["--context"], type=typed(given), metavar="ID", help="the conversation (default: the last one)")
_STEP = click.Option(["--step"], is_flag=True, help="by one version, not by all that one task made")
_MORE = "ARTIFACT is an id, a name, or the beginning of one; so is the ID of the conversation."


def command_forms() -> dict[str, CommandForm]:
    """What each command takes."""
    number = typed(version)
    return {
        "artifacts": client_command("artifacts:artifacts", _CONTEXT, examples=("artifacts", "artifacts --context ID")),
        "show": _form(
            "artifacts:show",
            _option("--version", "this version of it, not the current one", type=number, metavar="N"),
            examples=("show report", "show report --version 2 > old.md"),
        ),
        "versions": _form("artifacts:versions", examples=("versions report",)),
        "diff": _form(
            "artifacts:diff",
            click.Argument(["numbers"], nargs=-1, type=typed(version_or_nothing), metavar="[[OLD] NEW]"),
            more="Without versions, what the current one changed; with one, what that changed; 0 is the empty text.",
            examples=("diff report", "diff report 3", "diff report 1 4"),
        ),
        "edit": _form(
            "edit:edit",
            click.Argument(["words"], nargs=-1, required=True, metavar="INSTRUCTION"),
            _option("--lines", "the passage: these lines", type=typed(lines), metavar="N[-M]"),
            _option("--match", "the passage: this text, which occurs once", type=typed(given), metavar="TEXT"),
            *(
                _option(f"--{side}", f"write something new {side} the passage and leave it as it is", is_flag=True)
                for side in ("before", "after")
            ),
            _option("--base", "the version you have seen, if others may have changed it", type=number, metavar="N"),
            _option("--thinking", "on a terminal, show the model's thinking in the status line", is_flag=True),
            examples=("edit report make it shorter --lines 3-5", 'edit report "add a date" --match "# Report"'),
        ),
        "open": _form(
            "files:open_artifact", more="The editor is that of $VISUAL or $EDITOR.", examples=("open report",)
        ),
        "put": client_command(
            "files:put",
            _ARTIFACT,
            click.Argument(["file"], required=False),
            _option("--base", "save only if this is still the current version", type=number, metavar="N"),
            _option("--follow", "save FILE again whenever it changes, until Ctrl+C", is_flag=True),
            _CONTEXT,
            more="ARTIFACT is an id or a name; it is made if it is not there. FILE is - for the standard input, and "
            "may be left out if its name is the artifact's.",
            examples=("put notes.md", "put report draft.txt", "put --follow notes.md", "put log < today.txt"),
        ),
        "pull": _form(
            "files:pull",
            click.Argument(["file"], required=False),
            _option("--version", "this version, not the current one", type=number, metavar="N"),
            _option("--follow", "write FILE again at every new version, until Ctrl+C", is_flag=True),
            _option("--force", "overwrite FILE, even if its text is no version of the artifact", is_flag=True),
            more="FILE is the artifact's name if it is left out.",
            examples=("pull report", "pull report draft.md --follow"),
        ),
        "undo": _form("edit:undo", _STEP, examples=("undo report", "undo report --step")),
        "redo": _form("edit:redo", _STEP, examples=("redo report",)),
        "restore": _form("edit:restore", click.Argument(["version"], type=number), examples=("restore report 2",)),
    }


def _form(place: str, *params: click.Parameter, more: str = "", examples: tuple[str, ...]) -> CommandForm:
    """A command for one artifact."""
    return client_command(place, _ARTIFACT, *params, _CONTEXT, more=f"{more} {_MORE}".strip(), examples=examples)


def _option(name: str, help: str, **kwargs: object) -> click.Option:
    return click.Option([name], help=help, **kwargs)  # type: ignore[arg-type]
