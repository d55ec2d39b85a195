"""`rehearsal`: plays `rehearsal.yaml` at the pace of a model. It is not a language model, and says so.

Rule 1: it works on the newest message, even one that accompanies tool results.
Rule 2: a failed call ends the turn with the tool's error.
Rule 3: `NOTICE` ends the first reply after a start, to any user: its last text, or an earlier question or refusal. In
        every conversation it would be longer than the replies; the card always has it.
Rule 4: only a `change` answers an edit. Any other rule changes nothing, and its text is the answer.
Rule 5: the reply to a request for a text names the words of the request that the text ignores.
Rule 6: a message that names a tool of the agent calls it (`tool_calls.py`), and the reply is its result. If no rule
        matches, the reply explains how.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from a2a_canvas.server.agent.model import (
    ModelContent,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelText,
    NothingToChange,
    ToolResult,
    ToolSpec,
    ToolUse,
)
from a2a_canvas.server.agent.models.playback import AssistantBlock, NewId, Sleep, answer, fresh_tool_id, pace
from a2a_canvas.server.agent.models.rehearsal import NOTICE
from a2a_canvas.server.agent.models.rehearsal.ignored_words import MAX_SHOWN, ignored_words
from a2a_canvas.server.agent.models.rehearsal.tool_calls import examples, no_such_tool, parse_call
from a2a_canvas.server.agent.models.script.change_turn import say, say_failure
from a2a_canvas.server.agent.models.script.current_turn import current_turn
from a2a_canvas.server.agent.models.script.placeholders import fill
from a2a_canvas.server.agent.models.script.scripted_model import ScriptAnswer, ScriptedModel
from a2a_canvas.tools.functions.results import TO_THE_MODEL
from a2a_canvas.tools.registry import TOOLS

SCRIPT = Path(__file__).with_name("rehearsal.yaml")
HOW_TO_CALL = "Only a language model follows instructions and chooses tools. I call one if you say so: {}."
_NAMES = frozenset(tool.name for tool in TOOLS)
UNKNOWN = "I am a script, and I have no rule for that. Nothing is changed."
UNKNOWN_EDIT = "I am a script, and I have no rule for that, so nothing is changed."
MAX_READ_CHARACTERS = 2_000
"""The part of a message that is searched."""


class Rehearsal(ScriptedModel):
    """An `LLM` without a language model.

    Args:
        chunk: characters of a delta.
        delay: seconds between deltas.
        sleep: waits for a time in seconds.
        new_id: makes the id of each tool call.
    """

    def __init__(
        self, *, chunk: int = 6, delay: float = 0.02, sleep: Sleep = asyncio.sleep, new_id: NewId = fresh_tool_id
    ) -> None:
        super().__init__(SCRIPT, new_id=new_id, sleep=sleep)
        self.name = "rehearsal"
        self._chunk = chunk
        self._delay = delay
        self._noticed = False

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Say what comes next in the conversation.

        Raises:
            NothingToChange: it cannot make the edit; the text says why.
        """
        blocks = self._blocks(replace(request, messages=tuple(_by_message(request.messages))))
        return pace(answer(request, blocks, itertools.repeat(self._chunk)), self._delay, self._sleep)

    def _blocks(self, request: ModelRequest) -> tuple[AssistantBlock, ...]:
        planned = self.plan(request)
        rule = planned.turn.rule
        failures = [each for each in request.messages[-1].content if isinstance(each, ToolResult) and each.is_error]
        if failures and not (rule and rule.change):
            return say_failure(failures[0].content.removesuffix(TO_THE_MODEL))
        own = [tool for tool in request.tools if tool.name not in _NAMES]
        if own and not request.edit and (called := self._call_or_result(request, own)):
            return called
        if request.edit and rule and not rule.change:
            sentence = "" if rule.rounds[0].write else fill(rule.rounds[0].text, planned.turn.groups or {})
            raise NothingToChange(sentence or UNKNOWN_EDIT)
        if request.edit:
            return planned.blocks
        how = HOW_TO_CALL.format(examples(own)) if own else ""
        if how and rule and rule.match.text and not rule.match.text.pattern:
            return self._add_notice(say(f"{UNKNOWN} {how}"))
        return self._add_notice(_name_ignored_words(planned), how)

    def _call_or_result(self, request: ModelRequest, own: Sequence[ToolSpec]) -> tuple[AssistantBlock, ...]:
        """The call that the message requests, or its result (rule 6)."""
        turn = current_turn(self._rules, request.messages)
        asked = parse_call(turn.text, own) if turn else None
        if not turn or not asked:
            wrong = no_such_tool(turn.text, own) if turn else ""
            return self._add_notice(say(wrong)) if wrong else ()
        if asked.input is None:
            return self._add_notice(say(f"Say it like this: {asked.instead}"))
        if not turn.calls_made:
            return (ToolUse(self._new_id(), asked.tool.name, asked.input),)
        results = [each.content for each in request.messages[-1].content if isinstance(each, ToolResult)]
        return self._add_notice(say("\n".join(results)))

    def _add_notice(self, blocks: tuple[AssistantBlock, ...], how: str = "") -> tuple[AssistantBlock, ...]:
        if self._noticed:
            return blocks
        noted = tuple(_with_notice(block, blocks, f"{NOTICE} {how}".rstrip()) for block in blocks)
        self._noticed = noted != blocks
        return noted


def _name_ignored_words(planned: ScriptAnswer) -> tuple[AssistantBlock, ...]:
    """The blocks; the end of a ready-made text names the words of the request that it ignores (rule 5)."""
    match planned.blocks:
        case (ModelText(text=text),) if words := ignored_words(planned.turn)[:MAX_SHOWN]:
            shown = ", ".join(f"“{word}”" for word in words)
            return say(f"{text} This text is ready-made: {shown} made no difference to it.")
        case blocks:
            return blocks


def _by_message(messages: Iterable[ModelMessage]) -> Iterator[ModelMessage]:
    """The messages, truncated; tool results and the user's accompanying text become separate messages."""
    for message in messages:
        results = tuple(item for item in message.content if isinstance(item, ToolResult))
        others = tuple(_truncate(item) for item in message.content if not isinstance(item, ToolResult))
        if results and any(isinstance(item, ModelText) and not item.note for item in others):
            yield replace(message, content=results)
            results = ()
        yield replace(message, content=(*results, *others))


def _truncate(item: ModelContent) -> ModelContent:
    return replace(item, text=item.text[:MAX_READ_CHARACTERS]) if isinstance(item, ModelText) else item


def _with_notice(block: AssistantBlock, blocks: tuple[AssistantBlock, ...], notice: str) -> AssistantBlock:
    match block:
        case ModelText(text=text) if len(blocks) == 1:
            return ModelText(f"{text}\n\n{notice}")
        case ToolUse(name="ask_user" | "decline_task"):
            return replace(block, input={key: f"{text}\n\n{notice}" for key, text in block.input.items()})
        case _:
            return block
