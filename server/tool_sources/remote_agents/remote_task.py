"""One call of another agent: its task from the first message to the end, across failures of either side.

Rule 1: the id of a message is recorded before it is sent, that of the task once it is known. A call that runs again,
        after a crash or an answer of the user, continues with the task of that id; only a message without an answer is
        sent again, with the same id.
Rule 2: a snapshot of the task is compared with our artifacts, and differences are written, which repairs lost, repeated
        and undone chunks. The last snapshot is taken when the task has ended or waits.
Rule 3: what the agent has written stays, even if its task fails.
Rule 4: the task is cancelled when ours is, and when it is given up, but not when another server takes ours over. While
        ours waits for the user no call runs: then its tool's `abandon` cancels it.
Rule 5: a conversation with the agent belongs to one of ours. The agent takes all our users for one, so no other
        conversation may continue it: it may be another user's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.a2a_client.agent_connection import AgentConnection
from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.a2a_client.follower import ENDED, WAITS, Follower, Persistence, status_key, task_of
from a2a_canvas.server.tool_sources.remote_agents.task_parts import (
    Origin,
    candidates,
    catch_up_change,
    files_of,
    fingerprint,
    is_from,
    line,
    message_text,
    parts_of,
    title_of,
    to_wire,
)
from a2a_canvas.store.changes import AppendParts, ReplaceParts
from a2a_canvas.store.models import JsonValue, Parts
from a2a_canvas.tools.functions.canvas import Canvas
from a2a_canvas.tools.functions.results import Result, ToolError
from a2a_canvas.tools.functions.running import HANDED_OVER

TIMEOUT = 1800.0
"""Seconds that a call may take, without waiting for the user."""
CANCEL_TIMEOUT = 3.0
MAX_ARTIFACTS = 100
"""Artifacts of one call."""
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
}

Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class RemoteAgent:
    """The agent of a call.

    Attributes:
        name: for ids, from its tool; `title`: the name in its card.
        url: its address, which marks the artifacts that it wrote.
    """

    name: str
    title: str
    url: str
    connection: AgentConnection
    timeout: float = TIMEOUT
    sleep: Sleep = asyncio.sleep


@dataclass(slots=True)
class RemoteTask:
    """The state of one call.

    Attributes:
        shared: ids of our artifacts that the agent receives and may change.
        task: the remote task so far, without its artifacts; without an id before its first event.
        reply: the message with which the agent answered instead of a task.
    """

    agent: RemoteAgent
    canvas: Canvas
    shared: Sequence[str] = ()
    task: pb.Task = field(default_factory=pb.Task)
    reply: pb.Message | None = None
    _answered: str = ""
    _receipt: str = ""
    _ids: dict[str, str] = field(default_factory=dict)
    _seen: dict[str, str] = field(default_factory=dict)
    _refused: dict[str, str] = field(default_factory=dict)
    _new: set[str] = field(default_factory=set)
    _called: int = 0

    async def run(self, text: str, context_id: str = "") -> Result:
        """The result of the call.

        Raises:
            ToolError: it has none; the text says why.
        """
        self.canvas.skip_saved_changes()
        try:
            async with asyncio.timeout(self.agent.timeout):
                return await self._converse(text, context_id)
        except asyncio.CancelledError as error:
            if error.args != (HANDED_OVER,):
                await self._cancel()
            raise
        except TimeoutError:
            await self._cancel()
            raise await self._failure(f"took longer than {self.agent.timeout:g} seconds and was cancelled") from None
        except AgentFault as fault:
            await self._cancel()
            raise await self._failure(f"did not come to an end: {fault}") from None

    async def _converse(self, text: str, context_id: str) -> Result:
        first: Any = await self.canvas.once("message", self._new_message)
        if first["agent"] != self.agent.url:
            raise ToolError(f"{self.agent.title} is another agent than the one that was asked.")
        message: pb.Message | None = None
        if known := self._recall("task"):
            self.task = pb.Task(id=known["id"], context_id=known["context"])
        else:
            message = await self._message(first["id"], text, context_id)
        for number in range(MAX_QUESTIONS):
            asked = self._recall(f"question {number}")
            if not asked:
                await self._settle(message, f"answered {number - 1}")
                if self.task.status.state not in WAITS:
                    return await self._result()
                asked = await self._remember_question(number)
            message = await self._answer(number, asked)
        raise AgentFault(f"it asked {MAX_QUESTIONS} times")

    def _recall(self, name: str) -> dict[str, Any]:
        kept: Any = self.canvas.recall(name)
        return kept or {}

    async def _new_message(self) -> dict[str, str]:
        return {"id": str(uuid4()), "agent": self.agent.url}

    async def _message(self, message_id: str, text: str, context_id: str) -> pb.Message:
        message = pb.Message(message_id=message_id, role=pb.ROLE_USER, context_id=self._find_conversation(context_id))
        message.parts.add(text=text)
        for artifact_id in self.shared:
            artifact = await self.canvas.read(artifact_id)
            if artifact is None:
                raise ToolError(f"There is no artifact {artifact_id!r}.")
            message.parts.extend(to_wire(artifact))
        return message

    def _find_conversation(self, context_id: str) -> str:
        """The agent's conversation with this id, as the model knows it."""
        found = ["", *self._conversations()]
        if (known := next((each for each in found if line(each) == context_id), None)) is None:
            raise ToolError(
                f"{line(context_id)!r} is no context_id that {self.agent.title} has given in this conversation. "
                "Leave it out to begin a new one with it."
            )
        return known

    def _conversations(self) -> list[str]:
        """The agent's conversations with ours (rule 5)."""
        kept: Any = [*self.canvas.recall_all("task"), *self.canvas.recall_all("conversation")]
        return [each["context"] for each in kept if each.get("agent", self.agent.url) == self.agent.url]

    # ------------------------------------------------------------------------ questions

    async def _remember_question(self, number: int) -> dict[str, Any]:
        status, title = self.task.status, self.agent.title
        login = status.state == pb.TASK_STATE_AUTH_REQUIRED
        default = f"{title} needs you to log in." if login else f"{title} needs more to go on."
        asked: dict[str, Any] = {
            "text": message_text(status.message)[:MAX_QUESTION] or default,
            "login": login,
            "status": status_key(status),
            "seen": dict(self._seen),
        }
        await self.canvas.remember(f"question {number}", asked)
        return asked

    async def _answer(self, number: int, asked: Mapping[str, Any]) -> pb.Message | None:
        """The message with the user's answer; None if the agent has it, or continues without."""
        answered = self.canvas.recall(f"answered {number}")
        if answered:  # it is no longer needed, and credentials are not recorded
            self.canvas.skip_question()
        else:
            answer = await self.canvas.ask(asked["text"], authentication=asked["login"])
        self._seen, self._answered = dict(asked["seen"]), asked["status"]
        if answered:
            return None
        kept: Any = await self.canvas.once(f"answer {number}", self._new_message)
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
                await self._take_update(event.artifact_update)
            case "task":
                await self._take_snapshot(event.task)
                await self._take_status(event.task.status)
                self.task.context_id = self.task.context_id or event.task.context_id
                del self.task.history[:]
                self.task.history.extend(event.task.history[-1:])
            case "status_update":
                await self._take_status(event.status_update.status)

    async def _note(self, task_id: str, context_id: str) -> None:
        """Record the task, and that it has received the message (rule 1)."""
        if task_id and task_id != self.task.id:
            self.task = pb.Task(id=task_id, context_id=context_id)
            await self.canvas.remember("task", {"id": task_id, **self._conversation(context_id)})
        if self._receipt:
            await self.canvas.remember(self._receipt, True)
            self._receipt = ""

    async def _take_status(self, status: pb.TaskStatus) -> None:
        if status.state not in (*ENDED, *WAITS) and status != self.task.status:
            await self.canvas.progress(message_text(status.message))
        self.task.status.CopyFrom(status)

    async def _take_update(self, update: pb.TaskArtifactUpdateEvent) -> None:
        artifact = update.artifact
        append = update.append and artifact.artifact_id in self._ids
        self._seen.pop(artifact.artifact_id, None)
        if (parts := self._parts(artifact, append)) and (own := await self._own_id(artifact.artifact_id)):
            kind = AppendParts if append else ReplaceParts
            names = self._name(artifact), artifact.description or None
            await self._write(artifact.artifact_id, own, kind(parts, *names, done=False))

    async def _take_snapshot(self, task: pb.Task) -> None:
        for artifact in task.artifacts:
            own, seen = await self._own_id(artifact.artifact_id), fingerprint(artifact)
            if own and self._seen.get(artifact.artifact_id) != seen:
                await self._catch_up(artifact, own)
                self._seen[artifact.artifact_id] = seen

    async def _catch_up(self, artifact: pb.Artifact, own: str) -> None:
        current = await self.canvas.read(own)
        # The remains of an interrupted call are shown, but no change builds on them.
        ours = current.parts if current and not current.never_completed else ()
        change = catch_up_change(ours, self._parts(artifact))
        if change:
            names = self._name(artifact), artifact.description or None
            await self._write(artifact.artifact_id, own, type(change)(change.parts, *names, done=False))

    # ------------------------------------------------------------------------ artifacts

    def _conversation(self, context_id: str) -> dict[str, JsonValue]:
        return {"agent": self.agent.url, "context": context_id}

    def _origin(self) -> Origin:
        return {"url": self.agent.url, "contextId": self.task.context_id}

    def _parts(self, artifact: pb.Artifact, append: bool = False) -> Parts:
        try:
            return parts_of(artifact.parts, self._origin(), append=append)
        except ValueError:
            self._refused[artifact.artifact_id] = "its data is not plain JSON"
            return ()

    async def _own_id(self, artifact_id: str) -> str:
        """Our id of one of the agent's artifacts; empty if it cannot be stored."""
        if artifact_id in self._refused:
            return ""
        if artifact_id not in self._ids:
            if len(self._ids) >= MAX_ARTIFACTS:
                self._refused.setdefault("more", f"there are more than {MAX_ARTIFACTS}")
                return ""
            self._ids[artifact_id] = await self._free_id(artifact_id)
        return self._ids[artifact_id]

    def _name(self, artifact: pb.Artifact) -> str | None:
        """Its name; a new artifact without one gets a name, and keeps it."""
        if artifact.name or artifact.artifact_id not in self._new:
            return line(artifact.name) or None
        self._new.discard(artifact.artifact_id)
        name = title_of(artifact)
        if name is None:
            self._called += 1
            name = self.agent.title if self._called == 1 else f"{self.agent.title} {self._called}"
        return name or None

    async def _free_id(self, artifact_id: str) -> str:
        used = self._ids.values()
        for each in candidates(artifact_id, self.agent.name):
            artifact = None if each in used else await self.canvas.read(each)
            mine = artifact is None or each in self.shared or is_from(artifact, self._origin())
            if each not in used and mine:
                if artifact is None or not artifact.name:
                    self._new.add(artifact_id)
                return each
        raise AgentFault(f"there are too many artifacts {line(artifact_id)!r}")

    async def _write(self, artifact_id: str, own: str, change: AppendParts | ReplaceParts) -> None:
        try:
            await self.canvas.apply(own, change)
        except ToolError as error:
            self._refused[artifact_id] = str(error)

    # ------------------------------------------------------------------------ the end

    async def _result(self) -> Result:
        if self.reply is not None:
            return [await self._with_notes(message_text(self.reply), self.reply.context_id), *files_of(self.reply)]
        status = self.task.status
        answered = [message for message in self.task.history[-1:] if message.role == pb.ROLE_AGENT]
        text = message_text(status.message) or "\n".join(map(message_text, answered))
        if status.state != pb.TASK_STATE_COMPLETED:
            raise await self._failure(f"{WORDS[status.state]}: {text}" if text else WORDS[status.state])
        return [await self._with_notes(text, self.task.context_id), *files_of(status.message)]

    async def _failure(self, reason: str) -> ToolError:
        """The error of a call without a result. What was written stays (rule 3)."""
        with suppress(ToolError):
            await self.canvas.save()
        return ToolError(await self._with_notes(f"The task of {self.agent.title} {reason}", self.task.context_id))

    async def _with_notes(self, text: str, context_id: str) -> str:
        notes = [text or "It message_text nothing."]
        if self._ids:
            notes.append(f"[Its artifacts here: {', '.join(map(repr, self._ids.values()))}]")
        notes += [f"[Artifact {line(each)!r} is not complete: {reason}]" for each, reason in self._refused.items()]
        if context_id:
            if context_id not in self._conversations():
                await self.canvas.remember("conversation", self._conversation(context_id))
            notes.append(f"[To go on with this conversation: context_id {line(context_id)!r}]")
        return "\n".join(notes)

    async def _cancel(self) -> None:
        """Cancel the remote task, if the agent allows it (rule 4)."""
        if not self.task.id or self.task.status.state in ENDED:
            return
        with suppress(AgentFault, TimeoutError):
            async with asyncio.timeout(CANCEL_TIMEOUT):
                await self.agent.connection.cancel(self.task.id)
