"""The tools for the model of a framework's agent besides its own, and what that model must know of the conversation.

Rule 1: `ask_user` is not run: an adapter makes it the framework's own interrupt or deferred call. So does an approval.
        Both are asked outside the run (`ask_all`).
Rule 2: a tool of the agent's folder asks for its own approval, with its own question: the framework only waits for the
        answer. What became of a call that was not approved is the call's result.
"""

from __future__ import annotations

import logging
from asyncio import gather
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from a2a_canvas.server.agent.loops.agent_function import AgentDefinitionError, adapter_advice
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.loops.streamed_calls import ARTIFACT_TOOLS
from a2a_canvas.server.agent.loops.turn_tools import TurnTool
from a2a_canvas.server.wire import is_yes
from a2a_canvas.tools.ask_user import ask_user
from a2a_canvas.tools.functions.results import ToolError
from a2a_canvas.tools.tool import to_json

logger = logging.getLogger(__name__)

HOW_TO_WRITE = (
    "Write documents, programs and other files with artifact_update, which the user watches growing, and change a "
    "passage with artifact_edit; do not repeat their text in your reply."
)

NO_QUESTIONS = (
    "The agent would have to ask you, which it cannot do in an edit of a passage. Ask for the change in a message."
)
"""Why an edit fails in which the framework leaves a call to the user."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool to offer to the framework's model: one that writes artifacts, one of the agent's folder, or `ask_user`.

    Attributes:
        call: takes the id of the framework's call and its input, and returns what the model reads, also if the call
            failed. It is a step.
        needs_approval: the framework waits for the user's approval before it calls.
        asks: the user gives the result (rule 1), so it is not called.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    call: Callable[[str, Mapping[str, Any]], Awaitable[str]]
    needs_approval: bool = False
    asks: bool = False


RESERVED = frozenset({*ARTIFACT_TOOLS, ask_user.name})
"""The names of tools that every agent has."""


def check_agent(value: object, kind: type, adapter: str) -> None:
    """Check that an adapter has an agent of its framework.

    Raises:
        AgentDefinitionError: it has not.
    """
    if not isinstance(value, kind):
        given = f"{adapter} takes an agent of its framework, not {type(value).__name__}."
        raise AgentDefinitionError(f"{given} {adapter_advice(value, 'Pass one.')}")


def check_names(names: Iterable[str]) -> None:
    """Check the names of an agent's own tools when it is loaded.

    Raises:
        AgentDefinitionError: the tool of a name is one that every agent has.
    """
    if taken := RESERVED & {*names}:
        raise AgentDefinitionError(f"a2a-canvas adds the tool {min(taken)} to the agent, which has one. Rename yours.")


def check_offered(names: Iterable[str], turn: Turn) -> None:
    """Check the names of an agent's own tools for a turn.

    Raises:
        ToolError: two tools have the same name.
    """
    counts = Counter([*names, *(each.name for each in offered_tools(turn))])
    if twice := [name for name, count in counts.items() if count > 1]:
        sentence = f"The agent has two tools named {min(twice)}. Its operator must rename one of them."
        logger.error("%s", sentence)
        raise ToolError(sentence)


def offered_tools(turn: Turn) -> Sequence[OfferedTool]:
    """The tools besides the framework's own. An edit of a passage writes no artifact, and asks nothing."""
    folder = [
        OfferedTool(each.name, each.description, each.input_schema, partial(_call, each), each.needs_approval)
        for each in turn.tools
    ]
    if turn.edit:
        return [each for each in folder if not each.needs_approval]
    artifact = [
        OfferedTool(each.name, each.description, each.input_schema, partial(_write, turn, each.name))
        for each in ARTIFACT_TOOLS.values()
    ]
    question = OfferedTool(ask_user.name, ask_user.description, ask_user.input_schema, _leave_to_user, asks=True)
    return [*artifact, *folder, question]


async def _write(turn: Turn, name: str, call_id: str, given: Mapping[str, Any]) -> str:
    return await turn.model.run_artifact_call(call_id, name, given)


async def _leave_to_user(call_id: str, given: Mapping[str, Any]) -> str:
    raise NotImplementedError("The user gives the result of ask_user.")


async def _call(tool: TurnTool, call_id: str, given: Mapping[str, Any]) -> str:
    try:
        return await tool.call(given, call_id)
    except ToolError as error:
        return str(error)


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that the framework leaves to the user: to approve it (`approval`), or to give its result."""

    call_id: str
    name: str
    input: Mapping[str, Any]
    approval: bool = False


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """The user's answer to a pending call."""

    text: str

    @property
    def approves(self) -> bool:
        return is_yes(self.text)

    @property
    def refusal(self) -> str:
        """What the model reads of a call that is not approved."""
        return f"The user did not approve this call, and answered: {self.text}"


APPROVED = UserAnswer("yes")


async def instructions_for(turn: Turn, how_to_write: str = HOW_TO_WRITE) -> str:
    """The instructions for one run: those of the agent folder, how to write, and which artifacts there are.

    Args:
        how_to_write: empty if the model may be without our tools.
    """
    artifact_ids = await turn.artifacts()
    there = f"The artifacts of this conversation: {', '.join(artifact_ids)}." if artifact_ids else ""
    return "\n\n".join(text for text in (turn.instructions.strip(), how_to_write, there) if text)


async def ask_all(turn: Turn, calls: Sequence[PendingCall]) -> Sequence[UserAnswer]:
    """Ask the user for all calls at once. Called outside the framework's run, which must not see how `ask` leaves.

    Clients then see what became of the calls that the framework does not run.
    """
    answers = await gather(*(_ask(turn, call) for call in calls), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer  # once all of them are asked
    given = [answer for answer in answers if isinstance(answer, UserAnswer)]
    for call, answer in zip(calls, given, strict=True):
        await _show_result(turn, call, answer)
    return given


async def _ask(turn: Turn, call: PendingCall) -> UserAnswer:
    if not call.approval:
        return UserAnswer(await turn.ask(question_of(call.name, call.input)))
    for tool in turn.tools:
        if tool.name == call.name:
            await tool.approve(call.input, call.call_id)
            return APPROVED  # rule 2
    return UserAnswer(await turn.ask_approval(call.call_id, call.name, call.input))


async def _show_result(turn: Turn, call: PendingCall, answer: UserAnswer) -> None:
    async def give() -> str:
        return answer.text

    if not turn.model.find_call(call.call_id):
        return  # an interrupt of the framework that is no call of its model
    if not call.approval:
        await turn.model.run_call(call.call_id, call.name, call.input, give, key="answer")
    elif not answer.approves:
        await turn.model.fail_call(call.call_id, call.name, call.input, answer.refusal)


def question_of(name: str, given: Mapping[str, Any]) -> str:
    """What to ask for a call: the question of `ask_user`, or the call itself."""
    question = given.get("question") if name == ask_user.name else None
    if isinstance(question, str) and question.strip():
        return question.strip()
    return f"The agent waits for the result of {name}({', '.join(f'{key}={to_json(given[key])}' for key in given)})."


@cache
def log_unknown(framework: str, event: str) -> None:
    """Log, once, an event that an adapter does not know and therefore skips."""
    logger.warning("Events of %s that are unknown here are skipped: %s", framework, event)
