"""The command line: `a2a-canvas serve`, the commands of the client, and `a2a-canvas db`.

Rule 1: a command imports its dependencies when it is chosen: `--version`, `--help` and usage errors are immediate,
        and the client does not pay for the server.
Rule 2: an error is one line on stderr. The exit code is 2 for a usage error, 1 for a failure, 130 on Ctrl+C.
"""

from __future__ import annotations

import gc
import io
import os
import shlex
import shutil
import sys
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from a2a_canvas.server.client.conversation.errors import INTERRUPTED, ClientError
from a2a_canvas.server.command_form import CommandForm, GroupedOption, with_program_name

NAME = "a2a-canvas"
_CLIENT = "a2a_canvas.server.client.commands.commands"
_REVIEW = "a2a_canvas.server.client.commands.annotation_commands"

COMMANDS = {
    "Talk": {
        "send": (_CLIENT, "send a task to an A2A server and follow it"),
        "chat": (_CLIENT, "talk with an agent, line by line"),
        "contexts": (_CLIENT, "list your conversations"),
        "share": (_CLIENT, "share a conversation with a user, or by link"),
        "shares": (_CLIENT, "list the shares of a conversation"),
        "unshare": (_CLIENT, "end a share"),
        "tasks": (_CLIENT, "list tasks"),
        "watch": (_CLIENT, "follow a task, or show how it ended"),
        "cancel": (_CLIENT, "cancel a task"),
        "acp": (_CLIENT, "give an editor this agent, over the Agent Client Protocol"),
        "mcp": (_CLIENT, "connect an MCP host that only starts programs to a server, over stdio"),
    },
    "Artifacts": {
        "artifacts": (_CLIENT, "list the artifacts of a conversation"),
        "show": (_CLIENT, "print an artifact"),
        "versions": (_CLIENT, "list the versions of an artifact, with time, author and request"),
        "diff": (_CLIENT, "print the changes of a version, or the difference between two"),
        "edit": (_CLIENT, "let the agent rewrite a passage of an artifact"),
        "open": (_CLIENT, "open an artifact in your editor and save your changes"),
        "put": (_CLIENT, "save a file as an artifact, once or whenever it changes"),
        "pull": (_CLIENT, "write an artifact to a file, once or for each new version"),
        "export": (_CLIENT, "write the history of a conversation into a git repository"),
        "undo": (_CLIENT, "undo all changes of the last task"),
        "redo": (_CLIENT, "reverse an undo"),
        "restore": (_CLIENT, "create a new version with the content of an old one"),
    },
    "Review": {
        "comments": (_REVIEW, "list the comments on an artifact"),
        "comment": (_REVIEW, "comment on a passage of an artifact"),
        "suggestions": (_REVIEW, "list the suggestions for an artifact, as diffs"),
        "suggest": (_REVIEW, "suggest a new text for a passage"),
        "reply": (_REVIEW, "reply to a comment or a suggestion"),
        "resolve": (_REVIEW, "resolve comments"),
        "accept": (_REVIEW, "accept suggestions, one by one or all as one version"),
        "reject": (_REVIEW, "reject suggestions"),
        "withdraw": (_REVIEW, "withdraw your comments and suggestions"),
        "agents": (_REVIEW, "have agents suggest changes, or write them"),
    },
    "Server": {
        "demo": ("a2a_canvas.server.commands.demo", "show what it does in one minute: two clients, a crash, undo"),
        "new": (__name__, "create your own agent in a folder"),
        "serve": (__name__, "start the server"),
        "models": (__name__, "list the available models, as values for --model"),
        "doctor": (__name__, "check the settings, the model, the database, the machine, and access from outside"),
        "db": (__name__, "upgrade, check or prune the database"),
        "key": (__name__, "create, list or revoke API keys"),
        "session": (__name__, "end all sessions of a signed-in user"),
        "card": (__name__, "verify the signature of an agent card"),
        "usage": (__name__, "show usage by user and day: requests, turns, tokens"),
        "completion": (__name__, "print a completion script for a shell"),
    },
}
"""The commands in groups: the module whose `command_forms` declares each, and its description."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is returned."""
    try:
        code = cli.main(arguments, prog_name=NAME, standalone_mode=False, obj=program(sys.argv[0]))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.UsageError as error:
        asked = error.ctx.command_path if error.ctx else NAME
        said = error.format_message()
        return print_error(f"{said if said.endswith(('.', '?', '?)')) else f'{said}.'} See {asked} --help.")
    except (click.ClickException, ClientError) as error:
        return print_error(str(error))
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output is gone; Python would complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print_error(f"{error.filename}: {error.strerror}." if error.filename and error.strerror else str(error))
        return 1
    return int(code or 0)


