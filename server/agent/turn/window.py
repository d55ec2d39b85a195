"""Fits a conversation into the model's window. Pure: the stored transcripts are not changed.

Rule 1: omitted are, oldest first: the contents of tool results, but not those of the newest answer; then the long texts
        in the inputs of calls that wrote or edited an artifact, likewise; then attached files; then whole tasks, but
        not the current one. A note replaces each.
Rule 2: the user's messages to the current task stay, every call keeps its result, every input its shape.
Rule 3: what one request omits, the following ones omit too, and it is omitted in large steps, so that most requests
        begin alike, as prompt caching requires. Hence the conversation is replayed from its beginning: at every model
        call whose request did not fit, more is omitted, until the request takes three quarters of the room. So a
        request extends the last one, after a restart too.
Rule 4: thinking stays. A provider that refuses it after an omission is asked without it (`models/claude.py`).
Rule 5: sizes are estimates (`tokens`) without a tokenizer. They are corrected for each conversation as soon as the
        provider has counted or refused one of its requests (`WindowEstimate`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

from a2a_canvas.server.agent import model as m
from a2a_canvas.server.agent.attachments import is_text, placeholder
from a2a_canvas.server.agent.events import AssistantOutput, ToolStep, Transcript, TranscriptItem, UserInput
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.tools import artifact_edit, artifact_update
from a2a_canvas.tools.tool import READ_LIMIT

RESULT_LEFT_OUT: Final = "[This result was left out to save space. Read the artifact again if you need it.]"
TEXT_LEFT_OUT: Final = "[This text was left out to save space. Read the artifact if you need it.]"
TASKS_LEFT_OUT: Final = (
    "[The earlier part of this conversation was left out to save space. Its artifacts are there: see artifact_list.]"
)

MEDIA_TOKENS: Final = 2_000
"""Tokens of an image or a document, at least."""
MEDIA_BYTES_PER_TOKEN: Final = 120
"""Bytes of it for a token, so that about 20 MB fill a window of 200,000 tokens: a request has 32 MB at most."""
BLOCK_TOKENS: Final = 8
"""Tokens of the markup around a block."""
SAFETY_FACTOR: Final = 1.05
"""A safety margin over the provider's count: what follows may be denser."""
SHRINK_FACTOR: Final = 0.6
"""The share of a request that is sent next, if the provider does not report the excess."""
MAX_SCALE: Final = 4.0
"""At most one token for each byte."""
LONG_TEXT: Final = 200
"""The minimum length of a text in an input that is omitted."""
_WRITING: Final = (artifact_update.NAME, artifact_edit.NAME)

ItemPosition = tuple[int, int]
"""A task, and an item of its transcript."""


@dataclass(frozen=True, slots=True)
class WindowEstimate:
    """The size of a conversation in the provider's tokens.

    Attributes:
        scale: the provider's tokens for each estimated one.
        max_tokens: the most estimated tokens of a request, since a longer one was refused.
    """

    scale: float = 1.0
    max_tokens: float = math.inf

    def after_count(self, estimate: int, tokens: int) -> WindowEstimate:
        """After a request whose tokens the provider has counted.

        The scale changes in steps, because each change alters what is omitted, and so the beginning of requests.
        """
        scale = _scale(estimate, tokens)
        fits = self.scale * 0.75 <= scale * SAFETY_FACTOR <= self.scale * SAFETY_FACTOR
        return self if fits else replace(self, scale=scale * SAFETY_FACTOR)

    def after_refusal(self, estimate: int, tokens: int | None, window: int | None) -> WindowEstimate:
        """After a request that was too long; `tokens` as the provider counts them, if known."""
        scale = max(self.scale, _scale(estimate, tokens) * SAFETY_FACTOR) if tokens else self.scale
        fits = window / scale if window else math.inf
        return WindowEstimate(scale, min(self.max_tokens, fits if fits < estimate else estimate * SHRINK_FACTOR))


def _scale(estimate: int, tokens: int) -> float:
    # The count may be less than the estimate: providers do not count the thinking of earlier answers.
    return min(max(tokens / max(estimate, 1), 1.0), MAX_SCALE)


