"""The interface to language models: `LLM`, its requests, and the closed union of its events.

Every adapter (`models/claude.py`, `models/script`, `models/rehearsal`) turns a `ModelRequest` into a stream of
`ModelEvent`. An adapter either ends its stream with exactly one `MessageStop` or raises `ModelError`.
A stream that ends in any other way is broken, and so is one with a delta or stop for a block that never started.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final, Literal, Protocol

from a2a_canvas.store.edit_events import Strategy


@dataclass(frozen=True, slots=True)
class ModelText:
    """Text of the user, the model or this server.

    Attributes:
        note: not a message of the user: a note of this server between two model calls (`turn/sibling_changes.py`), or
            the user's answer to a tool. The offline models need the distinction.
    """

    text: str
    note: bool = False


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file sent by the user: `content` (bytes) or `url`, one of them set."""

    media_type: str
    name: str = ""
    content: bytes | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class Thinking:
    """A finished thinking block. `signature` goes back to the model unaltered; `redacted` is opaque data."""

    text: str
    signature: str = ""
    redacted: str = ""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A finished call. `input` is empty if the model did not write a JSON object."""

    id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one `ToolUse`, matched by id."""

    tool_use_id: str
    content: str
    is_error: bool = False


SCRIPT_PREFIX: Final = "script:"
"""The beginning of the name of every script, and of no other model's."""
REHEARSAL_NAME: Final = "rehearsal"

NOT_ASKED: Final = "Not asked: the user wrote something meanwhile. Ask again if you still need to know."
UNANSWERED: Final = "No result: the task ended before this call was answered."
"""Stands in for a missing result; the offline models recognise it."""

ModelContent = ModelText | Attachment | Thinking | ToolUse | ToolResult


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One message. Roles alternate; all results of one assistant message are in one user message."""

    role: Literal["user", "assistant"]
    content: tuple[ModelContent, ...]
    message_id: str = ""
    """The A2A message id of the newest user message in it; empty for the assistant's."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as offered to the model. `eager`: its input streams as it is generated."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    eager: bool = False


_NUMBERED: Final = re.compile(r"-([0-9]+)")


@dataclass(frozen=True, slots=True)
class EditPrompt:
    """A passage of an artifact's text, and the change to make. Built by `edit/edit_prompt.py`.

    Attributes:
        name: the artifact's name; `language` is that of `language_of`, empty if unknown.
        before, selected, after: the selection (empty for an insertion point) and the text shown on either side.
        selected_by_lines: whether the sender named the lines of the selection.
        line_end: "\\r\\n" if every line of the artifact ends in it.
        outline: that of the artifact; may be empty.
        place: where the selection is, as "lines 3-5 of 120".
    """

    name: str
    language: str
    before: str
    selected: str
    after: str
    instruction: str
    strategy: Strategy
    selected_by_lines: bool = False
    line_end: Literal["\n", "\r\n"] = "\n"
    outline: str = ""
    place: str = ""

    @property
    def tag_number(self) -> int:
        """The number of the tags around the texts: the first that follows no hyphen in any of them."""
        taken = self.taken_numbers
        return next(number for number in count(1) if str(number) not in taken)

    @property
    def taken_numbers(self) -> frozenset[str]:
        """The numbers that follow a hyphen in one of the texts."""
        return frozenset(number for text in self._texts for number in _NUMBERED.findall(text))

    @property
    def deletion_mark(self) -> str:
        """The reply that deletes the selection. It occurs in none of the texts."""
        taken = any("<delete" in text.casefold() for text in self._texts)
        return f"<delete-{self.tag_number}/>" if taken else "<delete/>"

    @property
    def _texts(self) -> tuple[str, ...]:
        around = (self.outline, self.before, self.selected, self.after)
        return (*around, self.instruction, self.name, self.language)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call, complete: adapters store no conversation.

    `edit` is set if the call requests the new text of a selection; `messages` then ask for the same in words.
    """

    system: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    edit: EditPrompt | None = None


def is_ready_made(name: str) -> bool:
    """Whether the model of this name plays what is written down, so that it answers one passage at a time."""
    return name == REHEARSAL_NAME or name.startswith(SCRIPT_PREFIX)


def map_content(request: ModelRequest, change: Callable[[ModelContent], ModelContent | None]) -> ModelRequest:
    """The request with `change` applied to each content of its messages; None removes it."""

    def change_message(message: ModelMessage) -> ModelMessage:
        return replace(message, content=tuple(new for each in message.content if (new := change(each)) is not None))

    return replace(request, messages=tuple(map(change_message, request.messages)))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as far as the provider reports them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    @property
    def total_input(self) -> int:
        """The tokens of the request, cached or not; 0 if the provider does not report them."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


StopReason = Literal["end_turn", "tool_use", "max_tokens", "refusal", "stop_sequence", "error"]


@dataclass(frozen=True, slots=True)
class MessageStart:
    """The model began to answer."""


