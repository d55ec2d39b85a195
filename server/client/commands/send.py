"""`a2a-canvas send`: sends one message to any A2A server, and shows the answer."""

from __future__ import annotations

import mimetypes
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, TaskNotFoundError, UnsupportedOperationError

from a2a_canvas.server.client.conversation.connection import SEARCHED, Session, explain
from a2a_canvas.server.client.conversation.errors import CannotBeDone, ClientError
from a2a_canvas.server.client.conversation.exchange import check_outcome, converse, new_message
from a2a_canvas.server.client.conversation.invocation import Invocation, is_piped, suggest_last_server
from a2a_canvas.server.client.conversation.names import did_you_mean, resolve
from a2a_canvas.server.client.conversation.state_file import last_context, last_server
from a2a_canvas.server.client.screen.display import one_line, size_of
from a2a_canvas.server.client.screen.fold import ENDED_BADLY, OVER, PAUSED, SeenTask, collect_artifacts
from a2a_canvas.server.wire import TURN, is_yes

MAX_ATTACHED = 7 * 1024 * 1024
"""Bytes of all attached files: as base64 they fit into a request of 10 MB."""
MAX_IMAGE = 3_900_000
"""Bytes of an image: models accept 5 MB of base64."""
RECENT = 20
"""The running task is searched among this number of a conversation's newest tasks."""
_BEGINNING = re.compile("[0-9a-f-]{4,31}")
"""The length of an id made by a server, a UUID."""
_IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
_FOR_PROGRAMS = re.compile(r" [^.]*\bGetTask\b[^.]*\.")
"""Advice in terms of A2A operations, which the terminal replaces."""


async def send(
    invocation: Invocation,
    words: tuple[str, ...],
    context: str = "",
    go_on: bool = False,
    task: str = "",
    attach: tuple[str, ...] = (),
    output: str = "",
) -> int:
    """Send a message and show replies, artifacts and ids until the task ends or asks a question."""
    if go_on and context:
        raise CannotBeDone("Use -c or --context, not both")
    if go_on:
        context = last_conversation(invocation, "send")
    if output and not (folder := Path(output).parent).is_dir():
        raise CannotBeDone(f"{output} cannot be written: there is no folder {folder}")
    message = new_message(typed_text(words, sys.stdin), context, task, attachments(attach))
    async with invocation.connect() as session:
        if go_on:
            await wait_for_last_task(invocation, session, context)
        else:
            message.context_id = await resolve_context(invocation, session, context)
        message.task_id = await _resolve_task(session, task)
        return await say(invocation, session, message, output)


def last_conversation(invocation: Invocation, command: str) -> str:
    """The id of the last conversation with the server.

    Raises:
        CannotBeDone: there is none. The message names the server that has one.
    """
    if context := last_context(invocation.url):
        return context
    none = f"There is no last conversation with {invocation.url}: {command} without -c starts one"
    raise CannotBeDone(none, *suggest_last_server(last_server()))


async def resolve_context(invocation: Invocation, session: Session, typed: str) -> str:
    """The id of the conversation that begins with `typed`; without a match, `typed` is the id of a new one."""
    try:
        if not typed or await session.tasks(1, context_id=typed):
            return typed
        known = await session.contexts()
    except (ClientError, A2AError):
        return typed
    if _BEGINNING.fullmatch(typed) and any(context.startswith(typed) for context in known):
        return resolve(typed, known, "context")
    invocation.note(f"Starting a new conversation: {typed}{did_you_mean(typed, known)}")
    return typed


async def _resolve_task(session: Session, typed: str) -> str:
    """The id of the task that begins with `typed`; `typed` itself if there are too many tasks to list."""
    try:
        known = {task.id: "" for task in await session.tasks()} if typed else {}
    except (ClientError, A2AError):
        return typed
    return resolve(typed, known, "task") if 0 < len(known) < SEARCHED else typed