class WindowEstimates:
    """The estimates of conversations by their ids; the `MAX_ESTIMATES` most recently updated ones."""

    MAX_ESTIMATES: Final = 1_000

    def __init__(self) -> None:
        self._known: dict[str, WindowEstimate] = {}

    def get(self, context_id: ContextKey) -> WindowEstimate:
        return self._known.get(context_id, WindowEstimate())

    def put(self, context_id: ContextKey, estimate: WindowEstimate) -> None:
        self._known.pop(context_id, None)
        self._known[context_id] = estimate
        if len(self._known) > self.MAX_ESTIMATES:
            del self._known[next(iter(self._known))]


def prefix_tokens(system: str, tools: Iterable[m.ToolSpec]) -> int:
    """The estimated tokens of the system prompt and the tools."""
    return _size(system) + sum(BLOCK_TOKENS + _size(tool.description) + _size_of(tool.input_schema) for tool in tools)


def token_budget(window: int | None, prefix: int, estimate: WindowEstimate) -> int | None:
    """The estimated tokens left for the conversation, at least 0; None if unknown.

    Args:
        window: the tokens that a request may have.
        prefix: see `prefix_tokens`.
    """
    max_tokens = estimate.max_tokens if window is None else min(window / estimate.scale, estimate.max_tokens)
    return None if max_tokens == math.inf else max(0, int(max_tokens) - prefix)


