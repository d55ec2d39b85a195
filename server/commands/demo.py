"""`a2a-canvas demo`: a minute with two watchers, real servers, a temporary file, and `kill -9` in the middle.

Rule 1: everything that is seen came over A2A from a server process; only the model is a script (demo.yaml).
Rule 2: whatever ends the demo, its server is killed and its files are removed.
Rule 3: without a terminal each step is a line.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click
from a2a.types import a2a_pb2 as pb
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from a2a_canvas.server.a2a_client.agent_connection import AgentConnection
from a2a_canvas.server.a2a_client.follower import task_of
from a2a_canvas.server.client.commands.arguments import value_type
from a2a_canvas.server.client.conversation.connection import connect
from a2a_canvas.server.client.conversation.errors import INTERRUPTED, ClientError
from a2a_canvas.server.client.conversation.exchange import converse, new_message
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.client.screen.fold import extension_data
from a2a_canvas.server.command_form import CommandForm
from a2a_canvas.server.wire import CANVAS

PATIENCE: Final = 60.0
"""Seconds that a step may take, or a start: more if the demo is slowed down."""
CONTEXT, ARTIFACT = "demo", "guide"
REQUEST, EDITED, LAST = "Write a short guide to tide pools", "forgets twice", "ceilings"
"""What is asked for; words of the edit, and of the end, as demo.yaml has them."""
ROWS: Final = 19
"""Lines of a watcher's window, with its frame."""

NEXT = """\
To start your own server:
  {program} serve
To talk to it, in a second terminal:
  {program} send "write an outline about tide pools"
With Claude as the model:
  ANTHROPIC_API_KEY=... {program} serve"""


def command_forms() -> dict[str, CommandForm]:
    """What the command takes."""
    speed = click.Option(
        ["--speed"],
        type=value_type(parse_speed),
        default=1.0,
        metavar="N",
        help="speed factor, 0.1 to 100 (default: 1)",
    )
    return {"demo": CommandForm(run, (speed,), examples=("demo", "demo --speed 3"))}


def parse_speed(text: str) -> float:
    """A speed as it is typed."""
    with suppress(ValueError):
        if 0.1 <= float(text) <= 100:
            return float(text)
    raise ValueError(f"must be a number from 0.1 to 100: {text!r}")


def run(speed: float) -> int:
    """Show the demo on the standard output; the exit code is returned."""
    console = Console(highlight=False, markup=False, emoji=False)
    try:
        asyncio.run(Demo(console, speed).play())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED
    program = click.get_current_context().obj or "a2a-canvas"
    console.print(f"\n{NEXT.format(program=program)}", soft_wrap=True)
    return 0


# ------------------------------------------------------------------------- a watcher


