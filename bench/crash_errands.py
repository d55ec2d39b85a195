"""The client of the crash test: sees a task through to its end, over however many lives of the server.

Rule 1: what was not acknowledged is sent again, with the same `messageId`; it must not count twice.
Rule 2: what was acknowledged is never sent again: the client asks for the task, and goes on to watch it.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import IO, Any
from uuid import uuid4

from a2a_canvas.server.wire import CANVAS, TURN
from bench.client import HOST, exchange, request
from bench.crash_plays import MORE, Play
from bench.crash_told import ENDS, PAUSED, Told
from bench.servers import Command, end, free_port, start
from bench.sse import Reader, Refused, StreamError

EXTENSIONS = (TURN, CANVAS)
ODDITIES = 5
"""How often a task may break off or refuse while the server lives; once is no fault: it may just have ended."""
AT_ONCE = {"configuration": {"returnImmediately": True}}
NOT_FOUND = -32001
"""A2A 1.0, section 9.5."""


class House:
    """A server that dies, and is started again on the same database.

    Attributes:
        up: while it lives.
        life: the number of its life.

    Args:
        said: where everything goes that it says.
    """

    def __init__(self, command: Command, said: IO[bytes]) -> None:
        self.up = asyncio.Event()
        self.life = 0
        self.port = 0
        self._command = command
        self._said = said

    async def start(self) -> None:
        """Raises `RuntimeError` if it does not start."""
        self.port = free_port()
        self._process = await start(self._command, self.port, self._said)
        self.life += 1
        self.up.set()

    def kill(self) -> None:
        self.up.clear()
        self._process.kill()
        self._process.wait()

    async def stop(self) -> None:
        self.up.clear()
        await end(self._process, signal.SIGTERM)


class _Settled(Exception):
    """There is nothing more to be read for now."""


class Errand:
    """One task.

    Attributes:
        sent: it has been asked for.
        lost: it was acknowledged, and is not there any more.
        deaths: how often the server died while it may have been at work.
    """

    def __init__(self, play: Play, context: str, house: House) -> None:
        self.play = play
        self.told = Told(play)
        self.sent = False
        self.lost = False
        self.deaths = 0
        self._house = house
        self._context = context
        self._ids = {text: str(uuid4()) for text in (play.says, play.answers, MORE)}
        self._more: asyncio.Task[None] | None = None
        self._oddities = 0

    @property
    def ended(self) -> bool:
        return self.lost or self.told.state in ENDS or self._oddities >= ODDITIES

    @property
    def at_work(self) -> bool:
        return self.sent and self.told.state not in (*ENDS, PAUSED)

    def died(self) -> None:
        """The server was killed."""
        self.deaths += self.at_work

    async def run(self) -> None:
        """See the task through; what is wrong is in `told.faults`."""
        try:
            while not self.ended:
                await self._house.up.wait()
                await self._try(self._house.life)
        finally:
            if self._more:
                await self._more

    async def _try(self, life: int) -> None:
        try:
            await self._go_on()
        except _Settled:
            pass
        except (StreamError, OSError) as error:
            if life == self._house.life and self._house.up.is_set():
                self._oddities += 1
                if self._oddities == ODDITIES:
                    self.told.fault("broken", str(error))

    async def _go_on(self) -> None:
        if self.told.task_id:
            await self.ask()
        if text := self._to_say():
            self.sent, self.told.state = True, ""
            await self._watch(request("SendStreamingMessage", {"message": self._message(text)}, EXTENSIONS), text)
        else:
            self._settle()
            await self._watch(request("SubscribeToTask", {"id": self.told.task_id}, EXTENSIONS))

    def _to_say(self) -> str:
        """What has not been acknowledged yet, if it is time to say it."""
        said = self.told.messages
        if self._ids[self.play.says] not in said:
            return self.play.says
        if self.told.state == PAUSED and self._ids[self.play.answers] not in said:
            return self.play.answers
        return ""

    def _message(self, text: str) -> dict[str, Any]:
        to = {"taskId": self.told.task_id} if self.told.task_id else {}
        metadata = {"metadata": {CANVAS: self.play.operation}} if self.play.operation else {}
        parts = [{"text": text}]
        message = {"messageId": self._ids[text], "role": "ROLE_USER", "contextId": self._context, "parts": parts}
        return message | to | metadata

    async def ask(self) -> None:
        """Take the task as it stands.

        Raises:
            Refused: it is not told.
        """
        answer = await exchange(self._house.port, request("GetTask", {"id": self.told.task_id}, EXTENSIONS))
        if error := answer.get("error"):
            if error["code"] == NOT_FOUND and not self.lost:
                self.lost = True
                self.told.fault("missing", "the whole task")
            raise Refused(f"GetTask: {error}")
        self.told.take({"result": {"task": answer["result"]}})

    async def repeat(self) -> None:
        """Ask for it once more with the same `messageId`, now that all is over: that must lead to the same task."""
        message = self._message(self.play.says)
        del message["taskId"]
        answer = await exchange(self._house.port, request("SendMessage", {"message": message} | AT_ONCE))
        if (task := answer.get("result", {}).get("task", {}).get("id")) != self.told.task_id:
            self.told.fault("twice", f"the same message again led to task {task}")

    async def _watch(self, asked: bytes, said: str = "") -> None:
        def take(event: dict[str, Any], at: int) -> None:
            self.told.take(event)
            if said and "task" in event["result"]:
                self._check_accepted(said)
            if self.play.more and self.told.shown and not self._more:
                self._more = asyncio.create_task(self._say_more())
            self._settle()

        loop = asyncio.get_running_loop()
        transport, reader = await loop.create_connection(lambda: Reader(asked, take), HOST, self._house.port)
        try:
            await reader.ended
        finally:
            transport.abort()

    def _check_accepted(self, said: str) -> None:
        """A message was accepted: the task with which its stream begins has it, and does not wait for it."""
        if self._ids[said] not in self.told.messages:
            self.told.fault("missing", f"{said!r} in the task that its stream begins with")
        elif self.told.state == PAUSED and said == self.play.answers:
            self.told.fault("broken", "it has its answer and still waits")

    def _settle(self) -> None:
        """Raises `_Settled` if it is time to leave, or to say something."""
        if self.told.state in ENDS or (self.told.state == PAUSED and self._to_say()):
            raise _Settled

    async def _say_more(self) -> None:
        """Not said again if it is not acknowledged: the task may have ended meanwhile."""
        params = {"message": self._message(MORE)} | AT_ONCE
        with suppress(StreamError, OSError):
            answer = await exchange(self._house.port, request("SendMessage", params))
            if "result" in answer:
                self.told.messages[self._ids[MORE]] = MORE
