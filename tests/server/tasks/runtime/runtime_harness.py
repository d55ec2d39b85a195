"""A runtime with a scripted model, in memory and on SQLite, and short words for what clients do."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import pytest

from a2a_canvas.server.accounts.access import Access, Caller
from a2a_canvas.server.agent.events import (
    AgentMessage,
    State,
    StatusChanged,
)
from a2a_canvas.server.agent.loops.agent_function import AgentRun, agent_function
from a2a_canvas.server.agent.model import ModelMessage
from a2a_canvas.server.agent.turn.turn import TurnLimits
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.tasks.contexts import Contexts
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal, TaskSubscription
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.tools.functions.function_tool import AnyTool
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import (
    Clock,
    FakeLLM,
    Step,
    answer,
    ids,
    no_time,
    said,
    text,
)
from tests.server.agent.turn.turn_harness import check_request
from tests.server.tasks.backend_fixtures import BackendParts, MakeBackend, in_memory

HELLO = answer(text("Hello"))


class SlowJournal(InMemoryJournal):
    """Lets others run wherever one that writes to a disk would."""

    async def find_duplicate(self, key):
        await asyncio.sleep(0)
        return await super().find_duplicate(key)

    async def flushed(self, task_id):
        await asyncio.sleep(0)
        await super().flushed(task_id)

    async def get(self, task_id):
        await asyncio.sleep(0)
        return await super().get(task_id)


def in_slow_memory(now: Callable[[], datetime]) -> BackendParts:
    return in_memory(now, SlowJournal)


on_every_backend = pytest.mark.usefixtures("backend")
"""Of a module whose tests run in memory and on SQLite."""
in_memory_alone = pytest.mark.parametrize("backend", ["memory"], indirect=True)
"""Of a test about what happens between two steps of the loop, or to what does not outlive the process."""


class RuntimeHarness:
    """A runtime with a scripted model, and short words for what clients do."""

    backend: MakeBackend = staticmethod(in_slow_memory)

    def __init__(
        self,
        *calls: Iterable[Step],
        store: InMemoryArtifactStore | None = None,
        llm: FakeLLM | None = None,
        journal: type[InMemoryJournal] | None = None,
        admission: Admission | None = None,
        tools: Sequence[AnyTool] = TOOLS,
        agent: AgentRun | None = None,
    ) -> None:
        self.llm = llm or FakeLLM(calls)
        self.clock = Clock()
        kept = in_memory(self.clock, journal) if journal else self.backend(self.clock)
        self.journal = kept.journal
        self.store = store or kept.store
        self.metrics = Metrics(self.clock)
        self.runtime = Runtime(
            contexts=Contexts(Access(self.journal), self.journal, self.store, kept.owned),
            ownership=kept.ownership,
            llm=self.llm,
            tools=lambda: tools,
            now=self.clock,
            new_id=ids(),
            limits=TurnLimits(rounds=10),
            sleep=no_time,
            admission=admission,
            metrics=self.metrics,
            agent=agent and agent_function(agent),
        )

    async def send(
        self, words: str, *, task: str = "", context: str = "c", owner: str = "", message_id: str = ""
    ) -> TaskSubscription:
        return await self.runtime.send(
            Incoming(said(message_id or f"m-{words}", words), "", context, task), Caller(owner)
        )

    async def settled(self, words: str, *, task: str = "", context: str = "c", owner: str = "") -> TaskRecord:
        """Send, and wait until the task has ended or asks."""
        following = await self.send(words, task=task, context=context, owner=owner)
        async for entry in following:
            if settles(entry):
                break
        return await self.journal.get(following.snapshot.task_id)

    def heard(self, request: int = -1) -> tuple[ModelMessage, ...]:
        """The messages the model was sent."""
        messages = self.llm.requests[request].messages
        check_request(messages)
        return messages


def settles(entry: Entry) -> bool:
    event = entry.event
    return isinstance(event, StatusChanged) and (event.state.terminal or event.state is State.INPUT_REQUIRED)


async def until(following: TaskSubscription, kind: type) -> None:
    """Read on to an event of a kind."""
    entries = aiter(following)
    while not isinstance((await anext(entries)).event, kind):
        pass


async def rest(following: TaskSubscription) -> list[Entry]:
    return [entry async for entry in following]


def states(entries: list[Entry]) -> list[State]:
    return [entry.event.state for entry in entries if isinstance(entry.event, StatusChanged)]


def spoken(record: TaskRecord) -> list[str]:
    return [m.text if isinstance(m, AgentMessage) else m.parts[0].text for m in record.history]
