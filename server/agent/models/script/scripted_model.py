"""`script:FILE.yaml`: a scripted model, for people who test their own clients and for our own tests.

Rule 1: what comes next follows from the conversation in the request alone (`current_turn.py`).
Rule 2: what is left of a round that broke off after a completed call is said without the round's thinking
        and text: they led to the call that stands.
Rule 3: asked again when all rounds are done, the model ends its turn without a word.
Rule 4: only the tries that an `error` counts are kept in memory (the last 1,000 failing rounds), because a
        failed try leaves no trace in a conversation. A restarted server counts anew.
"""

from __future__ import annotations

import asyncio
import itertools
import pathlib
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import Literal

from a2a_canvas.server.agent.model import (
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelText,
    StopReasonDelta,
    Thinking,
    ToolUse,
)
from a2a_canvas.server.agent.models.playback import (
    AssistantBlock,
    NewId,
    Sleep,
    answer,
    delta_length,
    fresh_tool_id,
    paced,
)
from a2a_canvas.server.agent.models.script.current_turn import ScriptTurn, current_turn, edit_turn
from a2a_canvas.server.agent.models.script.rules import ScriptFailure, ScriptRound, ScriptRule, read_rules
from a2a_canvas.server.agent.models.script.values import BadValue, Groups, fill, fill_tree, filled, seconds, whole

_KEPT_TRIES = 1000
_OVERLOADED = 529


def load_script(
    path: str | pathlib.Path, *, new_id: NewId = fresh_tool_id, sleep: Sleep = asyncio.sleep
) -> ScriptedModel:
    """A model that says what the script at `path` tells it to.

    Args:
        path: a YAML file.
        new_id: makes the id of each tool call.
        sleep: waits for a time in seconds, between deltas.

    Raises:
        ScriptError: the script cannot be used; its message is `FILE:LINE: reason`.
    """
    return ScriptedModel(read_rules(str(path)), pathlib.Path(path).name, new_id=new_id, sleep=sleep)


class ScriptedModel:
    """An `LLM` that plays rules. Use `load_script` to make one from a file."""

    thinking: Literal["delta", "accumulated"] = "delta"

    def __init__(
        self,
        rules: Sequence[ScriptRule],
        file_name: str,
        *,
        new_id: NewId = fresh_tool_id,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._rules = tuple(rules)
        self._file_name = file_name
        self._new_id = new_id
        self._sleep = sleep
        self._tries: dict[tuple[int, int, str, int], int] = {}

    @property
    def name(self) -> str:
        """`script:` and the name of the file."""
        return f"script:{self._file_name}"

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Say what comes next in the conversation.

        Raises:
            ModelError: no rule matches, a value cannot be used once its groups are filled in, or the
                script says that the stream breaks.
        """
        try:
            events, delay = self._next(request)
        except BadValue as error:
            raise ModelError(f"The script cannot be played: {error}.", retryable=False) from error
        return paced(events, delay, self._sleep)

    def _next(self, request: ModelRequest) -> tuple[Iterator[ModelEvent], float]:
        turn = self._turn(request)
        if turn is None or turn.groups is None:
            said = turn.text if turn else ""
            raise ModelError(f"No rule of the script matches this message: {_short(said)}", retryable=False)
        number, left = turn.next_round()
        if number == len(turn.rounds):
            return answer(request, (), itertools.repeat(1)), 0.0
        now = turn.rounds[number]
        blocks = tuple(_blocks(now, left, turn.groups, self._new_id))
        sizes = itertools.repeat(whole(filled(now.chunk, turn.groups), 1))
        events = answer(request, blocks, sizes)
        if now.error is not None:
            events = self._failing(events, now.error, turn, number)
        return events, seconds(filled(now.delay, turn.groups))

    def _turn(self, request: ModelRequest) -> ScriptTurn | None:
        if request.edit is None:
            return current_turn(self._rules, request.messages)
        return edit_turn(self._rules, request.edit, request.messages[-1].message_id)

    def _failing(
        self, events: Iterator[ModelEvent], failure: ScriptFailure, turn: ScriptTurn, number: int
    ) -> Iterator[ModelEvent]:
        status, after, times = (
            whole(filled(value, turn.groups or {})) for value in (failure.status, failure.after, failure.times)
        )
        key = (turn.number, turn.begin, turn.message_id or turn.text, number)
        tries = self._tries.pop(key, 0) + 1
        self._tries[key] = tries
        if len(self._tries) > _KEPT_TRIES:
            del self._tries[next(iter(self._tries))]
        return broken(events, status, after) if tries <= times else events


def broken(events: Iterable[ModelEvent], status: int, after: int) -> Iterator[ModelEvent]:
    """The events up to the delta number `after`, at most to the end of the last block; then `ModelError`.

    With `after` 0 nothing is said at all, not even that an answer begins.
    """
    deltas = 0
    for event in events:
        if deltas >= after or isinstance(event, StopReasonDelta):
            raise ModelError(f"The model answered {status}{_phrase(status)}.", retryable=_is_passing(status))
        deltas += delta_length(event) > 0
        yield event


def _blocks(now: ScriptRound, left: Sequence[int], groups: Groups, new_id: NewId) -> Iterator[AssistantBlock]:
    if len(left) == len(now.tools):
        if thinking := fill(now.thinking, groups):
            yield Thinking(thinking, signature="script")
        if text := fill(now.text, groups):
            yield ModelText(text)
    for number in left:
        call = now.tools[number]
        tree = {fill(key, groups): fill_tree(value, groups) for key, value in call.input.items()}
        yield ToolUse(new_id(), fill(call.name, groups), tree)


def _is_passing(status: int) -> bool:
    return status in (408, 409, 429) or 500 <= status <= 599


def _phrase(status: int) -> str:
    if status == _OVERLOADED:
        return " (overloaded)"
    try:
        return f" ({HTTPStatus(status).phrase.lower()})"
    except ValueError:
        return ""


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}…"