def print_error(text: str) -> int:
    """Print an error as one line on the standard error, wrapped on a terminal; returns exit code 2."""
    said = f"{NAME}: {with_program_name(' '.join(text.split()), program(sys.argv[0]))}"
    if sys.stderr and sys.stderr.isatty():
        columns = shutil.get_terminal_size().columns
        said = fill(said, columns, break_long_words=False, break_on_hyphens=False)
    print(said, file=sys.stderr)
    return 2


class Commands(click.Group):
    """The commands; each is imported when it is chosen."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for group in COMMANDS.values() for name in group]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for group in COMMANDS.values():
            if cmd_name in group:
                module, does = group[cmd_name]
                form: CommandForm | None = import_module(module).command_forms().get(cmd_name)
                return form.command(cmd_name, does) if form else _GROUPS[cmd_name](does)
        if ctx.resilient_parsing:
            return None
        raise click.exceptions.NoSuchCommand(cmd_name, possibilities=self.list_commands(ctx), ctx=ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, group in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, does) for name, (_, does) in group.items()])


cli = click.version_option(version(NAME), prog_name=NAME, message="%(prog)s %(version)s")(
    Commands(
        help="An agent server that speaks A2A, and its client for the terminal.",
        context_settings={"help_option_names": ["--help", "-h"]},
        epilog=f"{NAME} COMMAND --help has the options of a command, and examples.",
    )
)


# ----------------------------------------------------------------------- the server


def command_forms() -> dict[str, CommandForm]:
    """The commands that are not the client's."""
    from a2a_canvas.server.settings import settings

    more = (
        "FOLDER contains an agent: agent.toml, instructions.md, tools.py, agent.py, mcp.json, agent_card.json, all "
        "optional. "
        f"Every setting is also an environment variable ({settings.PREFIX}LOG_LEVEL for --log-level, "
        f"{settings.PREFIX}AGENT for FOLDER) and a key of agent.toml."
    )
    shell = click.Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"]))
    folder = click.Argument(["folder"], type=click.Path(path_type=Path))
    reload = GroupedOption(
        ["--reload"], is_flag=True, group="Agent", help="restart when a file in FOLDER changes; running turns resume"
    )
    check = GroupedOption(
        ["--check"],
        is_flag=True,
        group="Agent",
        help="only check whether the agent can be served; the exit code is 0 or 2",
    )
    own_loop = click.Option(
        ["--loop"], is_flag=True, help="with its own loop, a function in agent.py, instead of the model's"
    )
    return {
        "new": CommandForm(_new, (folder, own_loop), examples=("new my-agent", "new my-agent --loop")),
        "serve": CommandForm(
            _serve,
            (*settings.options(), reload, check),
            more,
            ("serve", "serve my-agent --reload", "serve --port 9000 --database memory"),
        ),
        "models": CommandForm(
            _models,
            more="The exit code is 0 if any model except the offline ones is available.",
            examples=("models", "models | grep qwen"),
        ),
        "doctor": CommandForm(
            _doctor,
            (
                *settings.options(),
                GroupedOption(
                    ["--url"],
                    metavar="URL",
                    group="Outside",
                    help="check the server from outside, at this address",
                ),
                GroupedOption(
                    ["--grpc-url"],
                    metavar="URL",
                    group="Outside",
                    help="gRPC address to check, if the card at --url has none; http:// means no TLS",
                ),
                GroupedOption(
                    ["--model-call/--no-model-call"],
                    default=True,
                    group="Model",
                    help="ask the model for one token (default: on)",
                ),
                GroupedOption(["--json", "as_json"], is_flag=True, group="Output", help="print one JSON object"),
            ),
            "Takes the settings of serve, and writes nothing. With --url it also sends the credentials in "
            "A2A_CANVAS_TOKEN. The exit code is 1 if a check failed, otherwise 0.",
            ("doctor", "doctor my-agent --no-model-call", "doctor --url https://agent.example.com --json"),
        ),
        "usage": CommandForm(
            _usage,
            (
                click.Option(["--user"], help="only this user"),
                click.Option(
                    ["--days"], type=int, default=7, help="number of days, including today; 1 to 400 (default: 7)"
                ),
                click.Option(["--json", "as_json"], is_flag=True, help="print one JSON object per line"),
                *settings.options(["agent", "database"]),
            ),
            settings.FOLDER_OF_DATABASE,
            examples=("usage", "usage my-agent", "usage --user ann --days 30", "usage --json"),
        ),
        "completion": CommandForm(_completion, (shell,), examples=("completion bash >> ~/.bashrc",)),
    }


