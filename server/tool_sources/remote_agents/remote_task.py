"""One task of another agent, from the first message to the end, across failures of either side.

It is followed for a call of a tool (`agent_call.py`) and for a turn of ours (`a2a_agents`).

Rule 1: the id of a message is recorded before it is sent, that of the task once it is known. A call that runs again,
        after a crash or an answer of the user, continues with the task of that id; only a message without an answer is
        sent again, with the same id.
Rule 2: a snapshot of the task is compared with our artifacts, and differences are written, which repairs lost, repeated
        and undone chunks. The last snapshot is taken when the task has ended or waits.
Rule 3: what the agent has written stays, even if its task fails.
Rule 4: the task is cancelled when ours is, and when it is given up, but not when another server takes ours over. While
        ours waits for the user no call runs: then `RemoteAgent.cancel_recorded` cancels it.
Rule 5: a conversation with the agent belongs to one of ours. The agent takes all our users for one, so no other
        conversation may continue it: it may be another user's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.a2a_client.follower import ENDED, WAITS, Follower, Persistence, status_key, task_of
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import RemoteAgent
from a2a_canvas.server.tool_sources.remote_agents.task_parts import files_of, message_text
from a2a_canvas.store.ids import new_id
from a2a_canvas.store.models import JsonValue
from a2a_canvas.tools.functions.recorded_call import RecordedCall
from a2a_canvas.tools.functions.results import File, ToolError
from a2a_canvas.tools.functions.running import HANDED_OVER

MAX_QUESTIONS = 20
MAX_QUESTION = 4_000
DELAYS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 30.0, 30.0)
"""Seconds between tries to reach a lost agent; after the last one it is given up."""
RESENDS = 4
"""Resends of a message without an answer."""
POLLS = (0.5, 1.0, 2.0, 5.0)
"""Seconds between polls of an agent without streams; the last one repeats."""

WORDS = {
    pb.TASK_STATE_FAILED: "failed",
    pb.TASK_STATE_CANCELED: "was cancelled by the agent",
    pb.TASK_STATE_REJECTED: "was rejected",
    pb.TASK_STATE_INPUT_REQUIRED: "waits for an answer",
    pb.TASK_STATE_AUTH_REQUIRED: "waits for a login",
}

MakeMessage = Callable[[], Awaitable[pb.Message]]
"""Makes a message without ids."""


async def _name_nothing(context_id: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class RemoteEnd:
    """How a task has ended.

    Attributes:
        state: its last one; None if it was given up.
        text: of the agent's last message; why it was given up.
        files: of that message.
        context_id: the conversation with the agent.
    """

    state: pb.TaskState | None
    text: str = ""
    files: tuple[File, ...] = ()
    context_id: str = ""

    @property
    def failure(self) -> str:
        """Why there is no result, as a sentence about the task without its subject; empty if there is one."""
        if self.state is None:
            return self.text
        if self.state == pb.TASK_STATE_COMPLETED:
            return ""
        return ": ".join(filter(None, (WORDS[self.state], self.text)))


class TaskArtifacts(Protocol):
    """What becomes of a task's artifacts.

    Attributes:
        context_id: the conversation with the agent.
        seen: hashes of the contents that are taken, by id; kept while the task waits.
    """

    context_id: str
    seen: dict[str, str]

    async def take_update(self, update: pb.TaskArtifactUpdateEvent) -> None:
        """Take what an event brings."""
        ...

    async def take_snapshot(self, artifacts: Sequence[pb.Artifact], *, complete: bool = False) -> None:
        """Take all artifacts as they are; complete: the task has ended."""
        ...


@dataclass(slots=True)
class RemoteTask:
    """The state of one call.

    Attributes:
        asks: whether the user can be asked. If not, a question ends the task, which is cancelled.
        step: begins the names of its records.
        named: awaited with the conversation's id when the agent names it, before that is recorded.
        task: the remote task so far, without its artifacts; without an id before its first event.
        reply: the message with which the agent answered instead of a task.
    """

    agent: RemoteAgent
    call: RecordedCall
    artifacts: TaskArtifacts
    asks: bool = True
    step: str = ""
    named: Callable[[str], Awaitable[None]] = _name_nothing
    task: pb.Task = field(default_factory=pb.Task)
    reply: pb.Message | None = None
    _answered: str = ""
    _receipt: str = ""

    async def run(self, make_message: MakeMessage, context_id: str = "") -> RemoteEnd:
        """Send a message, and follow its task to the end.

        Args:
            context_id: the conversation to continue, which must be one of ours (rule 5); empty for a new one.

        Raises:
            ToolError: the message cannot be made.
        """
        self.call.skip_saved_changes()
        try:
            async with asyncio.timeout(self.agent.timeout):
                end = await self._converse(make_message, context_id)
        except asyncio.CancelledError as error:
            if error.args != (HANDED_OVER,):
                await self._cancel()
            raise
        except TimeoutError:
            await self._cancel()
            end = self._given_up(f"took longer than {self.agent.timeout:g} seconds and was cancelled")
        except AgentFault as fault:
            await self._cancel()
            end = self._given_up(f"did not come to an end: {fault}")
        if end.failure:
            with suppress(ToolError):
                await self.call.save()  # rule 3
        return end

    def _given_up(self, reason: str) -> RemoteEnd:
        return RemoteEnd(None, reason, context_id=self.task.context_id)

    async def _converse(self, make_message: MakeMessage, context_id: str) -> RemoteEnd:
        first: Any = await self.call.once(f"{self.step}message", lambda: self._new_message(context_id))
        if first["agent"] != self.agent.url:
            raise ToolError(f"{self.agent.title} is another agent than the one that was asked.")
        message: pb.Message | None = None
        if known := self._recall("task"):
            self._begin(known["id"], known["context"])
        else:
            message = await make_message()
            message.message_id, message.role, message.context_id = first["id"], pb.ROLE_USER, first["context"]
        for number in range(MAX_QUESTIONS):
            asked = self._recall(f"question {number}")
            if not asked:
                await self._settle(message, f"answered {number - 1}")
                if self.task.status.state not in WAITS:
                    return self._end()
                if not self.asks:
                    await self._cancel()
                    return self._end()
                asked = await self._remember_question(number)
            message = await self._answer(number, asked)
        raise AgentFault(f"it asked {MAX_QUESTIONS} times")

    def _recall(self, name: str) -> dict[str, Any]:
        kept: Any = self.call.recall(self.step + name)
        return kept or {}

    async def _new_message(self, context_id: str) -> dict[str, str]:
        return {"id": new_id(), "agent": self.agent.url, "context": context_id}

    def _begin(self, task_id: str, context_id: str) -> None:
        self.task = pb.Task(id=task_id, context_id=context_id)
        self.artifacts.context_id = context_id

    # ------------------------------------------------------------------------ questions

    async def _remember_question(self, number: int) -> dict[str, Any]:
        status, title = self.task.status, self.agent.title
        login = status.state == pb.TASK_STATE_AUTH_REQUIRED
        default = f"{title} needs you to log in." if login else f"{title} needs more to go on."
        asked: dict[str, Any] = {
            "text": message_text(status.message)[:MAX_QUESTION] or default,
            "login": login,
            "status": status_key(status),
            "seen": dict(self.artifacts.seen),
        }
        await self.call.remember(f"{self.step}question {number}", asked)
        return asked

    async def _answer(self, number: int, asked: Mapping[str, Any]) -> pb.Message | None:
        """The message with the user's answer; None if the agent has it, or continues without."""
        answered = self.call.recall(f"{self.step}answered {number}")
        if answered:  # it is no longer needed, and credentials are not recorded
            self.call.skip_question()
        else:
            answer = await self.call.ask(asked["text"], authentication=asked["login"])
        self.artifacts.seen, self._answered = dict(asked["seen"]), asked["status"]
        if answered:
            return None
        kept: Any = await self.call.once(f"{self.step}answer {number}", lambda: self._new_message(self.task.context_id))
        await self._take(pb.StreamResponse(task=await self.agent.connection.get(self.task.id)))
        if self.task.status.state not in WAITS or status_key(self.task.status) != asked["status"]:
            return None
        message = pb.Message(message_id=kept["id"], role=pb.ROLE_USER)
        message.task_id, message.context_id = self.task.id, self.task.context_id
        message.parts.add(text=answer)
        return message

    # ------------------------------------------------------------------------ following

    async def _settle(self, message: pb.Message | None, receipt: str) -> None:
        """Send a message, if any, and follow the task until it ends or waits.

        Args:
            receipt: the name under which it is recorded that an answer has arrived.
        """
        self._receipt = receipt if message and message.task_id else ""
        persistence = Persistence(DELAYS, POLLS, RESENDS, confirms=True)
        connection = self.agent.connection
        await Follower(connection, self._take, self._wait, persistence, self.task.id, self._answered).run(message)

    async def _wait(self, seconds: float, _: int) -> None:
        await self.agent.sleep(seconds)

    # ------------------------------------------------------------------------ events

    async def _take(self, event: pb.StreamResponse) -> None:
        await self._note(*task_of(event))
        match event.WhichOneof("payload"):
            case "message":
                self.reply = event.message
            case "artifact_update":
                await self.artifacts.take_update(event.artifact_update)
            case "task":
                ended = event.task.status.state in ENDED
                await self.artifacts.take_snapshot(event.task.artifacts, complete=ended)
                await self._take_status(event.task.status)
                self.task.context_id = self.task.context_id or event.task.context_id
                del self.task.history[:]
                self.task.history.extend(event.task.history[-1:])
            case "status_update":
                await self._take_status(event.status_update.status)

    async def _note(self, task_id: str, context_id: str) -> None:
        """Record the task, and that it has received the message (rule 1)."""
        if task_id and task_id != self.task.id:
            self._begin(task_id, context_id)
            await self.named(context_id)
            task: dict[str, JsonValue] = {"id": task_id, "agent": self.agent.url, "context": context_id}
            await self.call.remember(f"{self.step}task", task)
        if self._receipt:
            await self.call.remember(self.step + self._receipt, True)
            self._receipt = ""

    async def _take_status(self, status: pb.TaskStatus) -> None:
        if status.state not in (*ENDED, *WAITS) and status != self.task.status:
            await self.call.progress(message_text(status.message))
        self.task.status.CopyFrom(status)

    # ------------------------------------------------------------------------ the end

    def _end(self) -> RemoteEnd:
        if self.reply is not None:
            text, files = message_text(self.reply), files_of(self.reply)
            return RemoteEnd(pb.TASK_STATE_COMPLETED, text, files, self.reply.context_id)
        status = self.task.status
        answered = [message for message in self.task.history[-1:] if message.role == pb.ROLE_AGENT]
        text = message_text(status.message) or "\n".join(map(message_text, answered))
        return RemoteEnd(status.state, text, files_of(status.message), self.task.context_id)

    async def _cancel(self) -> None:
        """Cancel the remote task, if the agent allows it (rule 4)."""
        if self.task.id and self.task.status.state not in ENDED:
            with suppress(AgentFault, TimeoutError):
                await self.agent.cancel(self.task.id)
