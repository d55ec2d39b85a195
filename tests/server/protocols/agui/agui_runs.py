"""Tasks that are really run, and what an AG-UI client that joins them anywhere is sent."""

import itertools
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ag_ui import core

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import StatusChanged, UserMessage
from a2a_canvas.server.agent.loops.agent_function import AgentFunction
from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.protocols.agui.older.older_state import OlderState
from a2a_canvas.server.protocols.agui.run_events import RunProjection
from a2a_canvas.server.protocols.agui.state import CanvasState, RunState, VersionsByArtifact, at_record
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.server.tasks.runtime.admission import Admission
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import ReplaceParts
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Artifact, Limits, Ref, text_part
from a2a_canvas.tools.registry import SCRIPT_TOOLS
from tests.fakes import FakeLLM, Step, contexts_of, ids, no_time, said

Json = dict[str, Any]
CONTEXT = "c"
HISTORY = (core.UserMessage(id="u", role="user", content="Go"),)
"""What such a client shows before its run."""


@dataclass(frozen=True)
class Played:
    """A task from its first generation to where it was followed to, and the store as it is then."""

    records: Sequence[TaskRecord]
    entries: Sequence[Entry]
    artifacts: tuple[Artifact, ...]
    versions: VersionsByArtifact

    def run(
        self,
        joins: int = 0,
        *,
        behind: bool = False,
        thinking: bool = True,
        older: str | None = None,
        history: tuple[core.Message, ...] = HISTORY,
    ) -> list[Json]:
        """What a client is sent that joins after so many entries, as it goes over the wire.

        Args:
            older: the artifact of a client of the older request, or empty for the first that is made.
        """
        state, record = self.state(joins, older), self.records[joins]
        names = {"thread_id": CONTEXT, "run_id": "r"}
        run = RunProjection(
            record, state, **names, expose_thinking=thinking, history=history if older is None else None
        )
        sent = list(run.begin())
        for entry in self.entries[joins:]:
            if not run.ended:
                sent += run.project(entry, behind=behind)
        assert run.ended
        return [json.loads(event.model_dump_json(by_alias=True)) for event in sent]

    def runs(self, *, thinking: bool = True, older: str | None = None) -> list[list[Json]]:
        """Those of all clients, wherever they join."""
        return [self.run(joins, thinking=thinking, older=older) for joins in range(len(self.records))]

    def state(self, joins: int, older: str | None = None) -> RunState:
        """The state that such a client begins with."""
        record = self.records[joins]
        artifacts, versions = at_record(record, self.artifacts, self.versions)
        state = CanvasState(record, artifacts, versions)
        return state if older is None else OlderState(state, record, versions, older)

    def at(self, kind: type) -> int:
        """After how many entries the first event of a kind has come."""
        return next(number for number, entry in enumerate(self.entries, 1) if isinstance(entry.event, kind))


class ScriptedRuntime:
    """A runtime with everything it needs, in memory; its tasks are followed to their end or to a question."""

    def __init__(
        self,
        llm: LLM | Iterable[Iterable[Step]] = (),
        limits: Limits | None = None,
        journal: InMemoryJournal | None = None,
        admission: Admission | None = None,
        agent: AgentFunction | None = None,
    ) -> None:
        self.store = InMemoryArtifactStore(limits)
        journal = journal or InMemoryJournal(lambda: datetime(2026, 1, 1, tzinfo=UTC))
        self.runtime = Runtime(
            contexts=contexts_of(journal, self.store),
            llm=FakeLLM(llm) if isinstance(llm, Iterable) else llm,
            tools=lambda: SCRIPT_TOOLS,
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            new_id=ids(),
            sleep=no_time,
            admission=admission,
            agent=agent,
        )

    async def has(self, *texts: str, name: str = "doc.md") -> None:
        """The artifact `doc` has these versions."""
        for number, text in enumerate(texts, 1):
            change = ReplaceParts((text_part(text),), name=name, last_chunk=True)
            await self.store.apply(Ref(CONTEXT, "doc", f"before-{number}"), change)

    async def play(
        self,
        message: UserMessage | None = None,
        *,
        task_id: str = "",
        meanwhile: Callable[[str], Awaitable[object]] | None = None,
    ) -> Played:
        """Send a message and follow its task. `meanwhile` is called with the task's id once it was accepted."""
        message = message or said("m", "Go")
        following = await self.runtime.send(Incoming(message, context_id=CONTEXT, task_id=task_id), ANONYMOUS)
        if meanwhile:
            await meanwhile(following.snapshot.task_id)
        entries = []
        async for entry in following:
            entries.append(entry)
            if isinstance(entry.event, StatusChanged) and entry.event.state.paused:
                break
        records = list(itertools.accumulate(entries, fold, initial=following.snapshot))
        artifacts = await self.store.list(CONTEXT)
        refs = [Ref(CONTEXT, artifact.artifact_id, "") for artifact in artifacts]
        versions = {ref.artifact_id: await self.store.versions(ref) for ref in refs}
        return Played(records, entries, artifacts, versions)


def operation(op: str, words: str = "Shorter", **fields: Any) -> UserMessage:
    """A message that is an operation on the artifact `doc`."""
    return replace(said(f"m-{op}", words), metadata={CANVAS: {"op": op, "artifactId": "doc", **fields}})


def kinds(run: Iterable[Json]) -> list[str]:
    """What each event is: its type, and the name of a CUSTOM one."""
    return [event["name"] if event["type"] == "CUSTOM" else event["type"] for event in run]


def of(run: Iterable[Json], kind: str) -> list[Json]:
    """The events of one kind: those of a type, or the values of the CUSTOM ones of a name."""
    return [event.get("value", event) for event in run if kind in (event["type"], event.get("name"))]