def _database_commands(does: str) -> click.Group:
    from a2a_canvas.server.settings.settings import FOLDER_OF_DATABASE, options

    dry_run = click.Option(["--dry-run"], is_flag=True, help="change nothing; print what would be removed")
    force = click.Option(
        ["--force"], is_flag=True, help="upgrade even while servers use the database; those servers will fail"
    )
    database = tuple(options(["agent", "database"]))
    forms = {
        "upgrade": ("upgrade the database to the schema of this version", (*database, force)),
        "check": ("check that the database has the schema of this version", database),
        "prune": (
            "delete data that is older than the --keep options allow",
            (*options(["agent", "database", "keep_versions", "keep_contexts"]), dry_run),
        ),
    }
    commands = [
        CommandForm(
            partial(_db, name), params, FOLDER_OF_DATABASE, examples=(f"db {name}", f"db {name} my-agent")
        ).command(name, done)
        for name, (done, params) in forms.items()
    ]
    return click.Group("db", commands, help=f"{does.capitalize()}.")


def _key_commands(does: str) -> click.Group:
    from a2a_canvas.server.settings.settings import FOLDER_OF_DATABASE, options

    name = click.Argument(["name"])
    user = click.Option(["--user"], default="", help="the user that the key belongs to (default: NAME)")
    no_store = click.Option(
        ["--no-store"], is_flag=True, help="only print the key and its entry for A2A_CANVAS_API_KEYS"
    )
    database = tuple(options(["agent", "database"]))
    forms = {
        "new": CommandForm(
            partial(_key, "new"),
            (name, user, no_store, *database),
            "The key is shown only once. All servers on the database accept it within two seconds. "
            f"{FOLDER_OF_DATABASE}",
            ("key new ann", "key new ann my-agent", "key new ci --user ann"),
        ),
        "list": CommandForm(partial(_key, "list"), database, FOLDER_OF_DATABASE, ("key list", "key list my-agent")),
        "revoke": CommandForm(
            partial(_key, "revoke"),
            (name, *database),
            FOLDER_OF_DATABASE,
            ("key revoke ann",),
        ),
    }
    descriptions = {"new": "create an API key", "list": "list the API keys", "revoke": "revoke an API key"}
    return click.Group(
        "key", [form.command(each, descriptions[each]) for each, form in forms.items()], help=f"{does.capitalize()}."
    )


def _session_commands(does: str) -> click.Group:
    from a2a_canvas.server.settings.settings import FOLDER_OF_DATABASE, options

    form = CommandForm(
        partial(_key, "end sessions"),
        (click.Argument(["name"], metavar="USER"), *options(["agent", "database"])),
        "Anyone signed in through a provider as USER must sign in again. Keys and tokens are not affected. "
        f"{FOLDER_OF_DATABASE}",
        ("session revoke ann",),
    )
    return click.Group("session", [form.command("revoke", does)], help=f"{does.capitalize()}.")


def _card_commands(does: str) -> click.Group:
    url = click.Argument(["url"])
    key = click.Option(
        ["--key"],
        type=click.Path(path_type=Path),
        help="file with trusted public keys (PEM or a JSON Web Key Set), instead of those that the server publishes",
    )
    form = CommandForm(
        _verify_card,
        (url, key),
        "The exit code is 0 if the card has a valid signature, otherwise 1. Without --key the signature proves only "
        "that the card is unchanged; TLS identifies the server.",
        ("card verify https://agent.example.com", "card verify https://agent.example.com --key agent.pub.pem"),
    )
    return click.Group("card", [form.command("verify", does)], help=f"{does[:1].upper()}{does[1:]}.")


_GROUPS = {"db": _database_commands, "key": _key_commands, "session": _session_commands, "card": _card_commands}
"""The commands that have commands."""


def _new(folder: Path, loop: bool) -> int:
    from a2a_canvas.server.commands.new_agent import new_agent
    from a2a_canvas.server.settings.agent_folder import FolderError

    try:
        for line in new_agent(folder, program(sys.argv[0]), loop=loop):
            click.echo(line)
    except FolderError as error:
        return print_error(str(error))
    except OSError as error:
        return print_error(f"The folder {folder} cannot be created: {error.strerror}. Choose another place.")
    return 0


def _serve(reload: bool, check: bool, **values: Any) -> int:
    from a2a_canvas.server.commands.workers.worker_place import is_worker
    from a2a_canvas.server.settings.settings import SettingsError, load

    if reload and not check:
        return _serve_and_reload(values["agent"] or os.environ.get("A2A_CANVAS_AGENT", ""), values["workers"])
    try:
        settings = load(values)
        if settings.workers > 1 and not check and not is_worker():
            from a2a_canvas.server.commands.workers.supervisor import serve_by_workers

            return serve_by_workers(settings, sys.argv[1:])
    except SettingsError as error:
        return print_error(str(error))
    with _freeze_imports():
        from a2a_canvas.server.commands.serve import REFUSALS, check_agent, serve

    try:
        if check:
            click.echo(check_agent(values))
            return 0
        return serve(values, program(sys.argv[0]))
    except REFUSALS as error:
        return print_error(str(error))


