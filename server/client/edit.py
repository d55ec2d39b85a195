"""`a2a-canvas edit`, `undo`, `redo`, `restore` and `put`: one operation on one artifact.

Rule 1: an operation goes only to a server whose card lists `urn:a2a-canvas:canvas:v1`. Any other agent would read it as
        a wish in words, and do who knows what.
Rule 2: on a terminal the new passage is shown while it is written. What is no terminal gets it once, when the edit is
        done, so that what comes of an edit that broke off is nothing, and with the end of its last line. What else
        there is to say goes to `err`.
Rule 3: the artifact itself is not shown: `show` and `diff` do that. It is read first, for its name, and so that
        one that there is not is told in the same words whatever is to be done with it.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from http import HTTPStatus
from typing import Any, TextIO, assert_never

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.agent.intent import CANVAS
from a2a_canvas.server.client import connection
from a2a_canvas.server.client.artifacts import Artifacts, NotServed, address, text_of
from a2a_canvas.server.client.connection import ConnectionLost, SendError
from a2a_canvas.server.client.edit_steps import Step, steps
from a2a_canvas.server.client.ending import ended
from a2a_canvas.server.client.exchange import Exchange, Pause
from a2a_canvas.server.client.fold import ENDED_BADLY, TURN, Seen, events
from a2a_canvas.server.client.operations import Edit, Lines, Match, Operation, edit_lines, edit_match, message
from a2a_canvas.server.client.output import exact, json_line
from a2a_canvas.server.client.send_options import Where
from a2a_canvas.server.client.shown import ArtifactUpdate, Failure, FinalReply, Status
from a2a_canvas.server.client.terminal import Terminal
from a2a_canvas.server.protocols.artifacts.paths import ArtifactVersion, CurrentArtifact


async def operate(
    where: Where, wish: Operation | Edit, out: TextIO, err: TextIO, *, pause: Pause = asyncio.sleep
) -> int:
    """Have something done to an artifact and show what comes of it.

    Args:
        where: the artifact.
        out: the new passage of an edit, or the sentence that says what was done; with `where.json` one event per line.
        err: failures, and what is not for `out` where that is no terminal.
        pause: waits that many seconds, between tries.

    Returns:
        The exit code: 0 done, 1 failed or rejected, 2 not asked for because it cannot be done, 130 interrupted.
    """
    view = _View(where, isinstance(wish, Edit), Terminal(out, err, lambda: shutil.get_terminal_size().columns), out)
    exchange = Exchange(where.url, view, extensions=(TURN, CANVAS), pause=pause)

    async def run() -> int:
        async with connection.connected(where.url) as (http, card):
            if not connection.offers(card, CANVAS):
                raise SendError(f"The agent at {where.url} takes no edits: its card does not list {CANVAS}")
            artifacts = Artifacts(http, address(card, where.url))
            standing = await _standing(where, artifacts)
            view.name = str(standing.get("name", "")) if standing else ""
            operation = await _operation(wish, where, artifacts, standing)
            return view.conclude(await exchange.run(http, card, message(operation, where.context, where.artifact)))

    return await ended(
        run(),
        view.terminal,
        lambda: _interrupted(exchange.seen, where),
        lambda error: _failed(error, exchange.seen, where),
    )


async def _standing(where: Where, artifacts: Artifacts) -> dict[str, Any] | None:
    """The artifact as it stands; None if the server does not let it be read, which most operations can do without."""
    try:
        return await artifacts.read(CurrentArtifact(where.context, where.artifact))
    except NotServed as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise
    except SendError:
        pass
    return None


async def _operation(
    wish: Operation | Edit, where: Where, artifacts: Artifacts, standing: dict[str, Any] | None
) -> Operation:
    if isinstance(wish, Operation):
        return wish
    match wish.place:
        case Lines() as lines:
            return edit_lines(wish, lines)
        case Match() as match:
            text, version = await _seen_text(where, wish.base, artifacts, standing)
            return edit_match(wish, match, text, version)
        case _:
            assert_never(wish.place)


async def _seen_text(
    where: Where, base: int | None, artifacts: Artifacts, standing: dict[str, Any] | None
) -> tuple[str, int]:
    """The text that the user saw, and the number of its version."""
    if base is not None:
        said = await artifacts.read(ArtifactVersion(where.context, where.artifact, str(base)))
        return text_of(said), base
    said = standing or await artifacts.read(CurrentArtifact(where.context, where.artifact))
    if said.get("open"):
        raise SendError(f"{where.artifact} is being written just now. Try again when that task is done")
    return text_of(said), int(said.get("version", 0))


class _View:
    def __init__(self, where: Where, edits: bool, terminal: Terminal, out: TextIO) -> None:
        self.terminal, self.name = terminal, ""
        self._where, self._edits, self._out = where, edits, out
        self._live = out.isatty()
        self._written: dict[str, str] = {}

    def take(self, response: pb.StreamResponse) -> None:
        if self._where.json:
            json_line(self._out, MessageToDict(response))
            return
        for event in events(response):
            if not isinstance(event, ArtifactUpdate):
                self.terminal.show(event)
        for step in steps(response):
            if self._live:
                # Under one id: what is written when an answer broke off takes the place of what was.
                name = self.name or step.shown.name
                self.terminal.show(replace(step.shown, artifact_id=self._where.artifact, name=name))
            else:
                self._gather(step)

    def announce(self, text: str) -> None:
        if not self._where.json:
            self.terminal.show(Status(text))

    def conclude(self, seen: Seen) -> int:
        problem = ENDED_BADLY.get(seen.state, "")
        if problem:
            self.terminal.show(Failure(f"{problem}: {seen.message}" if seen.message else f"{problem}."))
            return 1
        if not self._where.json:
            piped = self._edits and not self._live
            self.terminal.show(Status(seen.message) if piped else FinalReply(seen.message))
        return 0

    def _gather(self, step: Step) -> None:
        edit, text = step.shown.artifact_id, "".join(map(str, step.shown.parts))
        before = self._written.pop(edit, "") if step.shown.append else ""
        if step.complete:
            passage = before + text
            exact(self._out, passage if passage.endswith("\n") or not passage else f"{passage}\n")
        elif not step.aborted:
            self._written[edit] = before + text


def _interrupted(seen: Seen, where: Where) -> Failure:
    if not seen.task_id:
        return Failure("Interrupted before the server named a task")
    return Failure(f"Interrupted; the task goes on{seen.where}", (where.how_to_look(),))


def _failed(error: Exception, seen: Seen, where: Where) -> Failure:
    advice = (where.how_to_look(),) if isinstance(error, ConnectionLost) else ()
    return Failure(connection.explain(error, where.url) + seen.where, advice)
