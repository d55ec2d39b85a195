"""Maps the raw events of a Messages API stream to `ModelEvent`s. Pure, and without the SDK.

Rules:

1. An event is the JSON object that the provider sent, not validated: a missing or wrongly typed member counts as
   nothing sent.
2. A block of an unknown type (a server tool's) is skipped: its start, its deltas and its stop.
   A delta or stop of a block that never started is passed on: the turn rejects it.
3. Empty fragments are skipped. The content of a block's start becomes its first delta.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Final

from a2a_canvas.server.agent import model as m
from a2a_canvas.server.agent.models.unchecked_json import Json, number_of, object_of, text_of
from a2a_canvas.store.text.unicode import replace_surrogates

logger = logging.getLogger(__name__)

_STOP_REASONS: Final[Mapping[str, m.StopReason]] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",  # cut off as well, by the other limit
    "refusal": "refusal",
    "stop_sequence": "stop_sequence",
    "pause_turn": "end_turn",  # only server tools pause, and none are offered
}


class EventMapper:
    """Maps the raw events of one model call, in order.

    Args:
        reported: the unknown block types that have been logged; grows.
    """

    def __init__(self, reported: set[str]) -> None:
        self._reported = reported
        self._skipped: set[int] = set()
        self._usage = m.Usage()
        self._stop_reason: m.StopReason | None = None

    def feed(self, raw: Json) -> list[m.ModelEvent]:
        """The events of one raw event: none for pings, citations and unknown types."""
        index = number_of(raw.get("index"), -1)
        match raw.get("type"):
            case "content_block_delta" if index not in self._skipped:  # first, because they are many
                return _delta(index, object_of(raw, "delta"))
            case "message_start":
                self._usage = _update_usage(self._usage, object_of(object_of(raw, "message"), "usage"))
                return [m.MessageStart()]
            case "content_block_start":
                return self._start(index, object_of(raw, "content_block"))
            case "content_block_stop" if index not in self._skipped:
                return [m.BlockStop(index)]
            case "message_delta":
                self._usage = _update_usage(self._usage, object_of(raw, "usage"))
                return self._stopping(text_of(object_of(raw, "delta"), "stop_reason"))
            case "message_stop":
                return [m.MessageStop(self._stop_reason or "end_turn", self._usage)]
            case _:
                return []

    def end(self) -> m.MessageStop | None:
        """The last event if the stream ends here; None if the answer is incomplete, without a stop reason."""
        return m.MessageStop(self._stop_reason, self._usage) if self._stop_reason else None

    def _start(self, index: int, block: Json) -> list[m.ModelEvent]:
        self._skipped.discard(index)
        match kind := text_of(block, "type"):
            case "text":
                return [m.BlockStart(index, "text"), *_deltas(m.TextDelta, index, text_of(block, "text"))]
            case "thinking":
                thought = _deltas(m.ThinkingDelta, index, text_of(block, "thinking"))
                signature = _deltas(m.SignatureDelta, index, text_of(block, "signature"))
                return [m.BlockStart(index, "thinking"), *thought, *signature]
            case "redacted_thinking":
                return [m.BlockStart(index, "thinking"), m.SignatureDelta(index, redacted=text_of(block, "data"))]
            case "tool_use":
                use_id, name = (replace_surrogates(text_of(block, field)) for field in ("id", "name"))
                start = m.BlockStart(index, "tool_use", tool_use_id=use_id, name=name)
                given = block.get("input")
                return [start, *_deltas(m.InputDelta, index, json.dumps(given, ensure_ascii=False) if given else "")]
            case _:
                self._skip(index, kind)
                return []

    def _skip(self, index: int, kind: str) -> None:
        self._skipped.add(index)
        if kind not in self._reported:
            self._reported.add(kind)
            logger.warning("Ignoring content blocks of the unknown type %r", kind)

    def _stopping(self, reason: str) -> list[m.ModelEvent]:
        if not reason:
            return []
        if reason not in _STOP_REASONS:
            logger.warning("Treating the unknown stop reason %r as the end of the turn", reason)
        self._stop_reason = _STOP_REASONS.get(reason, "end_turn")
        return [m.StopReasonDelta(self._stop_reason)]


_Delta = type[m.TextDelta] | type[m.ThinkingDelta] | type[m.SignatureDelta] | type[m.InputDelta]
_DELTAS: Final[Mapping[str, tuple[_Delta, str]]] = {
    "text_delta": (m.TextDelta, "text"),
    "thinking_delta": (m.ThinkingDelta, "thinking"),
    "signature_delta": (m.SignatureDelta, "signature"),
    "input_json_delta": (m.InputDelta, "partial_json"),
}


def _delta(index: int, delta: Json) -> list[m.ModelEvent]:
    kind, name = _DELTAS.get(text_of(delta, "type"), (m.TextDelta, ""))
    return _deltas(kind, index, text_of(delta, name))


def _deltas(kind: _Delta, index: int, text: str) -> list[m.ModelEvent]:
    return [kind(index, text)] if text else []


def _update_usage(usage: m.Usage, reported: Json) -> m.Usage:
    """`usage` with the reported counts, which are cumulative."""
    return m.Usage(
        input_tokens=number_of(reported.get("input_tokens"), usage.input_tokens),
        output_tokens=number_of(reported.get("output_tokens"), usage.output_tokens),
        cache_read_tokens=number_of(reported.get("cache_read_input_tokens"), usage.cache_read_tokens),
        cache_write_tokens=number_of(reported.get("cache_creation_input_tokens"), usage.cache_write_tokens),
    )
