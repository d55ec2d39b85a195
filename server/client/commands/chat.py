"""`a2a-canvas chat`: a conversation, line by line, with artifact commands such as `/show` and `/edit`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from uuid import uuid4

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from a2a_canvas.server.client.commands.send import (
    last_conversation,
    print_verdict,
    resolve_context,
    say,
    wait_for_last_task,
)
from a2a_canvas.server.client.conversation.errors import CannotBeDone, ClientError
from a2a_canvas.server.client.conversation.exchange import new_message
from a2a_canvas.server.client.conversation.invocation import SLASH, Invocation, invoke
from a2a_canvas.server.client.conversation.state_file import state_file
from a2a_canvas.server.client.screen.fold import PAUSED, SeenTask

OWN = {
    "/new": "start a new conversation",
    "/help": "see this list",
    "/quit": "end the chat, as quit, exit and Ctrl+D do",
}


@dataclass
class _Chat:
    """The state between two lines."""

    context: str = ""
    seen: SeenTask = field(default_factory=SeenTask)
    artifacts: dict[str, str] = field(default_factory=dict)
    """The names of the artifacts seen, by id, the newest last."""

    def keep(self, seen: SeenTask) -> None:
        self.seen, self.context = seen, seen.context_id or self.context
        for id_, name in seen.artifacts:
            self.artifacts.pop(id_, None)
            self.artifacts[id_] = name


def chat(invocation: Invocation, context: str, go_on: bool) -> int:
    """Talk until the user quits."""
    chat = _Chat(context or (last_conversation(invocation, "chat") if go_on else ""))
    if code := invoke(_greeting, invocation, {"chat": chat}):
        return code
    group = click.get_current_context().find_root().command
    assert isinstance(group, click.Group)
    for line in _lines():
        match line.split(maxsplit=1):
            case ["/quit" | "/exit" | "quit" | "exit"]:
                break
            case ["/new"]:
                chat = _Chat()
                invocation.tell("Your next line starts a new conversation.")
            case ["/help" | "/?"]:
                _help(invocation, group)
            case [word, *_] if word.startswith("/"):
                _slash(invocation, group, chat, line)
            case [_, *_]:
                invoke(_turn, replace(invocation, in_chat=True), {"chat": chat, "text": line.strip()})
    return 0


def _help(invocation: Invocation, group: click.Group) -> None:
    commands = [(name, group.get_command(click.Context(group), name)) for name in SLASH]
    rows = [(f"/{name}", command.short_help or "") for name, command in commands if command]
    invocation.table(("type", "to"), [*rows, *OWN.items()], "")
    invocation.say("ARTIFACT defaults to the newest one of the conversation.")


async def _greeting(invocation: Invocation, chat: _Chat) -> None:
    async with invocation.connect() as session:
        chat.context = await resolve_context(invocation, session, chat.context)
        if sys.stdin.isatty():
            goes_on = f" Continuing the conversation {chat.context}." if chat.context else ""
            agent = session.card.name or "An agent"
            invocation.tell(f"{agent} at {invocation.url}.{goes_on} /help lists the commands, quit or Ctrl+D ends.")


async def _turn(invocation: Invocation, chat: _Chat, text: str) -> None:
    asked = chat.seen.task_id if chat.seen.state in PAUSED else ""
    if asked:
        print_verdict(invocation, chat.seen, text)
    chat.seen = SeenTask(context_id=chat.context)
    async with invocation.connect() as session:
        if chat.context and not asked:
            await wait_for_last_task(invocation, session, chat.context)
        await say(invocation, session, new_message(text, chat.context, asked), keep=chat.keep, brief=True)


def _slash(invocation: Invocation, group: click.Group, chat: _Chat, line: str) -> None:
    try:
        name, *words = shlex.split(line[1:]) or [""]
        command = group.get_command(click.Context(group), name) if name in SLASH else None
        if command is None:
            said = f"There is no /{name}; /help lists the commands."
            near = get_close_matches(f"/{name}", [*(f"/{each}" for each in SLASH), *OWN])
            raise click.exceptions.NoSuchCommand(name, said, near)
        words = _with_artifact(command, words, chat.artifacts)
        context = chat.context or _new_context(name)
        if context and "--context" not in words and any(param.name == "context" for param in command.params):
            words += ["--context", context]
        headers = [word for each in invocation.headers for word in ("--header", f"{each.name}: {each.value}")]
        words += ["--url", invocation.url, "--color", invocation.color, *headers]
        if (
            not command.main(words, f"/{name}", standalone_mode=False, obj=replace(invocation, in_chat=True))
            and name == "put"
        ):
            chat.context = context
    except click.exceptions.Abort:
        return
    except (click.ClickException, ClientError, ValueError) as error:
        invocation.fail(error.format_message() if isinstance(error, click.ClickException) else str(error))


def _new_context(name: str) -> str:
    """The context of a command typed before the conversation has one; never that of the previous conversation.

    Raises:
        CannotBeDone: the command needs an existing artifact.
    """
    if name == "put":
        return str(uuid4())
    if name in ("tasks", "contexts", "watch", "cancel"):
        return ""
    raise CannotBeDone("This conversation has no artifacts yet: say what to write, or /put a file")


def _with_artifact(command: click.Command, words: list[str], artifacts: Mapping[str, str]) -> list[str]:
    """The words, preceded by the newest artifact of the conversation if the command needs one and none is named."""
    wants = any(param.name == "artifact" for param in command.params)
    texts = [*artifacts, *artifacts.values()]
    named = any(word and text.startswith(word) for word in words for text in texts)
    return words if named or not wants or not artifacts else [[*artifacts][-1], *words]


def _lines() -> Iterator[str]:
    """The lines typed, or piped if the standard input is not a terminal."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    session: PromptSession[str] = PromptSession(
        history=_history(),
        auto_suggest=AutoSuggestFromHistory(),
        completer=WordCompleter([*(f"/{name}" for name in SLASH), *OWN], sentence=True),
        complete_while_typing=False,
    )
    while True:
        try:
            yield session.prompt(FormattedText([("bold", "> ")]))
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _history() -> History:
    file = state_file("chat-history")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