def read_limit(room: int | None) -> int:
    """The limit of an artifact's characters in one tool result: each may take a token, and other content needs room."""
    return READ_LIMIT if room is None else max(2_000, min(READ_LIMIT, room // 2))


def fit_transcripts(transcripts: Sequence[Transcript], room: int | None) -> tuple[Transcript, ...]:
    """The transcripts of a context's tasks, the current one last, trimmed to `room` tokens.

    They may still exceed it if there is nothing left to omit.
    """
    if room is None:
        return tuple(transcripts)
    fitting = _TranscriptFitter(room)
    for task, transcript in enumerate(transcripts):
        fitting.begin_task(task)
        for number, item in enumerate(transcript):
            fitting.add((task, number), item)
    fitting.fit()
    return fitting.trim(transcripts)


def request_tokens(request: m.ModelRequest) -> int:
    """The estimated tokens of a request."""
    contents = (content for message in request.messages for content in message.content)
    return prefix_tokens(request.system, request.tools) + sum(map(_tokens, contents))


def tokens(item: TranscriptItem) -> int:
    """The estimated tokens of an item: one for four bytes of its text."""
    match item:
        case UserInput(content=contents) | AssistantOutput(blocks=contents):
            return sum(map(_tokens, contents))
        case m.ToolResult():
            return _tokens(item)
        case ToolStep():
            return 0
        case _:
            assert_never(item)


def _tokens(content: m.ModelContent) -> int:
    match content:
        case m.ModelText(text):
            return BLOCK_TOKENS + _size(text)
        case m.Thinking(text, signature, redacted):
            return BLOCK_TOKENS + _size(text) + _size(signature) + _size(redacted)
        case m.Attachment(content=data):
            size = len(data or b"")
            return BLOCK_TOKENS + (size // 4 if is_text(content) else max(MEDIA_TOKENS, size // MEDIA_BYTES_PER_TOKEN))
        case m.ToolUse(name=name, input=given):
            return BLOCK_TOKENS + _size(name) + _size_of(given)
        case m.ToolResult(content=text):
            return BLOCK_TOKENS + _size(text)
        case _:
            assert_never(content)


def _size(text: str) -> int:
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-length // 4)


def _size_of(value: object) -> int:
    match value:
        case str():
            return _size(value)
        case dict() | Mapping():  # `dict` first: `isinstance` of a protocol is slow
            return sum(_size(str(key)) + 1 + _size_of(inner) for key, inner in value.items())
        case list() | tuple():
            return sum(map(_size_of, value))
        case _:
            return 1


class _TranscriptFitter:
    """Replays a conversation. `_results`, `_inputs` and `_files` may be omitted, with the tokens that each saves; those
    of the newest answer are in `_newest`, those of the current task's user messages in `_newest_files`."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._size = 0
        self._sizes: list[int] = []
        self._call: int | None = None
        self._results: deque[tuple[ItemPosition, int]] = deque()
        self._inputs: deque[tuple[ItemPosition, int]] = deque()
        self._files: deque[tuple[ItemPosition, int]] = deque()
        self._newest: list[tuple[deque[tuple[ItemPosition, int]], ItemPosition, int]] = []
        self._newest_files: list[tuple[ItemPosition, int]] = []
        self._omitted: set[ItemPosition] = set()
        self._dropped = 0

    def begin_task(self, task: int) -> None:
        assert task == len(self._sizes)
        self._sizes.append(0)
        self._call = None
        self._allow_omitting()
        self._files.extend(self._newest_files)
        self._newest_files.clear()

    def add(self, position: ItemPosition, item: TranscriptItem) -> None:
        if isinstance(item, AssistantOutput) and item.call != self._call:
            self.fit()  # a model call
            self._call = item.call
            self._allow_omitting()
        whole, short = tokens(item), _shorten_item(item)
        self._grow(position[0], whole)
        saving = 0 if short is item else whole - tokens(short)
        if saving > 0 and isinstance(item, UserInput):
            self._newest_files.append((position, saving))
        elif saving > 0:
            self._newest.append((self._results if isinstance(item, m.ToolResult) else self._inputs, position, saving))

    def fit(self) -> None:
        """Omit enough for a model call (rule 3)."""
        if self._size > self._room:
            while self._size > self._room * 3 // 4 and self._omit_one():
                pass

    def trim(self, transcripts: Sequence[Transcript]) -> tuple[Transcript, ...]:
        """The transcripts without what is omitted."""
        kept = [
            tuple(_shorten_item(item) if (task, n) in self._omitted else item for n, item in enumerate(transcript))
            for task, transcript in enumerate(transcripts)
            if task >= self._dropped
        ]
        if self._dropped:
            kept[0] = (UserInput("", (m.ModelText(TASKS_LEFT_OUT),)), *kept[0])
        return tuple(kept)

    def _omit_one(self) -> bool:
        """Omit one more item; False if there is none left."""
        queue = self._results or self._inputs or self._files
        if queue:
            position, saving = queue.popleft()
            self._omitted.add(position)
            self._grow(position[0], -saving)
        elif self._dropped < len(self._sizes) - 1:
            self._size -= self._sizes[self._dropped]
            self._size += 0 if self._dropped else _tokens(m.ModelText(TASKS_LEFT_OUT))
            self._dropped += 1
        else:
            return False
        return True

    def _allow_omitting(self) -> None:
        for queue, position, saving in self._newest:
            queue.append((position, saving))
        self._newest.clear()

    def _grow(self, task: int, by: int) -> None:
        self._sizes[task] += by
        self._size += by


def _shorten_item(item: TranscriptItem) -> TranscriptItem:
    """The replacement of an omitted item; the item itself if it stays."""
    match item:
        case m.ToolResult():
            return replace(item, content=RESULT_LEFT_OUT)
        case AssistantOutput() if any(map(_writes, item.blocks)):
            return replace(item, blocks=tuple(_shorten_block(block) for block in item.blocks))
        case UserInput() if any(isinstance(content, m.Attachment) for content in item.content):
            return replace(item, content=tuple(map(_mention, item.content)))
        case AssistantOutput() | UserInput() | ToolStep():
            return item
        case _:
            assert_never(item)


def _mention(content: m.ModelContent) -> m.ModelContent:
    if not isinstance(content, m.Attachment) or not content.content:
        return content
    return m.ModelText(f"{placeholder(content).removesuffix(']')}; left out to save space]")


def _writes(block: m.ModelContent) -> bool:
    return isinstance(block, m.ToolUse) and block.name in _WRITING


def _shorten_block(block: m.ModelText | m.Thinking | m.ToolUse) -> m.ModelText | m.Thinking | m.ToolUse:
    if not (isinstance(block, m.ToolUse) and _writes(block)):
        return block
    # The shape stays that of a valid call, because models write new calls like those they see.
    return replace(block, input={key: _shorten_value(value) for key, value in block.input.items()})


def _shorten_value(value: Any) -> Any:
    match value:
        case str():
            return TEXT_LEFT_OUT if len(value) > LONG_TEXT else value
        case dict():
            return {key: _shorten_value(inner) for key, inner in value.items()}
        case list():
            return [_shorten_value(inner) for inner in value]
        case _:
            return value
