"""The turn events as they go over the wire: `urn:a2a-canvas:turn:v1` (docs/extensions.md)."""

from __future__ import annotations

from typing import Any

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.protocols.a2a_v1 import canvas_ext
from a2a_canvas.store.edits import EditAborted, EditChunk, EditCompleted, EditStarted
from a2a_canvas.tools.part_inputs import MAX_DEPTH, require_portable

URI = "urn:a2a-canvas:turn:v1"

LEVELS_AROUND_INPUT = 3
"""Levels of metadata around the input of a call: the URI, `data`, `input`."""

TurnEventJson = dict[str, Any]
"""`{event_type, data}`."""


def turn_event(event_type: str, **data: Any) -> TurnEventJson:
    return {"event_type": event_type, "data": data}


def assistant(content: str) -> TurnEventJson:
    """The whole visible text of the round so far; replaces what was shown."""
    return turn_event("assistant", content=content, replace=True)


def completed(content: str) -> TurnEventJson:
    """The turn has ended, or pauses: every streaming area is to be cleared."""
    return turn_event("completed", content=content) if content else turn_event("completed")


STREAM_END = turn_event("stream_end")


def to_turn_event(event: ev.TurnEvent) -> TurnEventJson | None:
    """A turn event as a client sees it; None for what standard events already say, and what A2A cannot carry."""
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
            return turn_event("tool_use_start", **_place(event.place), **_ids(event.tool_use_id), name=event.name)
        case ev.ToolInputAdded():
            return turn_event(
                "tool_use_input_delta",
                **_place(event.place),
                tool_use_id=event.tool_use_id,
                partial_json=event.partial_json,
            )
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
            return turn_event(
                "llm_call_completed", round=event.round, stop_reason=event.stop_reason, usage=_usage(event)
            )
        case ev.FinalMessageStarted():
            return turn_event("final_message_start")
        case EditStarted() | EditChunk() | EditCompleted() | EditAborted():
            event_type, data = canvas_ext.edit_turn_event(event)
            return turn_event(event_type, **data)
        case _:
            return None


def _carriable(value: Any) -> bool:
    """A model may write JSON that no transport holds, such as half a surrogate pair or endless nesting."""
    try:
        require_portable(value, MAX_DEPTH - LEVELS_AROUND_INPUT)
    except ValueError:
        return False
    return True


def _place(place: ev.BlockPosition) -> dict[str, int]:
    return {"index": place.index, "round": place.round, "llm_index": place.llm_index}


def _ids(tool_use_id: str) -> dict[str, str]:
    return {"tool_use_id": tool_use_id, "tool_id": tool_use_id}


def _usage(event: ev.LlmCallCompleted) -> dict[str, int]:
    usage = event.usage
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }
