"""The events of an AG-UI run as operations on our turn. Pure.

Rule 1: events are read as JSON, so older agents (`THINKING_*`, chunks, `on_interrupt`) and newer ones with fields that
        we do not know are understood as far as possible. An unknown event is `SkippedEvent`, a malformed one an error.
Rule 2: the text of a subagent, and of a message that is not the assistant's, is not part of the reply.
Rule 3: a call ends before its result, and every call has a result when the run ends.
Rule 4: MESSAGES_SNAPSHOT is the conversation. What it adds to the events of the run, texts and results, is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from a2a_canvas.tools.json_patching import PatchError, apply_patch

Json = dict[str, Any]

NO_RESULT = "The agent's run ended without a result of this call."
_SILENT = frozenset(
    (
        *("RUN_STARTED", "STEP_FINISHED", "RAW", "SUBAGENT_FINISHED", "SUBAGENT_ERROR", "REASONING_ENCRYPTED_VALUE"),
        *("REASONING_START", "REASONING_END", "REASONING_MESSAGE_START", "REASONING_MESSAGE_END"),
        *("THINKING_START", "THINKING_END", "THINKING_TEXT_MESSAGE_START", "THINKING_TEXT_MESSAGE_END"),
    )
)


class MappingError(ValueError):
    """An event is not one of AG-UI; `str()` says why."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A question that ended a run.

    Attributes:
        interrupt_id: empty for an agent that is resumed by `forwardedProps.command`.
        schema: JSON Schema of its answer; empty if any text answers it.
    """

    interrupt_id: str
    question: str
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplyText:
    """A piece of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """The message of the reply is complete."""


@dataclass(frozen=True, slots=True)
class ReasoningText:
    """A piece of reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A tool call began."""

    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallInput:
    """A piece of the JSON of a call's input."""

    call_id: str
    piece: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The input of a call is complete."""

    call_id: str


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call."""

    call_id: str
    content: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class NewState:
    """The agent's state has changed to this value.

    Attributes:
        patch: the JSON Patch that has changed it; None for a snapshot.
    """

    value: Any
    patch: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """An event for AG-UI clients."""

    event: Json


@dataclass(frozen=True, slots=True)
class ProgressLabel:
    """What the agent is doing."""

    label: str