@dataclass
class Watcher:
    """One client: the document as the events that it has read say it is.

    Attributes:
        edits: of each edit that is being written, the passage and what is to take its place so far.
        lost: it has no connection.
    """

    name: str
    text: str = ""
    version: int = 0
    edits: dict[str, tuple[str, str]] = field(default_factory=dict)
    lost: bool = False
    joined: set[str] = field(default_factory=set)

    def take(self, response: pb.StreamResponse) -> None:
        """Fold one response, with canvas:v1, of any task that changes the document."""
        self.lost = False
        match response.WhichOneof("payload"):
            case "task":
                self._take_snapshot(response.task)
            case "artifact_update":
                update = response.artifact_update
                written = "".join(part.text for part in update.artifact.parts)
                self.text = self.text + written if update.append else written
                self.version = int(extension_data(update.metadata, CANVAS).get("artifactVersion", self.version))
            case "status_update":
                self._take_edit(extension_data(response.status_update.metadata, CANVAS).get("edit", {}))

    def _take_snapshot(self, task: pb.Task) -> None:
        """A task shows its own last change: one that is joined again may be behind the document."""
        ours = extension_data(task.metadata, CANVAS)
        for artifact in task.artifacts:
            version = int(ours["artifacts"][artifact.artifact_id]["artifactVersion"])
            if version >= self.version or task.id not in self.joined:
                self.text, self.version = "".join(part.text for part in artifact.parts), version
        self.joined.add(task.id)
        for edit in ours.get("openEdits", ()):
            self._take_edit({**edit, "phase": "start"})

    def _take_edit(self, edit: dict[str, Any]) -> None:
        match edit.get("phase"):
            case "start":
                start, end = (int(edit["selection"][each]) for each in ("start", "end"))
                self.edits[edit["id"]] = self.text[start:end], edit.get("text", "")
            case "chunk" if edit["id"] in self.edits:
                passage, written = self.edits[edit["id"]]
                self.edits[edit["id"]] = passage, written + edit["chunk"]
            case "complete" | "abort":
                self.edits.pop(edit["id"], None)

    def window(self) -> RenderableType:
        """The document; what is being written takes the place of its passage."""
        shown = Text(self.text)
        for passage, written in self.edits.values():
            before, found, _ = shown.plain.partition(passage)
            if found and written:
                shown = shown[: len(before)] + Text(written, "bold green") + shown[len(before) + len(found) :]
        state = "connection lost, tries again" if self.lost else f"version {self.version}" if self.version else ""
        border = "red" if self.lost else "green" if self.edits else "dim"
        return Panel(shown, title=self.name, subtitle=state, height=ROWS, border_style=border)


async def _wait_until_ready(process: asyncio.subprocess.Process) -> None:
    """Wait until a server says that it is ready."""
    assert process.stdout
    line = b"nothing"
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            async for line in process.stdout:
                if b" listens on " in line:
                    return
    raise ClientError(f"The server did not start; it said: {line.decode(errors='replace')}")


# -------------------------------------------------------------------------- the demo