@dataclass(frozen=True, slots=True)
class BlockStart:
    """A block begins. `llm_index` is the provider's number, which may be any."""

    llm_index: int
    kind: Literal["text", "thinking", "tool_use"]
    tool_use_id: str = ""
    name: str = ""
    final: bool = False
    """The adapter marks this text as the final message of the turn."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    llm_index: int
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    llm_index: int
    text: str


@dataclass(frozen=True, slots=True)
class SignatureDelta:
    """Seals a thinking block; `redacted` carries a whole redacted block's data."""

    llm_index: int
    signature: str = ""
    redacted: str = ""


@dataclass(frozen=True, slots=True)
class InputDelta:
    """A fragment of a tool call's input, cut anywhere."""

    llm_index: int
    partial_json: str


@dataclass(frozen=True, slots=True)
class BlockStop:
    llm_index: int


@dataclass(frozen=True, slots=True)
class StopReasonDelta:
    """The reason why the model stops; usage may follow with `MessageStop`."""

    stop_reason: StopReason


@dataclass(frozen=True, slots=True)
class MessageStop:
    """The end of the answer: the last event of every complete stream."""

    stop_reason: StopReason
    usage: Usage = field(default_factory=Usage)


ModelEvent = (
    MessageStart
    | BlockStart
    | TextDelta
    | ThinkingDelta
    | SignatureDelta
    | InputDelta
    | BlockStop
    | StopReasonDelta
    | MessageStop
)


ErrorKind = Literal[
    "unreachable",
    "timeout",
    "credentials",
    "payment",
    "unknown_model",
    "rate_limited",
    "overloaded",
    "failed",
    "refused",
    "too_long",
    "broken",
    "other",
]
"""The kind of error that ends a model call, for the metrics. `broken`: in the middle of the answer."""


class ModelError(Exception):
    """A model call failed.

    Its text is for the log: the detail, or the reason if there is none.

    Args:
        reason: a sentence for the user: it is sent to clients.
        detail: a sentence for the operator; it is not sent to clients.
        retryable: whether a retry may succeed.
        retry_after: seconds that the provider asks to wait first; None if it does not.
    """

    def __init__(
        self,
        reason: str,
        *,
        retryable: bool,
        retry_after: float | None = None,
        kind: ErrorKind = "other",
        detail: str = "",
    ) -> None:
        super().__init__(detail or reason)
        self.kind = kind
        self.reason = reason
        self.retryable = retryable
        self.retry_after = retry_after


class NothingToChange(Exception):
    """An edit leaves its passage unchanged. Not a failure: the exception's text is the answer."""


class TextReplaced(Exception):
    """What was shown of an edit's text is no part of it: the next call, at once, has the text."""


class EditRefusal(Exception):
    """An edit is declined; the exception's text is the reason for the user."""


class TooLong(ModelError):
    """The request is longer than the model or its provider accepts: a shorter one may succeed.

    Args:
        tokens: of the request, as the provider counts them; None if it does not report them.
    """

    def __init__(self, reason: str, tokens: int | None = None, detail: str = "") -> None:
        super().__init__(reason, retryable=False, kind="too_long", detail=detail)
        self.tokens = tokens


class LLM(Protocol):
    """A language model: `create_app(settings, model)` takes one of your own (docs/models.md).

    >>> import asyncio
    >>> from a2a_canvas.llm import BlockStart, BlockStop, MessageStop, ModelMessage, ModelRequest, ModelText, TextDelta
    >>> class Parrot:
    ...     name = "parrot"
    ...     thinking = "delta"
    ...
    ...     async def stream(self, request):
    ...         yield BlockStart(0, "text")
    ...         yield TextDelta(0, request.messages[-1].blocks[-1].text)
    ...         yield BlockStop(0)
    ...         yield MessageStop()
    """

    @property
    def name(self) -> str:
        """The name that operators use, e.g. `claude-sonnet-5-5`, `rehearsal`."""
        ...

    @property
    def thinking(self) -> Literal["delta", "accumulated"]:
        """Whether a `ThinkingDelta` carries the new text only, or all of the block so far (docs/turn.md)."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Call the model. Closing the iterator ends the call at once.

        Raises:
            ModelError: the call failed, or its stream broke.
            NothingToChange: the answer to an edit is that the passage stays as it is.
            EditRefusal: the answer to an edit is that it is declined.
            TextReplaced: the answer to an edit is that of the next call.
        """
        ...


NO_MODEL: Final = "no model"
"""The name of the model of a server that needs none: its agent has a loop of its own."""
EDITS_OFF: Final = (
    "Edits of a selection are off, because the agent has no function for them and the server no model. "
    "Ask the agent for the change in a message, or put the whole new text."
)

EDITS_ARE_OFF: Final = (
    "Edits of a selection are off: mark a function for them with @agent.edit, or choose a model with --model."
)
"""For the operator."""


class NoModel:
    """Fails every call."""

    name = NO_MODEL
    thinking: Literal["delta"] = "delta"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        raise ModelError(EDITS_OFF, retryable=False)
        yield


def window_of(llm: LLM) -> int | None:
    """The limit of tokens in a request, from the model's optional `window`; None if unknown."""
    window: int | None = getattr(llm, "window", None)
    return window


async def close_llm(llm: LLM) -> None:
    """Close the connections of a model, by its optional `aclose`."""
    if aclose := getattr(llm, "aclose", None):
        await aclose()
