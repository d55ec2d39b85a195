"""The position of a conversation in a script: the current rule, and which of its calls were made.

It is derived from the messages alone, so that a restarted server continues.

Rule 1: a turn begins with a user's message, and its rule is the first that matches that message.
Rule 2: a message that accompanies tool results belongs to the current turn, unless that turn is over:
        every round was played, `decline_task` was accepted, or the task ended before a call was answered
        (`UNANSWERED`). An answer to a question (`PAUSING`) does not begin a turn of another rule;
        the first of the rule's `answers` that matches it replaces the remaining rounds.
Rule 3: a round with calls is done when each of them was made, in one assistant message or in several; a round
        without calls is done by the next assistant message. No completed call is made again.
Rule 4: rules with `together` combine their documents if the parts of the message between "and" and commas match
        them; a rule with `once` matches one message of the conversation. The note about what the user is viewing is
        not part of the message.
Rule 5: an edit is a separate turn: its text is only the instruction, and only the text of its rule's first round is
        played.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from a2a_canvas.server.agent.model import (
    NOT_ASKED,
    UNANSWERED,
    EditPrompt,
    ModelMessage,
    ModelText,
    ToolResult,
    ToolUse,
)
from a2a_canvas.server.agent.models.script.placeholders import Groups, fill
from a2a_canvas.server.agent.models.script.rules import ScriptRound, ScriptRule
from a2a_canvas.tools.ask_user import PAUSING

_QUOTED: Final = r'"(?:[^"\\\n]|\\.)*"'
_NOTE: Final = re.compile(
    rf"\[The user is looking at artifact (?P<id>{_QUOTED})[^\n]*?(?:; selected there[^\n]*?(?P<selected>{_QUOTED}))?\]"
)
_JOINT: Final = re.compile(r"[,;:]|(?<!\w)(?:and|und|y|et)(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ScriptTurn:
    """The newest turn of a conversation: the message that began it, its rule, and the calls made since."""

    begin: int
    """The index of the message that began the turn."""
    text: str
    message_id: str
    number: int = -1
    """The number of the rule, from 0; -1 when none matches."""
    rule: ScriptRule | None = None
    rounds: tuple[ScriptRound, ...] = ()
    groups: Groups | None = None
    answers: tuple[ScriptRule, ...] = ()
    """The rules that may match an answer of the user."""
    calls_made: tuple[tuple[str, ...], ...] = ()
    """The names of the calls in each assistant message since."""
    focus: str = ""
    """The id of the artifact that the user is viewing."""
    selected: str = ""
    """The text selected in it."""

    def next_round(self) -> tuple[int, tuple[int, ...]]:
        """The number of the next round, and which of its calls are left."""
        names = [[fill(call.name, self.groups or {}) for call in one.calls] for one in self.rounds]
        return next_round(names, self.calls_made)


def current_turn(rules: Sequence[ScriptRule], messages: Iterable[ModelMessage]) -> ScriptTurn | None:
    """The newest turn of a conversation; None without a user's message."""
    turn: ScriptTurn | None = None
    names: dict[str, str] = {}
    used = set[int]()
    for index, message in enumerate(messages):
        if message.role == "assistant":
            calls = [item for item in message.content if isinstance(item, ToolUse)]
            names = {call.id: call.name for call in calls}
            turn = turn and replace(turn, calls_made=(*turn.calls_made, tuple(call.name for call in calls)))
        elif _begins(message, names, turn):
            text, focus, selected = _read_message(message)
            turn = _match_rule(rules, index, text, message.message_id, used=used)
            turn = replace(turn, focus=focus, selected=selected)
            used.add(turn.number)
        elif turn:
            turn = _apply_answer(turn, index, _answer(message, names), message.message_id)
    return turn


def edit_turn(rules: Sequence[ScriptRule], edit: EditPrompt, message_id: str) -> ScriptTurn:
    """The turn of the edit that the message requests."""
    turn = _match_rule(rules, 0, edit.instruction, message_id, edit.selected)
    return replace(turn, rounds=tuple(one.model_copy(update={"tools": (), "write": ()}) for one in turn.rounds[:1]))


