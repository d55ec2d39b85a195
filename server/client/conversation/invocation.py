"""One call of a command: its server, its output, and its errors."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shlex
import stat
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TextIO
from urllib.parse import urlsplit

from a2a.types import a2a_pb2 as pb
from rich.console import Console
from rich.table import Table
from rich.text import Text

from a2a_canvas.server.client.conversation.address import (
    DEFAULT_PORT,
    DEFAULT_URL,
    RequestHeaders,
    is_local,
    server_url,
)
from a2a_canvas.server.client.conversation.connection import Session, connect, explain, is_unreachable
from a2a_canvas.server.client.conversation.errors import INTERRUPTED, ClientError
from a2a_canvas.server.client.conversation.state_file import last_server
from a2a_canvas.server.client.screen.display import fit, one_line
from a2a_canvas.server.client.screen.fold import SeenTask
from a2a_canvas.server.client.screen.screen import Screen
from a2a_canvas.server.command_form import with_program_name
from a2a_canvas.server.wire import URL_VARIABLE, whole_numbers

Sleep = Callable[[float], Awaitable[object]]
"""Waits for some seconds between tries."""

WIDE = 100_000
"""Columns of an output that is not a terminal. Each cell has at most its share, so that no column is omitted."""


SLASH = (
    *("show", "edit", "undo", "redo", "versions", "diff", "restore", "open", "put", "pull", "artifacts"),
    *("tasks", "contexts", "watch", "cancel"),
)
"""The commands that can be typed after a `/`."""


@dataclass(frozen=True)
class Invocation:
    """What every command is called with.

    Attributes:
        headers: sent with every request.
        program: this program, as typed into a shell.
        json: print the server's responses as JSON.
        color: `auto`, `always` or `never`.
        in_chat: the user types at the prompt of `chat`, where commands begin with a `/`.
        thinking: show the model's thinking in the status line.
        quiet: print nothing but the result.
        out: for results. Python has no stream if the shell closed it (`>&-`).
        err: for failures, and for statuses if `out` is not a terminal.
        pause: waits between tries.
    """

    url: str = DEFAULT_URL
    headers: RequestHeaders = ()
    program: str = "a2a-canvas"
    json: bool = False
    color: str = "auto"
    in_chat: bool = False
    thinking: bool = False
    quiet: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout or io.StringIO())
    err: TextIO = field(default_factory=lambda: sys.stderr or io.StringIO())
    pause: Sleep = asyncio.sleep

    @cached_property
    def console(self) -> Console:
        """`out`: tables, Markdown and styles on a terminal, plain text elsewhere."""
        return _console(self.out, self.color)

    @cached_property
    def messages(self) -> Console:
        """`err`."""
        return _console(self.err, self.color)

    @cached_property
    def screen(self) -> Screen:
        """The display of tasks."""
        return Screen(self.console, self.messages, thinking=self.thinking)

    def connect(self) -> AbstractAsyncContextManager[Session]:
        """A connection to the server."""
        return connect(self.url, self.headers)

    def show(self, response: pb.StreamResponse, seen: SeenTask) -> None:
        """Show a response, and the state `seen` after it, unless the output is JSON or only the result."""
        if not (self.json or self.quiet):
            self.screen.show(response, seen)

    def line(self, *words: str) -> str:
        """A command for the same server, to copy to the shell or prompt. `…` stands for the user's text."""
        if self.in_chat and words[0] in SLASH:
            return f"/{' '.join(word if word == '…' else shlex.quote(word) for word in words)}"
        named = server_url(os.environ.get(URL_VARIABLE, "")) or DEFAULT_URL
        url = [] if self.url == named else ["--url", self.url]
        typed = [word if word == "…" else shlex.quote(word) for word in (*words, *url)]
        return " ".join([self.program, *typed, *(header.option for header in self.headers if header.option)])

    def print_json(self, value: Any) -> None:
        """One line of JSON on `out`."""
        self.print_exact(f"{json.dumps(whole_numbers(value))}\n")

    def print_exact(self, content: str | bytes) -> None:
        """Content on `out` byte for byte, text as UTF-8 whatever the locale is, if `out` has a buffer of bytes."""
        exact = content.encode() if isinstance(content, str) else content
        self.out.flush()
        if buffer := getattr(self.out, "buffer", None):
            buffer.write(exact)
            buffer.flush()
        else:
            self.out.write(exact.decode(errors="replace"))

    def say(self, text: str) -> None:
        """One line on `out`."""
        self.console.print(one_line(text), soft_wrap=True)

    def tell(self, text: str) -> None:
        """One line on `err`."""
        self.messages.print(one_line(text), soft_wrap=True)

    def note(self, text: str) -> None:
        """A dim line on `err`, if it is a terminal: additional information."""
        if self.messages.is_terminal:
            self.messages.print(one_line(text), style="dim", soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], nothing: str) -> None:
        """A table; on a terminal its last column is cut to fit."""
        live = self.console.is_terminal
        shown = Table(box=None, pad_edge=False, header_style="dim", expand=live)
        for column in columns:
            shown.add_column(column, no_wrap=True, ratio=1 if column is columns[-1] else None)
        for row in rows:
            shown.add_row(*(Text(fit(one_line(each), WIDE // len(columns))) for each in row))
        if not shown.rows:
            self.tell(nothing)
            return
        console = self.console if live else Console(file=self.out, width=WIDE, color_system=None)
        with console.capture() as captured:
            console.print(shown)
        self.out.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
        self.out.flush()

    def fail(self, text: str, *advice: str) -> None:
        """One line on `err`, and below it a line for each next step."""
        self.screen.close()
        # Sentences are wrapped between words; a command to copy stays on one line.
        self.messages.print(
            one_line(f"a2a-canvas: {with_program_name(text, self.program)}"), soft_wrap=not self.messages.is_terminal
        )
        for line in advice:
            self.messages.print(one_line(with_program_name(line, self.program)), soft_wrap=True)


def _suggest_servers(url: str, program: str) -> Iterator[str]:
    """Advice after no server was found at an address."""
    if is_local(url):
        port = urlsplit(url).port or DEFAULT_PORT
        yield f"Start one with: {program} serve{'' if port == DEFAULT_PORT else f' --port {port}'}"
    last = last_server()
    if last and last != url:
        yield from suggest_last_server(last)
    else:
        yield f"To use another: --url or ${URL_VARIABLE}"


def suggest_last_server(url: str) -> tuple[str, ...]:
    """A line that names the server with the last conversation, if there is one."""
    return (f"The last conversation is with {url}. To use that server: export {URL_VARIABLE}={url}",) if url else ()


def _console(stream: TextIO, color: str) -> Console:
    force = True if color == "always" else None
    styles: Literal["auto"] | None = None if color == "never" else "auto"
    return Console(file=stream, force_terminal=force, color_system=styles, highlight=False, markup=False, emoji=False)


def is_piped(stdin: TextIO) -> bool:
    """Whether a pipe or a file was given as the standard input."""
    try:
        mode = os.fstat(stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    # Not a terminal, /dev/null or a socket: a service manager may never close its socket.
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def invoke(
    command: Callable[..., Coroutine[Any, Any, int | None] | int], invocation: Invocation, values: Mapping[str, Any]
) -> int:
    """Run a command; raises only `BrokenPipeError`.

    Returns:
        The command's own exit code, 1 or 2 if it failed, 130 if it was interrupted.
    """
    for stream in (invocation.out, invocation.err):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        running = command(invocation, **values)
        return running if isinstance(running, int) else asyncio.run(await_command(invocation, running))
    except ClientError as error:
        invocation.fail(str(error), *error.advice)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED


async def await_command(invocation: Invocation, command: Awaitable[int | None]) -> int:
    """Await a command and report its failure (`invoke`)."""
    try:
        return await command or 0
    except BrokenPipeError:
        raise
    except asyncio.CancelledError:
        invocation.fail("Interrupted")
        return INTERRUPTED
    except ClientError as error:
        invocation.fail(str(error), *error.advice)
        return error.exit_code
    except Exception as error:
        advice = _suggest_servers(invocation.url, invocation.program) if is_unreachable(error) else ()
        invocation.fail(explain(error, invocation.url), *advice)
        return 1
    finally:
        invocation.screen.close()