@dataclass(frozen=True, slots=True)
class TokenUse:
    """Tokens that the run used."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The run ended, with these questions if it needs answers."""

    interrupts: tuple[Interrupt, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFailure:
    """The run failed. The reason is for the log: it may contain secrets."""

    reason: str


@dataclass(frozen=True, slots=True)
class SkippedEvent:
    """The event has no effect here; the reason is for the log."""

    reason: str


Operation = (
    ReplyText
    | MessageEnd
    | ReasoningText
    | CallStart
    | CallInput
    | CallEnd
    | CallResult
    | NewState
    | ClientEvent
    | ProgressLabel
    | TokenUse
    | RunEnd
    | RunFailure
    | SkippedEvent
)


class RunMapping:
    """Maps the events of one run.

    Args:
        state: the agent's state when the run began.
        sent: the messages that were sent with the run.

    Attributes:
        messages: the conversation so far, as the agent has it: with its own ids and its tool calls.
    """

    def __init__(self, state: Any = None, sent: Sequence[Json] = ()) -> None:
        self._state = {} if state is None else state  # as it is sent (`run_input`)
        self._known = {each["id"] for each in sent}
        self.messages = [*sent]
        self._texts: dict[str, list[str]] = {}
        self._message: str | None = None
        self._foreign: set[str] = set()
        self._calls: dict[str, bool] = {}
        self._functions: dict[str, Json] = {}
        self._inputs: dict[str, list[str]] = {}
        self._chunk_call = ""
        self._legacy: list[Interrupt] = []

    def take(self, event: Any) -> list[Operation]:
        """The operations of an event.

        Raises:
            MappingError: it is malformed.
        """
        if not isinstance(event, dict) or not isinstance(kind := event.get("type"), str):
            raise MappingError("an event has no type")
        family = kind.partition("_")[0]
        match family:
            case "TEXT":
                return [*self._text_event(kind, event)]
            case "TOOL":
                return [*self._tool_event(kind, event)]
            case "RUN":
                return [*self._run_event(kind, event)]
            case _:
                return [*self._other(kind, event)]

    def _text_event(self, kind: str, event: Json) -> Iterator[Operation]:
        message = _text(event, "messageId", "")
        if kind == "TEXT_MESSAGE_END":
            yield from self._end_message()
            return
        if kind not in ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"):
            yield _unknown(kind)
            return
        if kind == "TEXT_MESSAGE_START" or (message and message != self._message):
            yield from self._end_message()
            self._message = message
            if event.get("role", "assistant") != "assistant":
                self._foreign.add(message)
        if delta := _text(event, "delta", ""):
            yield from self._say(self._message or "", delta, event)

    def _say(self, message: str, delta: str, event: Json) -> Iterator[Operation]:
        if message in self._foreign:
            return
        self._texts.setdefault(message, []).append(delta)
        yield ReasoningText(delta) if event.get("subagentRunId") else ReplyText(delta)

    def _end_message(self) -> Iterator[Operation]:
        message, self._message = self._message, None
        if message is None:
            return
        if text := "".join(self._texts.get(message, ())):
            self._assistant(message)["content"] = text
        yield MessageEnd()

    def _assistant(self, message_id: str) -> Json:
        """The agent's message of an id, or a new one."""
        for message in reversed(self.messages):
            if message.get("id") == message_id and message.get("role") == "assistant":
                return message
        self.messages.append({"id": message_id, "role": "assistant"})
        return self.messages[-1]

    def _tool_event(self, kind: str, event: Json) -> Iterator[Operation]:
        call_id = _text(event, "toolCallId", self._chunk_call if kind == "TOOL_CALL_CHUNK" else None)
        match kind:
            case "TOOL_CALL_START":
                yield from self._begin_call(call_id, event)
            case "TOOL_CALL_CHUNK":
                if call_id not in self._calls:
                    yield from self._begin_call(call_id, event)
                self._chunk_call = call_id
                yield from self._add_input(call_id, _text(event, "delta", ""))
            case "TOOL_CALL_ARGS":
                yield from self._add_input(call_id, _text(event, "delta"))
            case "TOOL_CALL_END":
                yield from self._end_call(call_id)
            case "TOOL_CALL_RESULT":
                yield from self._result(call_id, _content(event.get("content")))
                answer = {"role": "tool", "toolCallId": call_id, "content": _content(event.get("content"))}
                self.messages.append({"id": _text(event, "messageId", f"{call_id} result"), **answer})
            case _:
                yield _unknown(kind)

    def _begin_call(self, call_id: str, event: Json) -> Iterator[Operation]:
        name, parent = _text(event, "toolCallName"), _text(event, "parentMessageId", f"{call_id} message")
        yield from self._end_message()
        if call_id in self._calls:
            yield SkippedEvent(f"the call {call_id!r} began twice")
            return
        self._calls[call_id] = True
        self._functions[call_id] = {"name": name, "arguments": ""}
        call = {"id": call_id, "type": "function", "function": self._functions[call_id]}
        self._assistant(parent).setdefault("toolCalls", []).append(call)
        yield CallStart(call_id, name)

    def _add_input(self, call_id: str, piece: str) -> Iterator[Operation]:
        if not self._calls.get(call_id):
            yield SkippedEvent(f"there is no open call {call_id!r}")
        elif piece:
            self._inputs.setdefault(call_id, []).append(piece)
            yield CallInput(call_id, piece)

    def _end_call(self, call_id: str) -> Iterator[Operation]:
        if self._calls.get(call_id):
            self._calls[call_id] = False
            self._functions[call_id]["arguments"] = "".join(self._inputs.get(call_id, ()))
            yield CallEnd(call_id)

    def _result(self, call_id: str, content: str, *, failed: bool = False) -> Iterator[Operation]:
        if call_id not in self._calls:
            yield SkippedEvent(
                f"a result is of the call {call_id!r}, which is not one of this run"
            )  # as after a resumption
            return
        yield from self._end_call(call_id)
        del self._calls[call_id]
        yield CallResult(call_id, content, failed)

    def _run_event(self, kind: str, event: Json) -> Iterator[Operation]:
        if kind in ("RUN_FINISHED", "RUN_ERROR"):
            yield from self._end_message()
            for call_id in list(self._calls):
                yield from self._result(call_id, NO_RESULT, failed=True)
            yield from _usage(event.get("usage"))
        match kind:
            case "RUN_ERROR":
                yield RunFailure(_text(event, "message", ""))
            case "RUN_FINISHED":
                yield self._outcome(event.get("outcome"))
            case _:
                yield from self._other(kind, event)

    def _outcome(self, outcome: Any) -> Operation:
        match outcome:
            case {"type": "interrupt", "interrupts": [*interrupts]} if interrupts:
                return RunEnd(tuple(map(_interrupt, interrupts)))
            case {"type": "cancelled"}:
                return RunFailure("the agent cancelled the run")
            case _:
                return RunEnd(tuple(self._legacy))

    def _other(self, kind: str, event: Json) -> Iterator[Operation]:
        match kind:
            case "REASONING_MESSAGE_CONTENT" | "REASONING_MESSAGE_CHUNK" | "THINKING_TEXT_MESSAGE_CONTENT":
                if delta := _text(event, "delta", ""):
                    yield ReasoningText(delta)
            case "STATE_SNAPSHOT" | "STATE_DELTA":
                yield self._change_state(kind, event)
            case "STEP_STARTED" | "SUBAGENT_STARTED":
                yield ProgressLabel(f"{_text(event, 'stepName' if kind == 'STEP_STARTED' else 'name', 'Working')}…")
            case "MESSAGES_SNAPSHOT":
                yield from self._snapshot(event.get("messages"))
            case "CUSTOM" if event.get("name") == "on_interrupt":
                self._legacy.append(Interrupt("", _question(event.get("value"))))
            case "CUSTOM" | "ACTIVITY_SNAPSHOT" | "ACTIVITY_DELTA":
                yield ClientEvent(event)
            case _ if kind not in _SILENT:
                yield _unknown(kind)

    def _change_state(self, kind: str, event: Json) -> Operation:
        if kind == "STATE_SNAPSHOT":
            self._state = event.get("snapshot")
            return NewState(self._state)
        try:
            self._state = apply_patch(self._state, event.get("delta"))
        except PatchError as error:
            return SkippedEvent(f"a STATE_DELTA does not fit the state: {error}")
        return NewState(self._state, event["delta"])

    def _snapshot(self, messages: Any) -> Iterator[Operation]:
        if isinstance(messages, list) and all(isinstance(each, dict) for each in messages):
            self.messages = [*messages]
            yield from self._results(messages)
        for message in _after_user(messages):
            text, message_id = message.get("content"), message.get("id")
            if not isinstance(text, str) or not text or message_id in self._known or message_id in self._texts:
                continue
            if all(text != "".join(pieces) for pieces in self._texts.values()):
                yield from self._end_message()
                self._texts[str(message_id)] = [text]
                yield ReplyText(text)
                yield MessageEnd()

    def _results(self, messages: Sequence[Json]) -> Iterator[Operation]:
        """The results of calls that no event had."""
        for message in messages:
            match message:
                case {"role": "tool", "toolCallId": str(call_id), "content": content} if call_id in self._calls:
                    yield from self._result(call_id, _content(content))


def _after_user(messages: Any) -> list[Json]:
    """The assistant's messages after the last user message."""
    found: list[Json] = []
    for message in messages if isinstance(messages, list) else ():
        match message:
            case {"role": "user"}:
                found.clear()
            case {"role": "assistant", **rest} if not rest.get("subagentRunId"):
                found.append(message)
    return found


def _text(event: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = event.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise MappingError(f"{str(event.get('type'))[:50]} needs the text {name}")
    return value


def _unknown(kind: str) -> SkippedEvent:
    return SkippedEvent(f"events of the type {kind[:50]} are not known")


def _content(content: Any) -> str:
    match content:
        case str():
            return content
        case [*parts]:
            return "\n".join(
                part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
        case _:
            return json.dumps(content, ensure_ascii=False)


def _usage(entries: Any) -> Iterator[Operation]:
    found = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    tokens_in, tokens_out, cached = (
        sum(count for each in found if isinstance(count := each.get(name), int) and count > 0)
        for name in ("inputTokens", "outputTokens", "cachedInputTokens")
    )
    if tokens_in or tokens_out:
        yield TokenUse(max(tokens_in - cached, 0), tokens_out, min(cached, tokens_in))


def _interrupt(value: Any) -> Interrupt:
    if not isinstance(value, dict):
        raise MappingError("an interrupt must be an object")
    question = _text(value, "message", "") or _text(value, "reason", "") or "The agent needs an answer."
    schema = value.get("responseSchema")
    return Interrupt(_text(value, "id"), question, schema if isinstance(schema, dict) else {})


def _question(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