async def wait_for_last_task(invocation: Invocation, session: Session, context: str) -> None:
    """Follow a conversation's running task, so that the next message finds its results."""
    try:
        newest = await session.tasks(RECENT, context_id=context)
    except (ClientError, A2AError):
        return
    if working := next((task for task in newest if task.status.state not in OVER), None):
        invocation.tell("The last task is still running: your message will be sent when it ends.")
        waiting = replace(invocation, json=False, quiet=invocation.json or invocation.quiet)
        seen = await converse(waiting, session, working.id, (TURN,))
        if not waiting.quiet:
            show_end(waiting, seen, {}, brief=True)


async def say(
    invocation: Invocation,
    session: Session,
    message: pb.Message,
    output: str = "",
    keep: Callable[[SeenTask], None] = lambda _: None,
    *,
    brief: bool = False,
) -> int:
    """Send a message and show the answer; returns the exit code.

    Args:
        output: the file to write the artifact to, if any.
        keep: called with the state of the task after each response.
        brief: omit the ids.
    """
    made: dict[str, pb.Artifact] = {}

    def take(response: pb.StreamResponse, seen: SeenTask) -> None:
        collect_artifacts(made, response)
        keep(seen)
        invocation.show(response, seen)

    try:
        seen = await converse(invocation, session, message, (TURN,), take)
        while not brief and (answer := await _approval(invocation, seen)):
            print_verdict(invocation, seen, answer)
            answered = new_message(answer, seen.context_id, seen.task_id)
            seen = await converse(invocation, session, answered, (TURN,), take)
    except (TaskNotFoundError, UnsupportedOperationError) as error:
        if not message.task_id:
            raise
        is_none = f"There is no task {message.task_id!r}"
        refused = _FOR_PROGRAMS.sub("", explain(error, invocation.url))
        said = is_none if isinstance(error, TaskNotFoundError) else refused
        advice = "Omit --task; -c or --context continues the conversation."
        raise ClientError(said, advice) from None
    if not invocation.json:
        show_end(invocation, seen, made, brief=brief)
    code = check_outcome(seen)
    if output and (made or not code):
        _write(invocation, Path(output), list(made.values()))
    return code


async def _approval(invocation: Invocation, seen: SeenTask) -> str:
    """The user's answer to a call that waits for approval; empty without one, or without a terminal."""
    stdin_is_terminal = sys.stdin is not None and sys.stdin.isatty()
    if not (seen.asked and stdin_is_terminal and invocation.out.isatty()) or invocation.json or invocation.quiet:
        return ""
    invocation.screen.approval(seen)
    from prompt_toolkit import PromptSession

    prompt: PromptSession[str] = PromptSession()
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            if answer := (await prompt.prompt_async("Run it? y, n, or what to do instead: ")).strip():
                return answer
    return ""


def print_verdict(invocation: Invocation, seen: SeenTask, answer: str) -> None:
    """Print the answer to the calls that waited for approval."""
    tools = ", ".join(call.tool for call in seen.asked)
    if tools and not (invocation.json or invocation.quiet):
        invocation.tell(f"{'Approved' if is_yes(answer) else 'Not approved'}: {tools}")


def show_end(invocation: Invocation, seen: SeenTask, made: dict[str, pb.Artifact], *, brief: bool = False) -> None:
    """Show the end of a task: with `quiet` its results, else the reply and the ids."""
    if invocation.quiet:
        result = [part_bytes(artifact) for artifact in made.values()] or [f"{seen.message}\n".encode()]
        invocation.print_exact(b"".join(result) if seen.state not in ENDED_BADLY else b"")
        return
    screen = invocation.screen
    screen.approval(seen)
    screen.closing_reply("" if seen.asked or seen.state in ENDED_BADLY else seen.message)
    if not brief:
        screen.print_ids(seen)
    if seen.asked and brief:
        screen.line("Type y to approve, n to refuse, or what to do instead.")
    elif seen.asked:
        screen.line(f"Approve with: {invocation.line('send', '--task', seen.task_id, 'yes')}")
        screen.line(f"Refuse with: {invocation.line('send', '--task', seen.task_id, 'no')}")
    elif seen.state in PAUSED and not brief:
        screen.line(f"Answer with: {invocation.line('send', '--task', seen.task_id, '…')}")