def next_round(rounds: Sequence[Sequence[str]], calls_made: Iterable[Sequence[str]]) -> tuple[int, tuple[int, ...]]:
    """The progress of a turn: the number of the next round, and which of its calls are left.

    Args:
        rounds: the names of the calls in each round of the script.
        calls_made: the names of the calls in each assistant message. One that the round does not have is ignored: the
            script has changed since, or another model made it.
    """
    left = [list(range(len(names))) for names in rounds]
    number = 0
    for names in calls_made:
        if number < len(rounds) and not rounds[number]:
            number += 1
            continue
        for name in names:
            open_calls = left[number] if number < len(rounds) else []
            hit = next((call for call in open_calls if rounds[number][call] == name), None)
            if hit is not None:
                open_calls.remove(hit)
                number += not open_calls
    return number, tuple(left[number]) if number < len(rounds) else ()


def _begins(message: ModelMessage, names: Mapping[str, str], turn: ScriptTurn | None) -> bool:
    results = [item for item in message.content if isinstance(item, ToolResult)]
    if not results:
        return True
    if all(isinstance(item, ToolResult) or (isinstance(item, ModelText) and item.note) for item in message.content):
        return False
    if any(result.content == UNANSWERED for result in results):
        return True
    accepted = {names.get(result.tool_use_id) for result in results if not result.is_error}
    if not accepted.isdisjoint(PAUSING):
        return False
    return turn is None or "decline_task" in accepted or turn.next_round()[0] == len(turn.rounds)


def _read_message(message: ModelMessage) -> tuple[str, str, str]:
    """The user's text, the id of the artifact that they are viewing, and the text selected in it."""
    texts = [item.text for item in message.content if isinstance(item, ModelText) and not item.note]
    note = _NOTE.fullmatch(texts[0]) if texts else None
    focus, selected = (json.loads(part or '""') for part in note.group("id", "selected")) if note else ("", "")
    return "\n".join(texts[1:] if note else texts), focus, selected


def _match_rule(
    rules: Sequence[ScriptRule],
    begin: int,
    text: str,
    message_id: str,
    selected: str | None = None,
    used: Container[int] = (),
) -> ScriptTurn:
    for number, rule in enumerate(rules):
        groups = None if rule.once and number in used else rule.match.groups(text, message_id, selected)
        if groups is not None:
            rounds = _join_rounds(rules, rule, text) if rule.together and selected is None else rule.rounds
            return ScriptTurn(begin, text, message_id, number, rule, rounds, groups, rule.answers)
    return ScriptTurn(begin, text, message_id)


def _join_rounds(rules: Sequence[ScriptRule], rule: ScriptRule, text: str) -> tuple[ScriptRound, ...]:
    """The rounds of a rule, combined with those that match other parts of the message (rule 4)."""
    found: dict[int, tuple[ScriptRule, Groups]] = {}
    for part in _JOINT.split(text):
        hit = next(((each, groups) for each in rules if (groups := each.match.groups(part, "")) is not None), None)
        if hit and hit[0].together:
            found.setdefault(id(hit[0]), hit)
    if id(rule) not in found or len(found) < 2:
        return rule.rounds
    write = (document.fill(groups) for other, groups in found.values() for document in other.rounds[0].write)
    last = " ".join(dict.fromkeys(fill(other.rounds[-1].text, groups) for other, groups in found.values()))
    first, *middle, end = rule.rounds
    return (first.model_copy(update={"write": tuple(write)}), *middle, end.model_copy(update={"text": last}))


def _answer(message: ModelMessage, names: Mapping[str, str]) -> str | None:
    """The user's answer to a question; None if the message is not an answer."""
    results = (item for item in message.content if isinstance(item, ToolResult) and not item.is_error)
    answers = (each.content for each in results if names.get(each.tool_use_id) in PAUSING)
    return next((answer for answer in answers if answer != NOT_ASKED), None)


def _apply_answer(turn: ScriptTurn, begin: int, answer: str | None, message_id: str) -> ScriptTurn:
    """The turn after an answer."""
    for rule in turn.answers if answer is not None else ():
        groups = rule.match.groups(answer or "", message_id)
        if groups is not None:
            found = {**(turn.groups or {}), **groups}
            answers = rule.answers or turn.answers
            number = turn.number
            return ScriptTurn(begin, answer or "", message_id, number, rule, rule.rounds, found, answers)
    return turn
