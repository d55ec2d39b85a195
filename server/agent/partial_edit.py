"""An edit of a selection by the model: one model call whose reply is the passage's new text.

Rule 1: the reply streams into an `EditStream`. Nothing but the passage changes, and that only when the reply is whole.
Rule 2: a stream that breaks is asked for again, at most twice; each try is an edit of its own to watchers.
Rule 3: whatever ends the edit before it is whole aborts it: an error, a cancel, a reply that was cut off. A cancel
        that comes while the change is being made comes too late.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import assert_never

from server.agent import events as ev
from server.agent.blocks import BlockError
from server.agent.language import is_markdown, language_of
from server.agent.model import (
    LLM,
    BlockStart,
    BlockStop,
    InputDelta,
    MessageDelta,
    MessageStart,
    MessageStop,
    ModelError,
    ModelEvent,
    ModelRequest,
    Passage,
    SignatureDelta,
    StopReason,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from server.agent.operations import Edit
from server.agent.outcomes import Ending, retryable, stopped, why
from server.agent.passage import edit_request, passage_of
from server.agent.progress import Progress
from server.agent.rewritten import Rewritten, inside_fence
from server.agent.telling import to_the_end, whole
from server.agent.thinking import ThinkingDeltas
from store.document import Applied
from store.models import Artifact, TextPart, repaired
from store.text import lines_of
from tools.base import Workspace
from tools.edit_stream import EditStream, Target

TRIES = 3
"""A model call is made once, and again at most twice."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: the model, the artifacts it works on, and whom it tells."""

    llm: LLM
    workspace: Workspace
    emit: ev.Emit


async def rewrite(edit: Edit, artifact: Artifact, target: Target, message_id: str, writer: Writer) -> Ending:
    """Have the passage at `target` rewritten, and say how that ended.

    Raises:
        StoreError: the change was refused; the edit has been aborted.
        asyncio.CancelledError: the edit has been aborted.
    """
    passage = _passage(edit, artifact, target)
    request = edit_request(passage, message_id)
    fenced = is_markdown(passage.language) and inside_fence(target.text[: target.span.start])
    progress = Progress().next_round()
    for tries_left in reversed(range(TRIES)):
        stream = EditStream(writer.workspace, target, edit.strategy)
        reply = _Reply(progress, writer)
        rewritten = Rewritten(passage, inside_fence=fenced)
        try:
            await whole(stream.start())
            await _write(request, reply, rewritten, stream, writer.llm)
            if ending := stopped(reply.stop_reason):
                await to_the_end(stream.abort())
                return ending
            applied = await to_the_end(stream.complete())
            return _edited(applied, stream.target, passage.name, rewritten.remarks)
        except (ModelError, BlockError) as error:
            again = bool(tries_left) and retryable(error)
            await to_the_end(stream.abort(again=again))
            if not again:
                return Ending(ev.State.FAILED, why(error))
        except BaseException:
            await to_the_end(stream.abort())
            raise
        finally:
            progress = reply.progress
    raise AssertionError("unreachable")


def _passage(edit: Edit, artifact: Artifact, target: Target) -> Passage:
    text = next(part for part in artifact.parts if isinstance(part, TextPart))
    return passage_of(
        target.text,
        target.span,
        name=artifact.name or artifact.artifact_id,
        language=language_of(artifact.name, text.media_type, text.metadata),
        instruction=edit.instruction,
        strategy=edit.strategy,
    )


async def _write(request: ModelRequest, reply: _Reply, rewritten: Rewritten, stream: EditStream, llm: LLM) -> None:
    try:
        async with aclosing(llm.stream(request)) as events:
            async for event in events:
                await stream.feed(rewritten.feed(await reply.take(event)))
        reply.check_ended()
    finally:
        await reply.end("error", Usage())
    await stream.feed(rewritten.flush())


def _edited(applied: Applied, target: Target, name: str, remarks: str) -> Ending:
    first, last = lines_of(target.text, target.span)
    where = f"line {first}" if first == last else f"lines {first}-{last}"
    said = f"Edited {name} at {where}: version {applied.version} is saved."
    return Ending(ev.State.COMPLETED, f"{said}\n\n{remarks}" if remarks else said)


class _Reply:
    """Takes a model's events: tells of its thinking, and gives the text. There are no tools."""

    def __init__(self, progress: Progress, writer: Writer) -> None:
        self.progress = progress.next_call()
        self.stop_reason: StopReason = "error"
        self._emit = writer.emit
        self._thinking = ThinkingDeltas(writer.llm.thinking)
        self._open: dict[int, tuple[ev.Place, str]] = {}
        self._ended = False

    async def take(self, event: ModelEvent) -> str:
        """The text that an event adds.

        Raises:
            BlockError: it is for a block that never started, or of another kind.
        """
        match event:
            case TextDelta():
                self._block(event.llm_index, "text")
                return repaired(event.text)
            case ThinkingDelta():
                await self._think(self._block(event.llm_index, "thinking"), repaired(event.text))
            case MessageStart():
                await self._emit(ev.MessageStarted(self.progress.round))
            case BlockStart():
                await self._start(event)
            case BlockStop():
                await self._stop(event.llm_index)
            case MessageDelta():
                await self._emit(ev.MessageDelta(self.progress.round))
            case MessageStop():
                self.stop_reason = event.stop_reason
                await self.end(event.stop_reason, event.usage)
            case SignatureDelta() | InputDelta():
                pass
            case _:
                assert_never(event)
        return ""

    async def end(self, reason: StopReason, usage: Usage) -> None:
        """Say that the model call is over, once."""
        if not self._ended:
            self._ended = True
            await whole(self._emit(ev.LlmCallCompleted(self.progress.round, reason, usage)))

    def check_ended(self) -> None:
        """Raises `ModelError` if the stream ended without the model having said so."""
        if not self._ended:
            raise ModelError("The connection to the model ended in the middle of its answer.", retryable=True)

    def _block(self, llm_index: int, kind: str) -> ev.Place:
        place, of_kind = self._open[self.progress.blocks.index_of(llm_index)]
        if of_kind != kind:
            raise BlockError(llm_index, f"is a {of_kind} block and was sent a piece of a {kind} block")
        return place

    async def _start(self, event: BlockStart) -> None:
        blocks, index = self.progress.blocks.start(event.llm_index)
        self.progress = replace(self.progress, blocks=blocks)
        place = ev.Place(index, self.progress.round, event.llm_index)
        self._open[index] = place, event.kind
        self._thinking.begin_block()
        if event.kind != "tool_use":
            await self._emit(ev.TextBlockStarted(place, event.kind))

    async def _think(self, place: ev.Place, content: str) -> None:
        if piece := self._thinking.feed(content):
            await self._emit(ev.ThinkingAdded(place, piece))

    async def _stop(self, llm_index: int) -> None:
        blocks, index = self.progress.blocks.stop(llm_index)
        self.progress = replace(self.progress, blocks=blocks)
        place, kind = self._open.pop(index)
        if kind != "tool_use":
            await self._emit(ev.BlockStopped(place))
