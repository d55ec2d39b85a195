"""`rehearsal`: plays `rehearsal.yaml` at the pace of a model. It is not a language model, and says so.

Rule 1: the newest message is what it works on, also when it came along with tool results.
Rule 2: a failed call ends the turn with what the tool said.
Rule 3: `NOTICE` ends the first reply after a start, to any user: its last text, or a question or refusal that comes
        before it. In each conversation it would be longer than the replies; the card has it at all times.
Rule 4: an edit is answered by a `change` alone. For any other rule nothing is changed, and the answer is
        what the rule says.
Rule 5: the reply to a request for a text names the words of the request that the text does not follow.
Rule 6: a tool of the agent is called if the message says which (`tool_calls.py`), and the reply is its result. Where no
        rule matches, the reply says how.
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
from a2a_canvas.server.agent.models.playback import AssistantBlock, NewId, Sleep, answer, fresh_tool_id, paced
from a2a_canvas.server.agent.models.rehearsal import NOTICE
from a2a_canvas.server.agent.models.rehearsal.tool_calls import asked_for, examples, no_such_tool
from a2a_canvas.server.agent.models.rehearsal.unheeded import MAX_SHOWN, unheeded
from a2a_canvas.server.agent.models.script.change_turn import say, say_failed
from a2a_canvas.server.agent.models.script.current_turn import current_turn
from a2a_canvas.server.agent.models.script.scripted_model import ScriptAnswer, ScriptedModel
from a2a_canvas.server.agent.models.script.values import fill
from a2a_canvas.tools.functions.results import TO_THE_MODEL
from a2a_canvas.tools.registry import TOOLS

SCRIPT = Path(__file__).with_name("rehearsal.yaml")
HOW_TO_CALL = "Only a language model follows instructions and chooses tools. I call one if you say so: {}."
_NAMES = frozenset(tool.name for tool in TOOLS)
UNKNOWN = "I am a script, and I have no rule for that. Nothing is changed."
UNKNOWN_EDIT = "I am a script, and I have no rule for that, so nothing is changed."
MAX_READ_CHARACTERS = 2_000
"""The rest of a message is not searched."""


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
            NothingToChange: an edit that it cannot make. It says why.
        """
        blocks = self._blocks(replace(request, messages=tuple(_by_message(request.messages))))
        return paced(answer(request, blocks, itertools.repeat(self._chunk)), self._delay, self._sleep)

    def _blocks(self, request: ModelRequest) -> tuple[AssistantBlock, ...]:
        planned = self.plan(request)
        rule = planned.turn.rule
        failures = [each for each in request.messages[-1].content if isinstance(each, ToolResult) and each.is_error]
        if failures and not (rule and rule.change):
            return say_failed(failures[0].content.removesuffix(TO_THE_MODEL))
        own = [tool for tool in request.tools if tool.name not in _NAMES]
        if own and not request.edit and (called := self._called(request, own)):
            return called
        if request.edit and rule and not rule.change:
            sentence = "" if rule.rounds[0].write else fill(rule.rounds[0].text, planned.turn.groups or {})
            raise NothingToChange(sentence or UNKNOWN_EDIT)
        if request.edit:
            return planned.blocks
        how = HOW_TO_CALL.format(examples(own)) if own else ""
        if how and rule and rule.match.text and not rule.match.text.pattern:
            return self._noted(say(f"{UNKNOWN} {how}"))
        return self._noted(_with_unheeded(planned), how)

    def _called(self, request: ModelRequest, own: Sequence[ToolSpec]) -> tuple[AssistantBlock, ...]:
        """The call that the message asks for, or its result (rule 6)."""
        turn = current_turn(self._rules, request.messages)
        asked = asked_for(turn.text, own) if turn else None
        if not turn or not asked:
            wrong = no_such_tool(turn.text, own) if turn else ""
            return self._noted(say(wrong)) if wrong else ()
        if asked.input is None:
            return self._noted(say(f"Say it like this: {asked.instead}"))
        if not turn.calls_made:
            return (ToolUse(self._new_id(), asked.tool.name, asked.input),)
        results = [each.content for each in request.messages[-1].content if isinstance(each, ToolResult)]
        return self._noted(say("\n".join(results)))

    def _noted(self, blocks: tuple[AssistantBlock, ...], how: str = "") -> tuple[AssistantBlock, ...]:
        if self._noticed:
            return blocks
        noted = tuple(_with_notice(block, blocks, f"{NOTICE} {how}".rstrip()) for block in blocks)
        self._noticed = noted != blocks
        return noted


def _with_unheeded(planned: ScriptAnswer) -> tuple[AssistantBlock, ...]:
    """What it says at the end of a ready-made text, with the words of the request that the text does not follow."""
    match planned.blocks:
        case (ModelText(text=text),) if words := unheeded(planned.turn)[:MAX_SHOWN]:
            shown = ", ".join(f"“{word}”" for word in words)
            return say(f"{text} This text is ready-made: {shown} made no difference to it.")
        case blocks:
            return blocks


def _by_message(messages: Iterable[ModelMessage]) -> Iterator[ModelMessage]:
    """The messages, cut to what is read; tool results are a message apart from what the user says beside them."""
    for message in messages:
        results = tuple(item for item in message.content if isinstance(item, ToolResult))
        others = tuple(_cut(item) for item in message.content if not isinstance(item, ToolResult))
        if results and any(isinstance(item, ModelText) and not item.note for item in others):
            yield replace(message, content=results)
            results = ()
        yield replace(message, content=(*results, *others))


def _cut(item: ModelContent) -> ModelContent:
    return replace(item, text=item.text[:MAX_READ_CHARACTERS]) if isinstance(item, ModelText) else item


def _with_notice(block: AssistantBlock, blocks: tuple[AssistantBlock, ...], notice: str) -> AssistantBlock:
    match block:
        case ModelText(text=text) if len(blocks) == 1:
            return ModelText(f"{text}\n\n{notice}")
        case ToolUse(name="ask_user" | "decline_task"):
            return replace(block, input={key: f"{text}\n\n{notice}" for key, text in block.input.items()})
        case _:
            return block
