"""`--only versions`: memory of an artifact's versions, and the time to read one. Each is an edit of the one before.

Measured in two ways: through the store alone, and through the whole runtime, where every edit is a task whose record
has the artifact as that task left it. Each way runs in two new processes: one counts what Python allocates, which makes
everything slow, the other the resident memory.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
import tracemalloc
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, repeat
from multiprocessing import get_context
from statistics import median
from typing import Literal

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import State, UserMessage
from a2a_canvas.server.agent.model import ModelEvent, ModelRequest, ModelText
from a2a_canvas.server.agent.models.playback import answer
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import EditText, ReplaceParts
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import JsonValue, Ref, text_part
from a2a_canvas.store.text.spans import Span, splice
from bench.report import Check, Report
from bench.servers import Server
from tests.fakes import contexts_of

MEGA = 1e6
MS_PER_SECOND = 1e3
MAX_SHARE = 0.2
"""Of the size of full copies."""
CONTEXT, ARTIFACT = ContextKey("c"), "a"

Way = Literal["store", "runtime"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Versions of an artifact of `size` characters, by edits of `edit` characters."""

    versions: int
    size: int
    edit: int

    @property
    def copies(self) -> int:
        """Bytes of the same number of full copies; the text is ASCII."""
        return self.versions * self.size

    def edits(self) -> list[tuple[Span, str]]:
        """Ranges all over the text, and their new texts."""
        places = [number * 7919 % (self.size - self.edit) for number in range(1, self.versions)]
        return [(Span(at, at + self.edit), f"{at:08}".ljust(self.edit, "x")) for at in places]

    def first(self) -> str:
        """The first version, without line ends: an edit by the model keeps the one at the end of its selection."""
        return "".join(f"line {number:08} of a long text, " for number in range(self.size // 30 + 1))[: self.size]


PLAN = Plan(versions=1000, size=100_000, edit=100)


@dataclass(frozen=True, slots=True)
class Result:
    """One way in one process: bytes held, and seconds to read each version. `traced`: counted by Python."""

    traced: bool
    held: int
    reads: tuple[float, ...]


class ListedReplies:
    """An `LLM` whose answers are `texts`, one after the other."""

    name = "listed"
    thinking: Literal["delta", "accumulated"] = "delta"

    def __init__(self, texts: list[str]) -> None:
        self._texts = iter(texts)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        for event in answer(request, [ModelText(next(self._texts))], repeat(20)):
            yield event


async def run(plan: Plan) -> Report:
    """Make the versions both ways."""
    columns = ("way", "allocated MB", "resident MB", "of copies", "read ms", "slowest ms")
    title = f"{plan.versions} versions of {plan.size} characters, each an edit of {plan.edit}"
    report = Report("versions", title, columns)
    ways: tuple[Way, ...] = ("store", "runtime")
    for way in ways:
        traced, resident = [await _in_fresh_process(way, plan, traced) for traced in (True, False)]
        share = max(traced.held, resident.held) / plan.copies
        reads = [seconds * MS_PER_SECOND for seconds in resident.reads]
        report.rows.append((way, traced.held / MEGA, resident.held / MEGA, share, median(reads), max(reads)))
        report.checks.append(Check(f"of full copies, {way}", share, "at most", MAX_SHARE))
    report.notes.append(f"{plan.versions} full copies are {plan.copies / MEGA:.0f} MB")
    return report


async def _in_fresh_process(way: Way, plan: Plan, traced: bool) -> Result:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, measure, way, plan, traced)


def measure(way: Way, plan: Plan, traced: bool) -> Result:
    """Make the versions one way in this process, and read each of them.

    Raises:
        RuntimeError: a version is not read as it was written.
    """
    return asyncio.run(_measured(way, plan, traced))


async def _measured(way: Way, plan: Plan, traced: bool) -> Result:
    store = InMemoryArtifactStore()
    first, edits = plan.first(), plan.edits()
    await store.apply(_ref("t0"), ReplaceParts((text_part(first),), last_chunk=True))
    rss = Server(0, os.getpid()).rss
    held: Callable[[], int] = (lambda: tracemalloc.get_traced_memory()[0]) if traced else rss
    gc.collect()
    if traced:
        tracemalloc.start()
    before = held()
    kept = await (_by_store(store, edits) if way == "store" else _by_runtime(store, edits))
    gc.collect()
    grown = held() - before
    tracemalloc.stop()
    reads = await _read(store, first, edits)
    del kept
    return Result(traced, grown, reads)


async def _by_store(store: InMemoryArtifactStore, edits: list[tuple[Span, str]]) -> object:
    for base, (span, text) in enumerate(edits, 1):
        await store.apply(_ref(f"t{base}"), EditText(span, text, base))
    return store


async def _by_runtime(store: InMemoryArtifactStore, edits: list[tuple[Span, str]]) -> object:
    ids, now = count(), datetime(2026, 1, 1, tzinfo=UTC)
    runtime = Runtime(
        contexts=contexts_of(InMemoryJournal(lambda: now), store),
        llm=ListedReplies([text for _, text in edits]),
        tools=tuple,
        now=lambda: now,
        new_id=lambda shard=None: str(next(ids)),
    )
    for base, (span, _) in enumerate(edits, 1):
        await _one_task(runtime, base, span)
    return runtime


async def _one_task(runtime: Runtime, base: int, span: Span) -> None:
    selection: JsonValue = {"start": span.start, "end": span.end}
    operation: JsonValue = {"op": "edit", "artifactId": ARTIFACT, "baseVersion": base, "selection": selection}
    message = UserMessage(f"m{base}", (text_part("Rewrite it."),), {CANVAS: operation})
    following = await runtime.send(Incoming(message, context_id=CONTEXT), ANONYMOUS)
    async for _ in following:
        pass
    record = await runtime.get(following.snapshot.task_id, ANONYMOUS)
    if record.state is not State.COMPLETED:
        raise RuntimeError(f"edit {base} is {record.state}: {record.message}")


async def _read(store: InMemoryArtifactStore, first: str, edits: list[tuple[Span, str]]) -> tuple[float, ...]:
    """Seconds to read each version, oldest first."""
    taken, expected = [], first
    for number, edit in enumerate([None, *edits], 1):
        expected = splice(expected, *edit) if edit else expected
        begun = time.perf_counter()
        text = (await store.version(_ref("reader"), number)).content.text
        taken.append(time.perf_counter() - begun)
        if text != expected:
            raise RuntimeError(f"version {number} does not read as it was written")
    return tuple(taken)


def _ref(task_id: str) -> Ref:
    return Ref(CONTEXT, ARTIFACT, task_id)
