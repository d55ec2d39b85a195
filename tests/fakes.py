"""A language model that says what a test tells it to, an `Emit` that remembers, and terse words for model events.

FakeLLM([answer(thinking("hm"), tool("T1", "artifact_list")), answer(text("Hel", "lo"))])
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar

from a2a_canvas.server.accounts.access import Access
from a2a_canvas.server.accounts.sharing import InMemoryShares
from a2a_canvas.server.agent.events import LlmCallCompleted, StatusChanged, TurnEvent, UserMessage
from a2a_canvas.server.agent.model import (
    BlockStart,
    BlockStop,
    InputDelta,
    MessageStart,
    MessageStop,
    ModelError,
    ModelEvent,
    ModelRequest,
    SignatureDelta,
    StopReason,
    StopReasonDelta,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from a2a_canvas.server.tasks.contexts import Contexts
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal
from a2a_canvas.server.tasks.journal.owned_contexts import InMemoryContexts
from a2a_canvas.store.ids import NewId
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Parts, text_part


def contexts_of(
    journal: InMemoryJournal, store: InMemoryArtifactStore, shares: InMemoryShares | None = None
) -> Contexts:
    """The contexts of a journal and a store in memory."""
    shares = shares or InMemoryShares(lambda: datetime.now(UTC))
    return Contexts(Access(journal, shares), journal, store, InMemoryContexts(journal, store, shares))


Step = ModelEvent | Exception | asyncio.Event | Callable[[], Awaitable[object]]
"""What a scripted stream does next: say something, break, or wait."""

Said = TypeVar("Said", bound=TurnEvent)

BROKEN = ModelError("The connection to the model broke.", retryable=True)
REFUSED = ModelError("The key for the model is not valid.", retryable=False)


class Hold:
    """A step that holds the stream open.

    Attributes:
        reached: set when the stream has come here.
        release: set it to let the stream go on.
    """

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.release = asyncio.Event()

    async def __call__(self) -> None:
        self.reached.set()
        await self.release.wait()


class FakeLLM:
    """A model that says `calls[n]` when it is asked for the n-th time.

    Attributes:
        requests: what it was asked.
        ends: how each stream ended, in the order of their ends: `whole`, or the name of the exception that ended it.
    """

    name = "fake"

    def __init__(self, calls: Iterable[Iterable[Step]], thinking: Literal["delta", "accumulated"] = "delta") -> None:
        self.thinking: Literal["delta", "accumulated"] = thinking
        self.calls = [list(call) for call in calls]
        self.requests: list[ModelRequest] = []
        self.ends: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        try:
            for step in self.calls[len(self.requests) - 1]:
                await asyncio.sleep(0)  # what comes from elsewhere lets others run
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, Exception):
                    raise step
                elif callable(step):
                    await step()
                else:
                    yield step
        except BaseException as end:
            self.ends.append(type(end).__name__)
            raise
        self.ends.append("whole")


class EventRecorder:
    """An `Emit` that remembers what it was told."""

    def __init__(self) -> None:
        self.events: list[TurnEvent] = []

    async def __call__(self, event: TurnEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[Said]) -> list[Said]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def statuses(self) -> list[tuple[str, str]]:
        """(state, text) of every status that is not a label."""
        return [
            (event.state.value, event.message.text if event.message else "")
            for event in self.of(StatusChanged)
            if not (event.message and event.message.label)
        ]

    @property
    def labels(self) -> list[str]:
        return [event.message.text for event in self.of(StatusChanged) if event.message and event.message.label]

    @property
    def tool_labels(self) -> list[str]:
        return [event.message.text for event in self.of(StatusChanged) if event.message and event.message.of_tool]

    @property
    def stop_reasons(self) -> list[str]:
        return [event.stop_reason for event in self.of(LlmCallCompleted)]


def text(*deltas: str, at: int = 0, final: bool = False) -> list[ModelEvent]:
    """A whole text block."""
    return [BlockStart(at, "text", final=final), *(TextDelta(at, delta) for delta in deltas), BlockStop(at)]


def thinking(*deltas: str, at: int = 0, signature: str = "") -> list[ModelEvent]:
    """A whole thinking block."""
    sealed = [SignatureDelta(at, signature)] if signature else []
    return [BlockStart(at, "thinking"), *(ThinkingDelta(at, delta) for delta in deltas), *sealed, BlockStop(at)]


def tool(use_id: str, name: str, given: Any = None, *, at: int = 0, cut: int = 0, stopped: bool = True) -> list[Step]:
    """A tool call.

    Args:
        given: its input, or the JSON text of it as the model writes it.
        cut: characters per delta; 0 for one delta.
        stopped: whether its block ends.
    """
    written = given if isinstance(given, str) else json.dumps(given or {})
    step = cut or max(len(written), 1)
    deltas = [InputDelta(at, written[i : i + step]) for i in range(0, len(written), step)]
    return [BlockStart(at, "tool_use", use_id, name), *deltas, *([BlockStop(at)] if stopped else [])]


def write(use_id: str, words: str, *, append: bool = False, last_chunk: bool = False, **options: Any) -> list[Step]:
    """A call of `artifact_update` that writes text to the artifact `doc`."""
    parts = [{"kind": "text", "text": words}]
    given = {"append": append, "last_chunk": last_chunk, "artifact": {"artifact_id": "doc", "parts": parts}}
    return tool(use_id, "artifact_update", given, **options)


def ask(use_id: str, question: str, **options: Any) -> list[Step]:
    return tool(use_id, "ask_user", {"question": question}, **options)


def decline(use_id: str, reason: str, **options: Any) -> list[Step]:
    return tool(use_id, "decline_task", {"reason": reason}, **options)


def stop(reason: StopReason = "end_turn", usage: Usage | None = None) -> list[ModelEvent]:
    """The end of an answer."""
    return [StopReasonDelta(reason), MessageStop(reason, usage or Usage())]


def answer(*steps: Step | Iterable[Step], reason: StopReason = "end_turn") -> list[Step]:
    """A whole answer: its beginning, the steps, its end."""
    return [*broken(*steps), *stop(reason)]


def broken(*steps: Step | Iterable[Step]) -> list[Step]:
    """An answer that has begun and does not end; what broke it may be its last step."""
    return [MessageStart(), *_flat(steps)]


def _flat(steps: Iterable[Step | Iterable[Step]]) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, list):
            yield from step
        else:
            yield step  # type: ignore[misc]


def parts(words: str) -> Parts:
    return (text_part(words),)


def said(message_id: str, words: str) -> UserMessage:
    """A message of the user."""
    return UserMessage(message_id, parts(words))


def ids(prefix: str = "id") -> NewId:
    """A source of ids: id-1, id-2, …"""
    numbers = iter(range(1, 1_000_000))
    return lambda shard=None: f"{prefix}-{next(numbers)}"


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def move(self, by: timedelta) -> None:
        self.time += by


class Seconds:
    """A clock in seconds that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def no_time(seconds: float) -> None:
    """A `sleep` that does not."""


API_KEYS = (
    "a2ac_000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2vo8od",
    "a2ac_000bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb09FpyK",
    "a2ac_000ccccccccccccccccccccccccccccccccccccccccccc3yQzYU",
)
"""The same in every process: the ids of parametrized tests must be, too."""