class Demo:
    """The steps, one after the other.

    Args:
        speed: how many times faster than normal everything is.
    """

    def __init__(self, console: Console, speed: float) -> None:
        self._console, self._speed = console, speed
        self._left, self._right = Watcher("one client"), Watcher("another client")
        self._said = Text("A server starts, on a new SQLite file…", "bold")
        self._following: list[asyncio.Task[None]] = []
        self._answering = asyncio.Event()
        self._url = ""

    async def play(self) -> None:
        """Raises `ClientError` if a server does not do what it should."""
        playing = asyncio.current_task()
        assert playing
        for number in (signal.SIGTERM, signal.SIGHUP):  # asyncio does the same for Ctrl+C
            asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
        with ExitStack() as stack:
            place = Path(stack.enter_context(TemporaryDirectory(prefix="a2a-canvas-demo-")))
            # The client remembers nothing of it, and asks no proxy for it.
            os.environ |= {"XDG_STATE_HOME": str(place), "NO_PROXY": "127.0.0.1"}
            if self._console.is_terminal:
                live = Live(get_renderable=self._picture, console=self._console, refresh_per_second=12)
                stack.enter_context(live)
            try:
                await self._steps(place)
            finally:
                for following in self._following:
                    following.cancel()
                await asyncio.gather(*self._following, return_exceptions=True)

    async def _steps(self, place: Path) -> None:
        left, right = both = self._left, self._right
        async with self._server(place) as process:
            await self._say("A server runs, on a new SQLite file. One client asks for a guide to tide pools.")
            guide = await self._send(REQUEST)
            self._follow(guide, left)
            await self._wait_for(lambda: len(left.text) > 60)
            self._follow(guide, right)
            await self._say("Another client joins late, and sees the same document grow.")
            await self._wait_for(lambda: all(each.edits or each.version > 1 for each in both))
            edit = await self._send("Make it warmer", op="edit", selection={"lineStart": 3})
            self._follow(edit, *both)
            await self._say("While the rest is written, someone selects line 3: “Make it warmer”. Nothing is locked.")
            await self._wait_for(lambda: all(EDITED in each.text for each in both))
            self._answering.clear()
            process.kill()
            await self._say(f"kill -9 {process.pid}: the server is gone, in the middle of a sentence.")
            await self._wait_for(lambda: (left.lost and right.lost) or all(each.done() for each in self._following))
        async with self._server(place):
            await self._say("It starts again. What was committed is there; the model is asked for the rest once more.")
            await self._wait_for(lambda: all(LAST in each.text and not each.edits for each in both))
            whole = left.text
            self._follow(await self._send("undo", op="undo"), *both)
            await self._say("Undo: one step back, for both.")
            await self._wait_for(lambda: all(each.text != whole for each in both))
            self._follow(await self._send("redo", op="redo"), *both)
            await self._say("Redo: no version is ever lost.")
            await self._wait_for(lambda: all(each.text == whole for each in both))

    # ----------------------------------------------------------------------- the screen

    def _picture(self) -> RenderableType:
        windows = Table.grid(expand=True, padding=0)
        windows.add_column(ratio=1)
        windows.add_column(ratio=1)
        windows.add_row(self._left.window(), self._right.window())
        return Group(windows, self._said)

    async def _say(self, line: str) -> None:
        if self._console.is_terminal:
            self._said = Text(line, "bold")
        else:
            self._console.print(line, soft_wrap=True)
        await asyncio.sleep(2.5 / self._speed)

    async def _wait_for(self, reached: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE / min(self._speed, 1)):
                while not reached():
                    for following in self._following:
                        if following.done():
                            following.result()
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise ClientError("The demo stopped: a server or a client is too slow. Try again") from None
        if not self._console.is_terminal:
            versions = ", ".join(f"{each.name} has version {each.version}" for each in (self._left, self._right))
            self._console.print(f"    {versions}", soft_wrap=True)

    # ------------------------------------------------------------------------ the server

    @asynccontextmanager
    async def _server(self, place: Path) -> AsyncIterator[asyncio.subprocess.Process]:
        """A server process on the file in `place`, which answers; killed at the end of the context."""
        if not self._url:
            script = (Path(__file__).parent / "demo.yaml").read_text()
            delays = re.compile(r"delay: ([\d.]+)")
            (place / "demo.yaml").write_text(delays.sub(lambda at: f"delay: {float(at[1]) / self._speed}", script))
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self._url = f"http://127.0.0.1:{free.getsockname()[1]}"
        options = {
            "--port": self._url.rpartition(":")[2],
            "--database": f"sqlite:///{place}/demo.db",
            "--model": f"script:{place}/demo.yaml",
            "--log-level": "critical",
        }
        words = [word for option in options.items() for word in option]
        environ = {name: value for name, value in os.environ.items() if not name.upper().startswith("A2A_CANVAS_")}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "a2a_canvas", "serve", *words),
            env=environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # Ctrl+C is for the demo
        )
        try:
            await _wait_until_ready(process)
            self._answering.set()
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    # ------------------------------------------------------------------------ the clients

    async def _send(self, text: str, **operation: Any) -> str:
        """Send a message, with an operation on the document if there is one; the id of its task."""
        message = new_message(text, CONTEXT)
        if operation:
            message.metadata.update({CANVAS: {"artifactId": ARTIFACT, **operation}})
        async with connect(self._url) as session, aclosing(AgentConnection(session.client).send(message)) as events:
            return task_of(await anext(events))[0]

    def _follow(self, task_id: str, *watchers: Watcher) -> None:
        self._following += [asyncio.create_task(self._show_task(watcher, task_id)) for watcher in watchers]

    async def _show_task(self, watcher: Watcher, task_id: str) -> None:
        async def reconnect(_: float) -> None:
            watcher.lost = True
            watcher.edits.clear()
            await self._answering.wait()

        invocation = Invocation(url=self._url, quiet=True, pause=reconnect)
        async with connect(self._url) as session:
            await converse(invocation, session, task_id, (CANVAS,), lambda each, _: watcher.take(each))
