"""`script:FILE.yaml`: a scripted model, for people who test their own clients and for our own tests.

Rule 1: what comes next follows from the conversation in the request alone (`current_turn.py`).
Rule 2: if a round broke off after a completed call, its rest is played without the round's thinking and text:
        they led to the completed call.
Rule 3: a request after the last round gets an empty answer, which ends the turn.
Rule 4: only the attempts that an `error` counts are kept in memory (the last 1,000 failing rounds), because a
        failed try leaves no trace in a conversation. A restarted server starts counting from zero.
"""

from __future__ import annotations

import asyncio
import itertools
import pathlib
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final, Literal

from a2a_canvas.server.agent import model as m
from a2a_canvas.server.agent.model import SCRIPT_PREFIX
from a2a_canvas.server.agent.models.playback import (
    AssistantBlock,
    NewId,
    Sleep,
    answer,
    delta_length,
    fresh_tool_id,
    pace,
)
from a2a_canvas.server.agent.models.provider_errors import failure, kind_of
from a2a_canvas.server.agent.models.script.change_turn import change_blocks, change_selection
from a2a_canvas.server.agent.models.script.current_turn import ScriptTurn, current_turn, edit_turn
from a2a_canvas.server.agent.models.script.placeholders import (
    BadValue,
    Groups,
    fill,
    fill_number,
    fill_tree,
    parse_seconds,
    parse_whole_number,
)
from a2a_canvas.server.agent.models.script.rules import ScriptFailure, ScriptRound, ScriptRule, read_rules

_MAX_KNOWN_ATTEMPTS = 1000
_OVERLOADED = 529
_NO_RULE: Final = (
    'No rule of the script matches a message of {size} characters; a last rule with `text: ""` matches every message.'
)
"""Without words of the message, because it is logged."""


@dataclass(frozen=True, slots=True)
class ScriptAnswer:
    """The next answer of a script: the round with its pace and failure, and its blocks; none after the last round."""

    turn: ScriptTurn
    now: ScriptRound
    blocks: tuple[AssistantBlock, ...] = ()


class ScriptedModel:
    """An `LLM` that follows the script at `path`.

    Args:
        new_id: makes the id of each tool call.
        sleep: waits for a time in seconds, between deltas.

    Raises:
        ScriptError: the script cannot be used; its message is `FILE:LINE: reason`.
    """

    thinking: Literal["delta", "accumulated"] = "delta"

    def __init__(
        self, path: str | pathlib.Path, *, new_id: NewId = fresh_tool_id, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.name = f"{SCRIPT_PREFIX}{pathlib.Path(path).name}"
        self._rules = read_rules(str(path))
        self._new_id = new_id
        self._sleep = sleep
        self._attempts: dict[tuple[int, int, str, int], int] = {}

    def stream(self, request: m.ModelRequest) -> AsyncGenerator[m.ModelEvent, None]:
        """The next answer in the conversation.

        Raises:
            ModelError: no rule matches, a value cannot be used once its groups are filled in, or the
                script breaks the stream.
        """
        try:
            planned = self.plan(request)
            groups, now = planned.turn.groups or {}, planned.now
            sizes = itertools.repeat(parse_whole_number(fill_number(now.chunk, groups), 1))
            events = answer(request, planned.blocks, sizes)
            if now.error is not None:
                events = self._fail_first_tries(events, now.error, planned.turn, planned.turn.next_round()[0])
            return pace(events, parse_seconds(fill_number(now.delay, groups)), self._sleep)
        except BadValue as error:
            raise failure("other", f"The script cannot be played: {error}.") from error

    def plan(self, request: m.ModelRequest) -> ScriptAnswer:
        """Plan the next answer in the conversation.

        Raises:
            ModelError: no rule matches, or the change that it makes does not apply to the selection of an edit.
            BadValue: a value cannot be used once its groups are filled in.
        """
        turn = current_turn(self._rules, request.messages)
        if request.edit:
            turn = edit_turn(self._rules, request.edit, request.messages[-1].message_id)
        if turn is None or turn.rule is None:
            size = len(turn.text) if turn else 0
            raise failure("refused", _NO_RULE.format(size=size))
        if turn.rule.change:
            return ScriptAnswer(turn, ScriptRound(), self._change_blocks(turn.rule, turn, request))
        number, left = turn.next_round()
        if number == len(turn.rounds):
            return ScriptAnswer(turn, ScriptRound())
        now = turn.rounds[number]
        return ScriptAnswer(turn, now, tuple(_blocks(now, left, turn.groups or {}, self._new_id)))

    def _change_blocks(self, rule: ScriptRule, turn: ScriptTurn, request: m.ModelRequest) -> tuple[AssistantBlock, ...]:
        if request.edit:
            return (m.ModelText(change_selection(rule, turn, request.edit)),)
        blocks = change_blocks(rule, turn, request.messages)
        return tuple(replace(each, id=self._new_id()) if isinstance(each, m.ToolUse) else each for each in blocks)

    def _fail_first_tries(
        self, events: Iterator[m.ModelEvent], failure: ScriptFailure, turn: ScriptTurn, number: int
    ) -> Iterator[m.ModelEvent]:
        status, after, times = (
            parse_whole_number(fill_number(value, turn.groups or {}))
            for value in (failure.status, failure.after, failure.times)
        )
        key = (turn.number, turn.begin, turn.message_id or turn.text, number)
        attempts = self._attempts.pop(key, 0) + 1
        self._attempts[key] = attempts
        if len(self._attempts) > _MAX_KNOWN_ATTEMPTS:
            del self._attempts[next(iter(self._attempts))]
        return break_stream(events, status, after) if attempts <= times else events


def break_stream(events: Iterable[m.ModelEvent], status: int, after: int) -> Iterator[m.ModelEvent]:
    """The events up to the delta number `after`, at most to the end of the last block; then `ModelError`.

    With `after` 0 there are no events, not even the start of an answer.
    """
    deltas = 0
    for event in events:
        if deltas >= after or isinstance(event, m.StopReasonDelta):
            passing = status in (408, 409, 429) or 500 <= status <= 599
            raise failure(kind_of(status), f"The model answered {status}{_phrase(status)}.", retryable=passing)
        deltas += delta_length(event) > 0
        yield event


def _blocks(now: ScriptRound, left: Sequence[int], groups: Groups, new_id: NewId) -> Iterator[AssistantBlock]:
    calls = now.calls
    if len(left) == len(calls):
        if thinking := fill(now.thinking, groups):
            yield m.Thinking(thinking, signature="script")
        if text := fill(now.text, groups):
            yield m.ModelText(text)
    for number in left:
        call = calls[number]
        tree = {fill(key, groups): fill_tree(value, groups) for key, value in call.input.items()}
        yield m.ToolUse(new_id(), fill(call.name, groups), tree)


def _phrase(status: int) -> str:
    if status == _OVERLOADED:
        return " (overloaded)"
    try:
        return f" ({HTTPStatus(status).phrase.lower()})"
    except ValueError:
        return ""