def _write(invocation: Invocation, output: Path, made: Sequence[pb.Artifact]) -> None:
    names = {artifact.artifact_id: Path(artifact.name).name or artifact.artifact_id for artifact in made}
    if not made:
        raise ClientError(f"The task created no artifact: there is nothing to write to {output}")
    if len(made) > 1 and not (output.exists() or output.suffix):
        with suppress(OSError):
            output.mkdir()
    if len(made) > 1 and not output.is_dir():
        raise ClientError(f"The task created {', '.join(names.values())}: pass -o a folder, such as -o .")
    for artifact in made:
        file = output / names[artifact.artifact_id] if output.is_dir() else output
        try:
            file.write_bytes(part_bytes(artifact))
        except OSError as error:
            raise ClientError(f"{file} cannot be written: {error.strerror}") from None
        if not (invocation.quiet or invocation.json):
            invocation.screen.line(f"Wrote {file} ({size_of(file.stat().st_size)})")


def part_bytes(artifact: pb.Artifact) -> bytes:
    """The content of an artifact: its text and its files, one after the other."""
    return b"".join(part.raw if part.HasField("raw") else part.text.encode() for part in artifact.parts)


# ------------------------------------------------------------------------ what is typed


def typed_text(words: Sequence[str], stdin: TextIO | None) -> str:
    """The typed text, followed by the piped one; `-` is the standard input.

    Raises:
        CannotBeDone: there is no text, or the piped input is not text.
    """
    piped = stdin is not None and (list(words) == ["-"] or is_piped(stdin))
    said = "" if list(words) == ["-"] else " ".join(words)
    try:
        read = stdin.buffer.read().decode().strip() if stdin is not None and piped else ""
    except UnicodeDecodeError as error:
        raise CannotBeDone(f"The standard input is not UTF-8 text: byte {error.start + 1} is wrong") from None
    text = "\n\n".join(filter(None, (said, read)))
    if not text.strip():
        raise CannotBeDone("There is nothing to send: type a message, pipe one in, or use chat")
    return text


def attachments(files: Sequence[str]) -> list[pb.Part]:
    """Files as parts of a message.

    Raises:
        CannotBeDone: one cannot be read, or has a type that models do not read, or they are too large.
    """
    parts = [_attachment(Path(file)) for file in files]
    if (size := sum(len(part.raw) for part in parts)) > MAX_ATTACHED:
        raise CannotBeDone(f"The attached files have {size_of(size)}; the limit is {size_of(MAX_ATTACHED)}")
    return parts


def _attachment(file: Path) -> pb.Part:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise CannotBeDone(f"{file} cannot be attached: {error.strerror}") from None
    suffix = file.suffix.lower()
    if suffix in _IMAGES and len(content) > MAX_IMAGE:
        raise CannotBeDone(f"{file} has {size_of(len(content))}; the limit for an image is {size_of(MAX_IMAGE)}")
    media_type = _IMAGES.get(suffix) or ("application/pdf" if suffix == ".pdf" else _text_type(file, content))
    return pb.Part(raw=content, filename=file.name, media_type=media_type)


def _text_type(file: Path, content: bytes) -> str:
    try:
        content.decode()
    except UnicodeDecodeError:
        kinds = "an image (PNG, JPEG, GIF, WebP), nor a PDF, nor text in UTF-8"
        raise CannotBeDone(f"{one_line(str(file))} cannot be attached: it is neither {kinds}") from None
    guessed = mimetypes.guess_type(file.name)[0] or ""
    return guessed if guessed.startswith("text/") or guessed == "application/json" else "text/plain"