@contextmanager
def _freeze_imports() -> Iterator[None]:
    """Exclude imported objects from garbage collection: they live as long as the process.

    Collecting takes a sixth of a start, and each full collection would pause a streaming server for 0.1 s.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _serve_and_reload(folder: str, workers: str | None) -> int:
    if (workers or os.environ.get("A2A_CANVAS_WORKERS", "") or "1") != "1":
        return print_error("--reload restarts one process, and cannot have --workers: leave out one of the two.")
    if not Path(folder or "-").is_dir():
        return print_error("--reload needs the folder of an agent: a2a-canvas serve FOLDER --reload")
    from a2a_canvas.server.commands.reload import serve_and_reload

    return serve_and_reload(Path(folder), [word for word in sys.argv[1:] if word != "--reload"])


def _doctor(url: str | None, grpc_url: str | None, model_call: bool, as_json: bool, **values: Any) -> int:
    import asyncio

    from a2a_canvas.server import log_output
    from a2a_canvas.server.commands.doctor.doctor_command import doctor_command
    from a2a_canvas.server.wire import TOKEN_VARIABLE

    if grpc_url and not url:
        return print_error("--grpc-url needs --url.")
    log_output.configure("critical", "text")
    out, token = sys.stdout or io.StringIO(), os.environ.get(TOKEN_VARIABLE, "")
    outside = {"url": url or "", "grpc_url": grpc_url or "", "token": token}
    return asyncio.run(doctor_command(values, out, **outside, model_call=model_call, json=as_json))


def _models() -> int:
    import asyncio

    from a2a_canvas.server.commands.models_command import models_command

    return asyncio.run(models_command(os.environ, sys.stdout or io.StringIO()))


def _run_on_database(command: Coroutine[Any, Any, int]) -> int:
    import asyncio

    from a2a_canvas.server.backend.open_database import DatabaseError
    from a2a_canvas.server.settings.settings import SettingsError

    try:
        return asyncio.run(command)
    except (SettingsError, DatabaseError) as error:
        return print_error(str(error))


def _db(action: str, dry_run: bool = False, force: bool = False, **values: Any) -> int:
    from a2a_canvas.server.commands.database_command import database_command

    # Python has no standard output if the shell has closed it (`>&-`).
    out = sys.stdout or io.StringIO()
    return _run_on_database(database_command(action, values, out, dry_run=dry_run, force=force))


def _key(action: str, name: str = "", user: str = "", no_store: bool = False, **values: Any) -> int:
    from a2a_canvas.server.commands.key_command import end_key, end_sessions, make_key, show_keys

    out, called = sys.stdout or io.StringIO(), program(sys.argv[0])
    match action:
        case "new":
            remarks = sys.stderr or io.StringIO()
            made = make_key(name, user, values, out, remarks, stored=not no_store, program=called)
            return _run_on_database(made)
        case "list":
            return _run_on_database(show_keys(values, out, called))
        case "revoke":
            return _run_on_database(end_key(name, values, out, called))
        case _:
            return _run_on_database(end_sessions(name, values, out))


def _verify_card(url: str, key: Path | None) -> int:
    from a2a_canvas.server.commands.card_verify import CardNotVerified, verify_card

    try:
        return verify_card(url, key, sys.stdout or io.StringIO())
    except CardNotVerified as error:
        print_error(str(error))
        return 1


def _usage(user: str | None, days: int, as_json: bool, **values: Any) -> int:
    from datetime import UTC, datetime

    from a2a_canvas.server.commands.usage_command import show_usage

    out, now = sys.stdout or io.StringIO(), datetime.now(UTC)
    return _run_on_database(show_usage(values, out, now, days=days, user=user, as_json=as_json))


def _completion(shell: str) -> int:
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made:
        click.echo(made(cli, {}, NAME, f"_{NAME.upper().replace('-', '_')}_COMPLETE").source())
    return 0


# --------------------------------------------------------------------------- environment


def program(called: str) -> str:
    """The name by which the user called this program, as far as the system reveals it."""
    path = Path(called)
    if path.name == "__main__.py":
        return "python -m a2a_canvas"
    # The system passes the whole path of a program that it found on the PATH.
    return path.name if shutil.which(path.name) == called else shlex.quote(called)
