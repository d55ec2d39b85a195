"""Another agent as a call sees it, in memory: it says what a test tells it to, and can be lost at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from copy import deepcopy
from typing import Any

from a2a.server.tasks.task_manager import append_artifact_to_task
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.tool_sources.remote_agents.agent_call import AgentCall
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import RemoteAgent
from a2a_canvas.tools.functions.function_tool import FunctionTool
from tests.server.agent.turn.turn_life import Life

Event = pb.StreamResponse
LOST = AgentFault("the connection to it was lost", retryable=True)


def status(state: int, text: str = "", message_id: str = "") -> Event:
    event = Event()
    event.status_update.status.state = state  # type: ignore[assignment]
    if text:
        event.status_update.status.message.message_id = message_id or f"message {text}"
        event.status_update.status.message.parts.add(text=text)
    return event


def working(text: str) -> Event:
    return status(pb.TASK_STATE_WORKING, text)


def completed(text: str = "Done.") -> Event:
    return status(pb.TASK_STATE_COMPLETED, text)


def asks(text: str) -> Event:
    return status(pb.TASK_STATE_INPUT_REQUIRED, text)


def chunk(artifact_id: str, *texts: str, append: bool = True, name: str = "", last: bool = False) -> Event:
    event = Event()
    update = event.artifact_update
    update.append, update.last_chunk = append, last
    update.artifact.artifact_id, update.artifact.name = artifact_id, name
    for text in texts:
        update.artifact.parts.add(text=text)
    return event


def whole(artifact_id: str, *texts: str, name: str = "") -> Event:
    return chunk(artifact_id, *texts, append=False, name=name)


REPORT = [
    working("Looking at the sky…"),
    whole("report", "# Weather\n", name="report.md"),
    chunk("report", "Rain "),
    chunk("report", "and wind.", last=True),
    completed("It rains."),
]
WRITTEN = "# Weather\nRain and wind."
TURNS = (
    [working("Hm…"), whole("plan", "Table", name="plan.md"), chunk("plan", "."), asks("When?")],
    [working("Booking…"), chunk("plan", " At eight."), status(pb.TASK_STATE_AUTH_REQUIRED, "Log in.")],
    [chunk("plan", " Paid."), completed("Booked.")],
)
"""Three turns, which write a plan and wait for the user twice."""
PLAN = "Table. At eight. Paid."
ANSWERS = {"When?": "at eight", "Log in.": "I have"}


def fold_event(task: pb.Task, event: Event) -> None:
    """Change a task as a stock client does."""
    match event.WhichOneof("payload"):
        case "task":
            task.CopyFrom(event.task)
        case "status_update":
            task.status.CopyFrom(event.status_update.status)
        case "artifact_update":
            append_artifact_to_task(task, event.artifact_update)


class FakeAgent:
    """One task: each message that it gets makes it say the next of `turns`.

    Attributes:
        messages: those it got, by id.
        breaks: after how many events from now on a stream breaks.
        cancelled: how often it was asked to cancel.
    """

    streams = True

    def __init__(self, *turns: list[Event]) -> None:
        self.turns = list(turns)
        self.task = pb.Task(id="remote", context_id="there")
        self.messages: dict[str, pb.Message] = {}
        self.breaks: list[int] = []
        self.cancelled = 0
        self.changed: Callable[[], None] = lambda: None
        self._rest: list[Event] = []

    def copy(self) -> FakeAgent:
        twin = FakeAgent()
        for name in ("turns", "task", "messages", "cancelled", "_rest", "streams"):
            setattr(twin, name, deepcopy(getattr(self, name)))
        return twin

    def go_on(self, most: int = 100) -> None:
        """Say what is left of this turn, whether or not somebody listens."""
        while self._rest and most:
            self._next()
            most -= 1

    async def send(self, message: pb.Message) -> AsyncGenerator[Event, None]:
        if message.message_id not in self.messages:
            self.messages[message.message_id] = message
            self._rest = list(self.turns[len(self.messages) - 1])
            self.task.status.CopyFrom(pb.TaskStatus(state=pb.TASK_STATE_WORKING))
            self.changed()
        async for event in self.subscribe("remote"):
            yield event

    async def subscribe(self, task_id: str) -> AsyncGenerator[Event, None]:
        left = self.breaks.pop(0) if self.breaks else -1
        await asyncio.sleep(0)
        if not left:
            raise LOST
        yield Event(task=self.task)
        while self._rest:
            left -= 1
            await asyncio.sleep(0)
            if not left:
                raise LOST
            yield self._next()

    async def get(self, task_id: str) -> pb.Task:
        await asyncio.sleep(0)
        if not self.streams and self._rest:
            self._next()
        return deepcopy(self.task)

    async def cancel(self, task_id: str) -> None:
        self.cancelled += 1

    def _next(self) -> Event:
        event = self._rest.pop(0)
        update = event.status_update if event.HasField("status_update") else event.artifact_update
        update.task_id, update.context_id = "remote", "there"
        if not event.artifact_update.append or self._has(event.artifact_update.artifact.artifact_id):
            fold_event(self.task, event)
        self.changed()
        return event

    def _has(self, artifact_id: str) -> bool:
        return any(each.artifact_id == artifact_id for each in self.task.artifacts)


async def check_every_cut(
    first: Life, agent: FakeAgent, resume: Callable[[Any, FakeAgent], None], *, went_on: bool
) -> None:
    """Wherever a crash cuts our task off, that of the agent is followed on and not begun again.

    Args:
        first: our task, which asks `agent`, which says `TURNS`.
        resume: gives the resumed task the agent as it was at the cut.
        went_on: whether the agent has said the rest of its turn meanwhile.
    """
    history = [(0, agent.copy())]
    agent.changed = lambda: history.append((len(first.told.events), agent.copy()))
    cuts = await first.run_to_end(ANSWERS)
    assert len(cuts) > 20
    sent = [message.parts[0].text for message in agent.messages.values()]
    for interrupted, cut in cuts:
        life = interrupted.crash(cut)
        if life.record.state.terminal:
            continue
        there = [state for told, state in history if told <= cut.told][-1].copy()
        if went_on:
            there.go_on()
        resume(life, there)
        await life.run_to_end(ANSWERS)
        life.check()
        assert (life.record.state, life.record.message.text) == (State.COMPLETED, "Booked.")
        assert life.texts() == {"plan": PLAN}
        assert [message.parts[0].text for message in there.messages.values()] in (sent, sent[:2])


async def no_time(seconds: float) -> None:
    await asyncio.sleep(0)


def asking_tool(agent: Any, *shared: str, title: str = "Weather", timeout: float = 600, context_id: str = "") -> Any:
    """The tool `ask_weather` for an agent."""
    remote = RemoteAgent("weather", title, "http://weather.example", agent, timeout, no_time)

    async def ask(given: Any, canvas: Any) -> Any:
        return await AgentCall(remote, canvas, shared).run(given.get("message", "Go"), given.get("context_id", ""))

    return FunctionTool("ask_weather", "Ask.", {"type": "object"}, ask, timeout + 30, parallel=True)
