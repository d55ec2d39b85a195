"""The client of the crash test: sees a task through to its end, over however many lives of the server.

Rule 1: what was not acknowledged is sent again, with the same `messageId`; it must not count twice.
Rule 2: what was acknowledged is never sent again: the client asks for the task, and goes on to watch it.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import httpx

from tests.server.faults.crash_scripts import MORE, ScriptedTask, write_crash_script
from tests.server.faults.fault_scripts import Json
from tests.server.faults.judged_task import JudgedTask
from tests.server.faults.server_processes import ServerGroup, ServerProcess, message
from tests.server.faults.sse_client import Refused

CRASHED = (httpx.HTTPError, OSError, ValueError)
"""What a client has of a server that dies while it answers; the answer may be cut off anywhere."""
REFUSALS = 5
"""How often a task may break off or refuse while the server lives; once is no fault: it may just have ended."""
AT_ONCE = {"configuration": {"returnImmediately": True}}
NOT_FOUND = -32001
"""A2A 1.0, section 9.5."""


class RestartedServer:
    """A server that is killed, and started again on the same database.

    Attributes:
        up: set while it lives.
        life: the number of its life.
        process: of its newest life.
    """

    process: ServerProcess

    def __init__(self, database: str, folder: Path) -> None:
        self.up = asyncio.Event()
        self.life = 0
        self._group = ServerGroup(database, f"script:{write_crash_script(folder)}")

    async def start(self) -> None:
        self.process = await self._group.start()
        self.life += 1
        self.up.set()

    async def kill(self) -> None:
        self.up.clear()
        await self.process.kill()

    async def stop(self) -> None:
        """As a server is stopped that is to end in order."""
        self.up.clear()
        with suppress(ProcessLookupError):  # it is gone if it did not start
            self.process.signal(signal.SIGTERM)
        await self.process.ended()
        await self._group.end()

    @property
    def logs(self) -> list[list[str]]:
        """The lines that it has said in each life."""
        return [server.log for server in self._group.servers]


class _Settled(Exception):
    """There is nothing more to be read for now."""


class TaskDriver:
    """One task.

    Attributes:
        sent: it has been asked for.
        lost: it was acknowledged, and is not there any more.
        deaths: how often the server died while it may have been at work.
    """

    def __init__(self, script: ScriptedTask, context: str, server: RestartedServer) -> None:
        self.script = script
        self.task = JudgedTask(script)
        self.sent = False
        self.lost = False
        self.deaths = 0
        self._server = server
        self._context = context
        self._ids = {text: str(uuid4()) for text in (script.says, script.answers, MORE)}
        self._more: asyncio.Task[None] | None = None
        self._refusals = 0

    @property
    def ended(self) -> bool:
        return self.lost or self.task.ended or self._refusals >= REFUSALS

    @property
    def at_work(self) -> bool:
        return self.sent and not self.task.settled

    def died(self) -> None:
        """The server was killed."""
        self.deaths += self.at_work

    async def run(self) -> None:
        """See the task through; what is wrong is in `task.faults`."""
        try:
            while not self.ended:
                await self._server.up.wait()
                await self._try(self._server.life)
        finally:
            if self._more:
                await self._more

    async def _try(self, life: int) -> None:
        try:
            await self._go_on()
        except _Settled:
            pass
        except (Refused, *CRASHED) as error:
            if life == self._server.life and self._server.up.is_set():
                self._refusals += 1
                if self._refusals == REFUSALS:
                    self.task.fault("broken", str(error))

    async def _go_on(self) -> None:
        if self.task.task_id:
            await self.ask()
        if text := self._to_say():
            self.sent, self.task.state = True, ""
            await self._watch("SendStreamingMessage", {"message": self._message(text)}, text)
        else:
            self._settle()
            await self._watch("SubscribeToTask", {"id": self.task.task_id})

    def _to_say(self) -> str:
        """What has not been acknowledged yet, if it is time to say it."""
        said = self.task.messages
        if self._ids[self.script.says] not in said:
            return self.script.says
        if self.task.paused and self._ids[self.script.answers] not in said:
            return self.script.answers
        return ""

    def _message(self, text: str) -> Json:
        ids = {"message_id": self._ids[text], "context": self._context, "task": self.task.task_id}
        operation = dict(self.script.operation) if self.script.operation else None
        return message(text, **ids, operation=operation)

    async def ask(self) -> None:
        """Take the task as it stands.

        Raises:
            Refused: it is not told.
        """
        try:
            self.task.begin(await self._server.process.task(self.task.task_id))
        except Refused as error:
            if error.code == NOT_FOUND and not self.lost:
                self.lost = True
                self.task.fault("missing", "the whole task")
            raise

    async def repeat(self) -> None:
        """Ask for it once more with the same `messageId`, now that all is over: that must lead to the same task."""
        sent = self._message(self.script.says)
        del sent["taskId"]
        try:
            task = (await self._server.process.call("SendMessage", {"message": sent} | AT_ONCE))["task"]["id"]
        except Refused as error:
            task = str(error)
        if task != self.task.task_id:
            self.task.fault("twice", f"the same message again led to task {task}")

    async def _watch(self, method: str, params: Json, said: str = "") -> None:
        async with self._server.process.stream(method, params, self.task) as stream:
            with suppress(StopAsyncIteration):
                while True:
                    result = await stream.next()
                    if said and "task" in result:
                        self._check_accepted(said)
                    if self.script.more and self.task.texts and not self._more:
                        self._more = asyncio.create_task(self._say_more())
                    self._settle()

    def _check_accepted(self, said: str) -> None:
        """A message was accepted: the task with which its stream begins has it, and does not wait for it."""
        if self._ids[said] not in self.task.messages:
            self.task.fault("missing", f"{said!r} in the task that its stream begins with")
        elif self.task.paused and said == self.script.answers:
            self.task.fault("broken", "it has its answer and still waits")

    def _settle(self) -> None:
        """Raises `_Settled` if it is time to leave, or to say something."""
        if self.task.ended or (self.task.paused and self._to_say()):
            raise _Settled

    async def _say_more(self) -> None:
        """Not said again if it is not acknowledged: the task may have ended meanwhile."""
        with suppress(Refused, *CRASHED):
            await self._server.process.call("SendMessage", {"message": self._message(MORE)} | AT_ONCE)
            self.task.messages[self._ids[MORE]] = MORE
