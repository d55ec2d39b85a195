"""One turn with everything it needs, and the laws that every turn obeys."""

import asyncio
from collections.abc import Iterable
from typing import Literal

from a2a_canvas.server.agent.events import (
    BlockStopped,
    FinalMessageStarted,
    LlmCallCompleted,
    MessageStarted,
    StatusChanged,
    TextAdded,
    TextBlockStarted,
    ToolInputCompleted,
    ToolUseStarted,
    Transcript,
    UserMessage,
)
from a2a_canvas.server.agent.model import ModelMessage, ToolResult, ToolUse
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.agent.turn.turn import TurnLimits, TurnRequest, run_turn
from a2a_canvas.server.agent.turn.window import WindowEstimates
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import Artifact, Limits, Ref, Version
from a2a_canvas.tools.functions.function_tool import AnyTool
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import EventRecorder, FakeLLM, Step, ids, said
from tests.server.agent.turn.told_annotations import ToldAnnotations

DOC = Ref("context", "doc", "another-task")


class TurnHarness:
    """A turn over the scripted `calls` of a model."""

    def __init__(
        self,
        *calls: Iterable[Step],
        thinking: Literal["delta", "accumulated"] = "delta",
        limits: TurnLimits | None = None,
        artifact_limits: Limits | None = None,
        earlier: tuple[Transcript, ...] = (),
        store: InMemoryArtifactStore | None = None,
        tools: Iterable[AnyTool] = TOOLS,
    ) -> None:
        self.tools = (*tools,)
        self.llm = FakeLLM(calls, thinking)
        self.told = EventRecorder()
        self.annotations = ToldAnnotations(self.told)
        self.store = store or InMemoryArtifactStore(artifact_limits)
        self.new_messages: list[UserMessage] = []
        self.closed = False
        self.slept: list[float] = []
        self.sizes = WindowEstimates()
        self._limits = limits or TurnLimits()
        self._earlier = earlier

    async def run(self) -> EventRecorder:
        """Run the turn to its end; its laws are checked."""
        await self._run()
        assert isinstance(self.told.events[-1], StatusChanged)
        check_laws(self)
        return self.told

    def start(self) -> "asyncio.Task[None]":
        """Begin the turn; to be awaited or cancelled."""
        return asyncio.create_task(self._run())

    async def _run(self) -> None:
        await run_turn(
            TurnRequest(
                task_id="task",
                context_id="context",
                earlier=self._earlier,
                transcript=(to_user_input(said("m-1", "Go")),),
                new_messages=self._take,
                limits=self._limits,
            ),
            llm=self.llm,
            tools=self.tools,
            store=self.store,
            emit=self.told,
            new_id=ids(),
            window_estimates=self.sizes,
            sleep=self._sleep,
            make_review=self.annotations.make_review,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def _take(self, closing: bool) -> tuple[UserMessage, ...]:
        messages, self.new_messages = tuple(self.new_messages), []
        self.closed = closing and not messages
        return messages

    async def doc(self) -> Artifact:
        return await self.store.get(DOC)

    async def versions(self) -> list[Version]:
        return list(await self.store.versions(DOC))

    def results(self, request: int = -1) -> list[ToolResult]:
        """The results in the last message of a request."""
        return results_of(self.llm.requests[request].messages[-1])


def results_of(message: ModelMessage) -> list[ToolResult]:
    return [content for content in message.content if isinstance(content, ToolResult)]


def calls_of(message: ModelMessage) -> list[ToolUse]:
    return [content for content in message.content if isinstance(content, ToolUse)]


def check_laws(harness: TurnHarness) -> None:
    """What holds for every turn, whatever its model says (docs/turn.md)."""
    events = harness.told.events
    starts = [event.place for event in events if isinstance(event, TextBlockStarted | ToolUseStarted)]
    assert [place.index for place in starts] == list(range(len(starts)))
    assert len(harness.told.of(LlmCallCompleted)) == len(harness.llm.requests) == len(harness.llm.ends)
    assert len(harness.told.of(FinalMessageStarted)) == bool(harness.told.of(TextAdded))
    if text := harness.told.of(TextAdded):
        assert isinstance(events[events.index(text[0]) - 1], FinalMessageStarted)
    rounds = [event.round for event in harness.told.of(MessageStarted)]
    assert rounds == sorted(rounds)
    stopped = [event.place.index for event in harness.told.of(BlockStopped)]
    assert len(stopped) == len(set(stopped))
    for event in harness.told.of(ToolInputCompleted):
        stop = next(e for e in harness.told.of(BlockStopped) if e.place.index == event.index)
        assert events.index(stop) < events.index(event)
    for request in harness.llm.requests:
        check_request(request.messages)


def check_request(messages: tuple[ModelMessage, ...]) -> None:
    """What holds for the messages of every request: the rules of `history.py`."""
    roles = [message.role for message in messages]
    assert roles == [("user", "assistant")[n % 2] for n in range(len(roles))]
    assert not roles or roles[-1] == "user"
    for n, message in enumerate(messages):
        answered = [result.tool_use_id for result in results_of(message)]
        called = [call.id for call in calls_of(messages[n - 1])] if n else []
        assert answered == called
        assert message.role == "user" or not answered
