"""`a2a-canvas send`: one message to any A2A server, and everything that comes back, on the screen.

Every failure is one line on `err`, and it names the task and the context once they are known. Where there is something
to type, to go on, it stands below.
"""

from __future__ import annotations

import asyncio
import shutil
from typing import TextIO
from uuid import uuid4

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.client import connection
from a2a_canvas.server.client.connection import ConnectionLost
from a2a_canvas.server.client.ending import ended
from a2a_canvas.server.client.exchange import Exchange, Pause
from a2a_canvas.server.client.fold import ENDED_BADLY, Seen, events
from a2a_canvas.server.client.output import json_line
from a2a_canvas.server.client.send_options import DEFAULT_URL, SendOptions
from a2a_canvas.server.client.shown import Facts, Failure, FinalReply, Line, Status
from a2a_canvas.server.client.terminal import Terminal

__all__ = ["DEFAULT_URL", "SendOptions", "send"]


async def send(options: SendOptions, out: TextIO, err: TextIO, *, pause: Pause = asyncio.sleep) -> int:
    """Send one message and show what comes back until the task ends or asks.

    Args:
        options: what to send and where.
        out: replies, artifacts and ids, or with `options.json` one event per line. Colours and a status line
            are used when it is a terminal.
        err: failures, and statuses where `out` is no terminal.
        pause: waits that many seconds, between tries.

    Returns:
        The exit code: 0 completed or asked, 1 failed, 130 interrupted. Nothing is raised.
    """
    view = _View(options, Terminal(out, err, lambda: shutil.get_terminal_size().columns), out)
    exchange = Exchange(options.url, view, pause=pause)

    async def run() -> int:
        async with connection.connected(options.url) as (http, card):
            return view.conclude(await exchange.run(http, card, _message(options)))

    return await ended(
        run(),
        view.terminal,
        lambda: _interrupted(exchange.seen, options),
        lambda error: _failed(error, exchange.seen, options),
    )


class _View:
    def __init__(self, options: SendOptions, terminal: Terminal, out: TextIO) -> None:
        self.terminal = terminal
        self._options, self._out = options, out

    def take(self, response: pb.StreamResponse) -> None:
        if self._options.json:
            json_line(self._out, MessageToDict(response))
            return
        for event in events(response):
            self.terminal.show(event)

    def announce(self, text: str) -> None:
        if not self._options.json:
            self.terminal.show(Status(text))

    def conclude(self, seen: Seen) -> int:
        problem = ENDED_BADLY.get(seen.state, "")
        if not self._options.json:
            self.terminal.show(FinalReply("" if problem else seen.message))
            self.terminal.show(Facts(seen.context_id, seen.task_id, seen.artifacts))
            if seen.state == pb.TASK_STATE_INPUT_REQUIRED:
                self.terminal.show(Line(self._options.how_to_answer(seen.task_id)))
        if problem:
            self.terminal.show(Failure(f"{problem}: {seen.message}" if seen.message else f"{problem}."))
        return 1 if problem else 0


def _message(options: SendOptions) -> pb.Message:
    return pb.Message(
        message_id=str(uuid4()),
        role=pb.ROLE_USER,
        parts=[pb.Part(text=options.text)],
        context_id=options.context,
        task_id=options.task,
    )


def _interrupted(seen: Seen, options: SendOptions) -> Failure:
    if not seen.task_id:
        return Failure("Interrupted before the server named a task")
    context = f" (context {seen.context_id})" if seen.context_id else ""
    advice = options.how_to_go_on(seen.task_id, seen.context_id)
    return Failure(f"Interrupted; the task goes on: {seen.task_id}{context}", advice)


def _failed(error: Exception, seen: Seen, options: SendOptions) -> Failure:
    advice: tuple[str, ...] = ()
    match error:
        case ConnectionLost():
            advice = options.how_to_go_on(seen.task_id, seen.context_id)
        case TaskNotFoundError() | UnsupportedOperationError() if options.task and not seen.task_id:
            advice = (options.instead_of_task(),)
    return Failure(connection.explain(error, options.url) + seen.where, advice)
