"""The arguments of the client's commands. The first group works with any A2A server, the rest with a2a-canvas."""

from __future__ import annotations

import click

from a2a_canvas.server.client.commands.arguments import (
    client_command,
    completer,
    expiry,
    limit,
    lines,
    non_empty,
    option,
    value_type,
    version,
    version_or_nothing,
)
from a2a_canvas.server.command_form import CommandForm
from a2a_canvas.server.wire import EXTENSIONS_OF_FORMATS

STATES = ("submitted", "working", "completed", "failed", "canceled", "rejected", "input-required", "auth-required")
_FILE = click.Path()
_NUMBER = value_type(version)
_THINKING = option("--thinking", is_flag=True, help="on a terminal, show the model's thinking in the status line")
_GO_ON = option("-c", "--continue", "go_on", is_flag=True, help="continue the last conversation")
_KNOWN_CONTEXT = completer("context")
_KNOWN_ARTIFACT = completer("artifact")
_CONTEXT = option(
    "--context", shell_complete=_KNOWN_CONTEXT, default="", metavar="ID", help="continue this conversation"
)
_LIMIT = option(
    "--limit", type=value_type(limit), default=20, metavar="N", help="number of entries, 1 to 1000 (default: 20)"
)
_ARTIFACT = click.Argument(["artifact"], type=value_type(non_empty), shell_complete=_KNOWN_ARTIFACT)
_ONLY = click.Argument(["artifact"], type=value_type(non_empty), required=False, shell_complete=_KNOWN_ARTIFACT)
_LAST = option(
    "--context",
    shell_complete=_KNOWN_CONTEXT,
    type=value_type(non_empty),
    metavar="ID",
    help="the conversation (default: the last one)",
)
_CRITIC = option("--critic", is_flag=True, help="with suggestions and comments, as CriticMarkup in the text")
_STEP = option("--step", is_flag=True, help="move by one version only")
_SHARED = click.Argument(["context"], type=value_type(non_empty), metavar="CONTEXT", shell_complete=_KNOWN_CONTEXT)
_SHARED_OR_LAST = click.Argument(
    ["context"], type=value_type(non_empty), required=False, metavar="[CONTEXT]", shell_complete=_KNOWN_CONTEXT
)
_ID = "The first characters of an id are enough."
_NAME = "Artifacts and conversations can be given by id, by name, or by the first characters of either."

_LEFT_OUT = "ARTIFACT is optional if the conversation has only one."


