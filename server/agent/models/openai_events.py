"""Maps the chunks of a chat completion to `ModelEvent`s. Pure, and without the SDK.

Rules:

1. A chunk is the JSON object that the server sent, not validated: a missing or wrongly typed member counts as nothing
   sent. Of several choices only the first is read.
2. A chat completion has no blocks: we number them. Text or thinking is one block until something else follows.
3. A call is identified by its index, and a piece without one belongs to the newest call. Servers give several calls the
   same index, or each piece of a call another id: a piece begins a new call if it names a function and the call at its
   index is complete JSON, or nothing yet and of another id.
4. A call ends when something else follows and its input is complete JSON; else with the answer: pieces of two calls
   may alternate. Pieces for a call that has ended are ignored.
5. An answer is complete with a finish reason other than `error`, or with `[DONE]` behind at least one chunk.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from a2a_canvas.server.agent import model as m
from a2a_canvas.server.agent.models.unchecked_json import Json, number_of, object_of, text_of
from a2a_canvas.store.text.unicode import replace_surrogates
from a2a_canvas.tools.json_values import value_of_json

logger = logging.getLogger(__name__)

_STOP_REASONS: Final[Mapping[str, m.StopReason]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "model_length": "max_tokens",  # Mistral: the window is full
    "content_filter": "refusal",
}
_FINAL: Final = ("final", "final_answer")
"""Marks of the final message: the channel of harmony (gpt-oss), the phase of newer OpenAI models."""


@dataclass(slots=True)
class _Call:
    """A tool call. `block` is its number."""

    block: int
    id: str
    pieces: list[str] = field(default_factory=list)
    ended: bool = False

    @property
    def complete(self) -> bool:
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        return isinstance(value_of_json("".join(self.pieces)), dict)


class ChunkMapper:
    """Maps the chunks of one model call, in order.

    Args:
        thinking: whether the server sends its thinking in pieces, or all of it so far.
    """

    def __init__(self, thinking: Literal["delta", "accumulated"] = "delta") -> None:
        self._accumulated = thinking == "accumulated"
        self._thought = ""
        self._begun = False
        self._blocks = 0
        self._open: tuple[Literal["text", "thinking"], int, bool] | None = None
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._newest = 0
        self._refused = self._failed = False
        self._usage = m.Usage()
        self._stop_reason: m.StopReason | None = None

    @property
    def complete(self) -> bool:
        """Whether the server has sent a finish reason."""
        return self._stop_reason is not None

    def feed(self, chunk: Json) -> Iterator[m.ModelEvent]:
        """The events of one chunk."""
        if not self._begun:
            self._begun = True
            yield m.MessageStart()
        self._usage = _update_usage(
            self._usage, object_of(chunk, "usage") or object_of(object_of(chunk, "x_groq"), "usage")
        )
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        yield from self._message(object_of(choice, "delta"))
        if reason := text_of(choice, "finish_reason"):
            yield from self._finish(reason)

    def end(self, done: bool = False) -> Iterator[m.ModelEvent]:
        """The last events if the stream ends here; none if the answer is incomplete.

        Args:
            done: whether the server marked the end.
        """
        if done and self._begun and not self._failed and not self._stop_reason:
            yield from self._finish("stop")
        if self._stop_reason:
            yield m.MessageStop(self._stop_reason, self._usage)

    def _message(self, delta: Json) -> Iterator[m.ModelEvent]:
        final = text_of(delta, "channel") in _FINAL or text_of(delta, "phase") in _FINAL
        thought = text_of(delta, "reasoning_content") or text_of(delta, "reasoning")
        yield from self._think(thought)
        for kind, text in _parts(delta.get("content")):
            yield from self._think(text) if kind == "thinking" else self._say("text", text, final)
        if refusal := text_of(delta, "refusal"):
            self._refused = True
            yield from self._say("text", refusal)
        pieces = delta.get("tool_calls")
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                yield from self._call(piece)

    def _think(self, text: str) -> Iterator[m.ModelEvent]:
        # The thinking so far is repeated with the text and the calls that follow it.
        if self._accumulated and text == self._thought:
            return
        self._thought = text or self._thought
        yield from self._say("thinking", text)

    def _say(self, kind: Literal["text", "thinking"], text: str, final: bool = False) -> Iterator[m.ModelEvent]:
        if not text:
            return
        if self._open is None or (self._open[0], self._open[2]) != (kind, final):
            yield from self._end_blocks()
            self._open = (kind, self._next_block(), final)
            yield m.BlockStart(self._open[1], kind, final=final)
        block = self._open[1]
        yield m.TextDelta(block, text) if kind == "text" else m.ThinkingDelta(block, text)

    def _call(self, piece: Json) -> Iterator[m.ModelEvent]:
        index = number_of(piece.get("index"), self._newest)
        function = object_of(piece, "function")
        use_id, name = replace_surrogates(text_of(piece, "id")), replace_surrogates(text_of(function, "name"))
        written = function.get("arguments")
        text = json.dumps(written, ensure_ascii=False) if isinstance(written, dict) else text_of(function, "arguments")
        call = self._by_index.get(index)
        if call is None or _begins_another(call, use_id, name, text):
            yield from self._end_blocks()
            call = self._by_index[index] = _Call(self._next_block(), use_id)
            self._calls.append(call)
            self._newest = index
            yield m.BlockStart(call.block, "tool_use", tool_use_id=use_id, name=name)
        if text and not call.ended:
            call.pieces.append(text)
            yield m.InputDelta(call.block, text)

    def _next_block(self) -> int:
        self._blocks += 1
        return self._blocks - 1

    def _end_blocks(self, all_calls: bool = False) -> Iterator[m.ModelEvent]:
        """End the block of text or thinking, and the calls that are complete, or all."""
        if self._open:
            yield m.BlockStop(self._open[1])
            self._open = None
        for call in self._calls:
            if not call.ended and (all_calls or call.complete):
                call.ended = True
                yield m.BlockStop(call.block)

    def _finish(self, reason: str) -> Iterator[m.ModelEvent]:
        if reason == "error":
            self._failed = True
            return
        if reason not in _STOP_REASONS:
            logger.warning("Treating the unknown finish reason %r as the end of the turn", reason)
        meant = _STOP_REASONS.get(reason, "end_turn")
        if meant in ("end_turn", "tool_use"):
            meant = "refusal" if self._refused else "tool_use" if self._calls else "end_turn"
        yield from self._end_blocks(all_calls=True)
        if not self._stop_reason:
            self._stop_reason = meant
            yield m.StopReasonDelta(meant)


def _begins_another(call: _Call, use_id: str, name: str, text: str) -> bool:
    if not name:
        return False
    other_id = use_id not in ("", call.id)
    if call.ended or call.complete:
        return other_id or bool(text)
    return other_id and not call.pieces


def error_in(chunk: Json) -> str | None:
    """The message of an error sent instead of a chunk; None if the chunk is not an error."""
    if not chunk.get("error"):
        return None
    return error_message(chunk)


def error_message(body: object) -> str:
    """The message in the body of an error, in any server's format."""
    match body:
        case str():
            return "" if body.lstrip().startswith("<") else body  # an HTML page
        case {"error": inner} if inner:
            return error_message(inner)
        case {"metadata": {"raw": str(raw)}} if raw:  # OpenRouter: the message of the provider behind it
            return raw
        case {"message": said} | {"detail": said} | {"msg": said} if said:
            return error_message(said)
        case {"detail": said} if said:
            return error_message(said)
        case list():
            return "; ".join(filter(None, map(_field_error, body)))
        case _:
            return ""


