"""The turn events as they go over the wire: `urn:a2a-canvas:turn:v1` (docs/turn.md)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.protocols.a2a_v1.projection import canvas_ext
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditEvent, EditStarted, EditSuggested
from a2a_canvas.store.text.rope import Rope
from a2a_canvas.tools.part_inputs import MAX_DEPTH, require_portable

LEVELS_AROUND_INPUT = 3
"""Levels of metadata around the input of a call: the URI, `data`, `input`."""

TurnEventJson = dict[str, Any]
"""`{event_type, data}`."""


def turn_event(event_type: str, **data: Any) -> TurnEventJson:
    return {"event_type": event_type, "data": data}


def assistant_event(content: Rope) -> TurnEventJson:
    """The whole visible text of the round so far; it replaces the text shown before."""
    return turn_event("assistant", content=str(content), replace=True)


def completed_event(content: str) -> TurnEventJson:
    """The turn has ended or pauses: clients clear every streaming area."""
    return turn_event("completed", content=content) if content else turn_event("completed")


STREAM_END = turn_event("stream_end")


RESEND_GROWTH = 1 / 8
"""A text that a client cannot append to is sent again once it has grown by this fraction: at most ten times its size in
all."""


class ReplySoFar:
    """The visible text of a round as one subscriber follows it, and when `assistant` sends it whole again.

    Its methods yield that text when it is to be sent.

    Args:
        text: the reply where the subscriber's stream begins.
    """

    def __init__(self, text: Rope) -> None:
        self._text = text
        self._sent_length = 0
        self._due = False

    def send(self) -> Iterator[Rope]:
        """The reply so far, if there is one."""
        self._due, self._sent_length = False, len(self._text)
        if self._text:
            yield self._text

    def send_before(self, event: ev.TurnEvent) -> Iterator[Rope]:
        """The reply, if it has grown since it was sent and `event` ends its text."""
        return self.send() if self._due and _ends_text(event) else iter(())

    def follow(self, event: ev.TurnEvent, *, behind: bool) -> Iterator[Rope]:
        """The reply after `event`, if it has grown enough.

        Args:
            behind: the next event exists already: a reply sent now would be out of date.
        """
        match event:
            case ev.MessageStarted():
                self._text, self._due, self._sent_length = Rope(), False, 0
            case ev.TextAdded():
                self._text += Rope(event.text)
                self._due = True
                if len(self._text) > self._sent_length * (1 + RESEND_GROWTH) and not behind:
                    yield from self.send()
            case _:
                pass


class ThinkingFilter:
    """Filters turn events for one subscriber: without `exposed` it gets neither thinking nor its blocks.

    The other blocks are then numbered as if there were no thinking blocks, so that no number is missing. The stop of a
    block that nothing was sent of is left out as well: it may be a thinking block.

    Args:
        exposed: the subscriber may see thinking.
        thinking: the indices of the turn's thinking blocks when the subscriber's stream begins, in order.
    """

    def __init__(self, exposed: bool, thinking: tuple[int, ...] = ()) -> None:
        self._exposed = exposed
        self._thinking = list(thinking)
        self._seen: set[int] = set()

    def filter(self, event: ev.TurnEvent) -> ev.TurnEvent | None:
        """The event as it is sent; None if it is left out."""
        if self._exposed:
            return event
        match event:
            case ev.ThinkingAdded():
                return None
            case ev.TextBlockStarted(kind="thinking"):
                self._thinking.append(event.place.index)
                return None
            case ev.TextBlockStarted() | ev.TextAdded() | ev.ToolUseStarted() | ev.ToolInputAdded():
                self._seen.add(event.place.index)
                return replace(event, place=self._renumber(event.place))
            case ev.BlockStopped():
                seen = event.place.index in self._seen
                return replace(event, place=self._renumber(event.place)) if seen else None
            case ev.ToolInputCompleted() | ev.ToolSucceeded() | ev.ToolFailed():
                return replace(event, index=self._number(event.index))
            case _:
                return event

    def _renumber(self, place: ev.BlockPosition) -> ev.BlockPosition:
        return replace(place, index=self._number(place.index))

    def _number(self, index: int) -> int:
        return index - bisect_left(self._thinking, index)


def _ends_text(event: ev.TurnEvent) -> bool:
    match event:
        case ev.BlockStopped() | ev.LlmCallCompleted():
            return True
        case ev.StatusChanged():
            return event.state.settled or not (event.message and event.message.label)
        case _:
            return False


def to_turn_event(event: ev.TurnEvent) -> TurnEventJson | None:
    """A turn event as it is sent; None if a standard event says the same, or if A2A cannot carry it."""
    match event:
        case ev.MessageStarted():
            return turn_event("message_start", round=event.round)
        case ev.MessageDelta():
            return turn_event("message_delta", round=event.round)
        case ev.TextBlockStarted():
            return turn_event("text_block_start", **_place(event.place), type=event.kind)
        case ev.TextAdded():
            return turn_event("text_delta", **_place(event.place), text=event.text)
        case ev.ThinkingAdded():
            return turn_event("thinking", **_place(event.place), content=event.content)
        case ev.ToolUseStarted():
            ids = {"tool_use_id": event.tool_use_id, "tool_id": event.tool_use_id}
            return turn_event("tool_use_start", **_place(event.place), **ids, name=event.name)
        case ev.ToolInputAdded():
            delta = {"tool_use_id": event.tool_use_id, "partial_json": event.partial_json}
            return turn_event("tool_use_input_delta", **_place(event.place), **delta)
        case ev.BlockStopped():
            return turn_event("content_block_stop", **_place(event.place))
        case _:
            return _result(event)


def _result(event: ev.TurnEvent) -> TurnEventJson | None:
    match event:
        case ev.ToolInputCompleted() if not _carriable(event.input):
            return None
        case ev.ToolInputCompleted():
            return turn_event(
                "tool_use_input_complete", index=event.index, tool_use_id=event.tool_use_id, input=dict(event.input)
            )
        case ev.ToolSucceeded():
            return turn_event("tool_result", index=event.index, tool_use_id=event.tool_use_id, content=event.content)
        case ev.ToolFailed():
            return turn_event(
                "tool_execution_error", index=event.index, tool_use_id=event.tool_use_id, error=event.error
            )
        case ev.LlmCallCompleted():
            usage = asdict(event.usage)
            return turn_event("llm_call_completed", round=event.round, stop_reason=event.stop_reason, usage=usage)
        case ev.FinalMessageStarted():
            return turn_event("final_message_start")
        case EditStarted() | EditChunk() | EditCompleted() | EditSuggested() | EditAborted():
            return edit_event(event)
        case _:
            return None


def edit_event(event: EditEvent) -> TurnEventJson:
    """An event of an edit."""
    event_type, data = canvas_ext.edit_turn_event(event)
    return turn_event(event_type, **data)


def _carriable(value: Any) -> bool:
    """A model may write JSON that no transport can carry, such as half a surrogate pair or very deep nesting."""
    try:
        require_portable(value, MAX_DEPTH - LEVELS_AROUND_INPUT)
    except ValueError:
        return False
    return True


def _place(place: ev.BlockPosition) -> dict[str, int]:
    return {"index": place.index, "round": place.round, "llm_index": place.llm_index}