def command_forms() -> dict[str, CommandForm]:
    """The form of each command."""
    return {
        "chat": client_command(
            "chat:chat",
            _GO_ON,
            _CONTEXT,
            _THINKING,
            more="A line is a message, or a command such as /show, /edit, /undo, /versions or /open; /help lists all.",
            examples=("chat", "chat -c"),
        ),
        "tasks": client_command(
            "tasks:tasks",
            option("--state", type=click.Choice(STATES), metavar="STATE", help="only tasks in this state"),
            option(
                "--context",
                shell_complete=_KNOWN_CONTEXT,
                default="",
                metavar="ID",
                help="only tasks of this conversation",
            ),
            _LIMIT,
            more=f"STATE is {', '.join(STATES[:-1])} or {STATES[-1]}.",
            examples=("tasks", "tasks --state working", "tasks --context 7c8d --json"),
        ),
        "acp": client_command(
            "bridges.acp:run",
            more="Name this command in the configuration of the editor; docs/acp.md has the lines.",
            examples=("acp", "acp --url https://agent.example.com"),
        ),
        "mcp": client_command(
            "bridges.mcp_bridge:run_mcp",
            more="Name this command in the configuration of the host; docs/mcp-hosts.md has the lines.",
            examples=("mcp", "mcp --url https://agent.example.com"),
        ),
        "contexts": client_command(
            "tasks:contexts",
            option(
                "--text",
                metavar="WORDS",
                type=value_type(non_empty),
                help="instead, lines of documents in all of them that have these words",
            ),
            _LIMIT,
            examples=("contexts", "contexts --json", "contexts --text 'tide pools'"),
        ),
        "share": client_command(
            "shares:share",
            _SHARED_OR_LAST,
            option("--with", "user", metavar="USER", type=value_type(non_empty), help="share with this user"),
            option("--link", is_flag=True, help="create a link for anyone who has it, and print it"),
            option(
                "--level",
                type=click.Choice(["read", "comment", "edit", "approve"]),
                default="read",
                help="what they may do: read (default), also comment, also edit, or also approve tool calls",
            ),
            option(
                "--expires",
                metavar="WHEN",
                type=value_type(expiry),
                help="a duration, such as 7d or 12h, or a time with a zone",
            ),
            more=f"{_ID} Without CONTEXT, the last conversation is shared. Sharing with a user again replaces that "
            "user's share.",
            examples=("share 7c8d --with bob --level edit", "share 7c8d --link --expires 7d"),
        ),
        "shares": client_command(
            "shares:shares",
            _SHARED_OR_LAST,
            more=f"{_ID} Without CONTEXT, lists the shares of the last conversation.",
            examples=("shares 7c8d", "shares --json"),
        ),
        "unshare": client_command(
            "shares:unshare",
            _SHARED,
            click.Argument(["typed"], type=value_type(non_empty), metavar="SHARE|USER"),
            more=_ID,
            examples=("unshare 7c8d bob", "unshare 7c8d 19f3"),
        ),
        "watch": client_command(
            "tasks:watch",
            click.Argument(["typed"], metavar="TASK|CONTEXT", shell_complete=completer("task or context")),
            _THINKING,
            more=f"{_ID} For a conversation, follows the working task, or the newest one.",
            examples=("watch 7c8d",),
        ),
        "cancel": client_command(
            "tasks:cancel",
            click.Argument(["typed"], metavar="TASK", shell_complete=completer("task")),
            more=_ID,
            examples=("cancel 7c8d",),
        ),
        "send": client_command(
            "send:send",
            click.Argument(["words"], nargs=-1, metavar="TEXT…"),
            _GO_ON,
            _CONTEXT,
            option(
                "--task",
                shell_complete=completer("task"),
                default="",
                metavar="ID",
                help="answer this task, or add to it while it is working",
            ),
            option(
                "--attach",
                multiple=True,
                type=_FILE,
                metavar="FILE",
                help="also send this image, PDF or text file; repeatable",
            ),
            option(
                "-o",
                "--output",
                default="",
                type=_FILE,
                metavar="FILE",
                help="write the artifact to this file, or all artifacts to this folder",
            ),
            _THINKING,
            option("--quiet", is_flag=True, help="print only the artifacts, or the reply if there are none"),
            more="TEXT needs no quotation marks. - reads standard input; piped input is appended to TEXT, so add "
            "</dev/null in a loop over the lines of a file. The exit code is 3 if the task waits for you.",
            examples=(
                "send write a haiku about tea",
                'send -c "make it longer, please"',
                "send review this --attach report.pdf -o review.md",
                "send --quiet explain this < notes.txt > explained.md",
                'send "$line" </dev/null',
            ),
        ),
        "artifacts": client_command("artifacts:artifacts", _LAST, examples=("artifacts", "artifacts --context ID")),
        "show": _form(
            "artifacts:show",
            _ONLY,
            option("--version", type=_NUMBER, metavar="N", help="print this version instead of the current one"),
            examples=("show report", "show report --version 2 > old.md"),
        ),
        "versions": _form("artifacts:versions", _ONLY, examples=("versions report",)),
        "diff": _form(
            "artifacts:diff",
            _ONLY,
            click.Argument(["numbers"], nargs=-1, type=value_type(version_or_nothing), metavar="[[OLD] NEW]"),
            more="Without versions, prints the changes of the current one; with one, its changes; 0 is the empty text.",
            examples=("diff report", "diff report 3", "diff report 1 4"),
        ),
        "edit": _form(
            "edit:edit",
            _ARTIFACT,
            click.Argument(["words"], nargs=-1, required=True, metavar="INSTRUCTION"),
            option("--lines", type=value_type(lines), metavar="N[-M]", help="the passage: these lines"),
            option(
                "--match",
                type=value_type(non_empty),
                metavar="TEXT",
                help="the passage: this text, which must occur exactly once",
            ),
            option("--before", is_flag=True, help="keep the passage, and insert new text before it"),
            option("--after", is_flag=True, help="keep the passage, and insert new text after it"),
            option(
                "--base",
                type=_NUMBER,
                metavar="N",
                help="the version that you have seen, if others may have changed it since",
            ),
            _THINKING,
            examples=("edit report make it shorter --lines 3-5", 'edit report "add a date" --match "# Report"'),
        ),
        "open": _form(
            "files:open_artifact",
            _ONLY,
            _CRITIC,
            more="Uses the editor in $VISUAL or $EDITOR.",
            examples=("open report", "open report --critic"),
        ),
        "put": client_command(
            "files:put",
            _ARTIFACT,
            click.Argument(["file"], required=False),
            option("--base", type=_NUMBER, metavar="N", help="FILE is based on version N: keep later changes"),
            option("--follow", is_flag=True, help="save FILE again whenever it changes, until Ctrl+C"),
            _CRITIC,
            _LAST,
            more="ARTIFACT is an id or a name, and is created if it does not exist. - as FILE reads standard input; "
            "FILE is optional if it has the artifact's name.",
            examples=("put notes.md", "put report draft.txt", "put --follow notes.md", "put log < today.txt"),
        ),
        "pull": _form(
            "files:pull",
            _ARTIFACT,
            click.Argument(["file"], required=False),
            option("--version", type=_NUMBER, metavar="N", help="write this version instead of the current one"),
            option("--follow", is_flag=True, help="write FILE again for every new version, until Ctrl+C"),
            option("--force", is_flag=True, help="overwrite FILE, even if its text is not a version of the artifact"),
            option(
                "--format",
                "form",
                type=click.Choice([*EXTENSIONS_OF_FORMATS]),
                metavar="FORMAT",
                help=f"convert Markdown: {', '.join(EXTENSIONS_OF_FORMATS)}",
            ),
            more="FILE defaults to the artifact's name.",
            examples=("pull report", "pull report draft.md --follow", "pull report --format docx"),
        ),
        "export": client_command(
            "export:export",
            _ONLY,
            option(
                "--git",
                "folder",
                required=True,
                type=_FILE,
                metavar="FOLDER",
                help="a new folder, or the git repository of an earlier export",
            ),
            _LAST,
            more="Each version is a commit with its time, author and request; a later export adds what is new. Without "
            "ARTIFACT, all artifacts of the conversation are exported.",
            examples=("export --git history", "export report --git report-history"),
        ),
        "undo": _form("edit:undo", _ONLY, _STEP, examples=("undo report", "undo report --step")),
        "redo": _form("edit:redo", _ONLY, _STEP, examples=("redo report",)),
        "restore": _form(
            "edit:restore", _ARTIFACT, click.Argument(["version"], type=_NUMBER), examples=("restore report 2",)
        ),
    }


def _form(
    place: str, artifact: click.Argument, *params: click.Parameter, more: str = "", examples: tuple[str, ...]
) -> CommandForm:
    """A command for one artifact."""
    said = [more, _NAME, "" if artifact.required else _LEFT_OUT]
    return client_command(place, artifact, *params, _LAST, more=" ".join(filter(None, said)), examples=examples)