def _field_error(fault: object) -> str:
    """An error of FastAPI about one field."""
    place = fault.get("loc") if isinstance(fault, dict) else None
    said = error_message(fault)
    return f"{'.'.join(map(str, place))}: {said}" if isinstance(place, list) and said else said


def _parts(content: object) -> Iterator[tuple[Literal["text", "thinking"], str]]:
    """The content of a delta: a text, or parts; thinking is in separate parts (Mistral)."""
    for part in content if isinstance(content, list) else (content,):
        match part:
            case str():
                yield "text", part
            case {"type": "thinking", "thinking": thought}:
                yield "thinking", "".join(text for _, text in _parts(thought))
            case {"text": str(text)}:
                yield "text", text


def _update_usage(usage: m.Usage, reported: Json) -> m.Usage:
    """`usage` with the reported counts, which are cumulative. Prompt tokens include the cached ones."""
    if not reported:
        return usage
    details = object_of(reported, "prompt_tokens_details")
    read, written = (max(0, number_of(details.get(name), 0)) for name in ("cached_tokens", "cache_write_tokens"))
    prompt = number_of(reported.get("prompt_tokens"), usage.total_input)
    return m.Usage(
        input_tokens=max(0, prompt - read - written),
        output_tokens=number_of(reported.get("completion_tokens"), usage.output_tokens),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
