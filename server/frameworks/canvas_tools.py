"""Our tools for the model of a framework's agent, and what that model must know about the conversation.

`ask_user` is not run: an adapter makes it the framework's own interrupt or deferred call, and asks outside the run
(`ask_all`).
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.wire import is_yes
from a2a_canvas.tools.ask_user import ask_user
from a2a_canvas.tools.tool import to_json

HOW_TO_WRITE = (
    "Write documents, programs and other files with artifact_update, which the user watches growing, and change a "
    "passage with artifact_edit; do not repeat their text in your reply."
)

NO_QUESTIONS = (
    "The agent would have to ask you, which it cannot do in an edit of a passage. Ask for the change in a message."
)
"""Why an edit fails in which the framework leaves a call to the user."""


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


async def instructions_for(turn: Turn) -> str:
    """The instructions for one run: those of the agent folder, how to write, and which artifacts there are."""
    artifact_ids = await turn.artifacts()
    there = f"The artifacts of this conversation: {', '.join(artifact_ids)}." if artifact_ids else ""
    return "\n\n".join(text for text in (turn.instructions.strip(), HOW_TO_WRITE, there) if text)


async def ask_all(turn: Turn, calls: Iterable[PendingCall]) -> Sequence[UserAnswer]:
    """Ask the user for all calls at once. Called outside the framework's run, which must not see how `ask` leaves."""

    async def ask(call: PendingCall) -> UserAnswer:
        if call.approval:
            return UserAnswer(await turn.ask_approval(call.call_id, call.name, call.input))
        return UserAnswer(await turn.ask(question_of(call.name, call.input)))

    return await gather(*map(ask, calls))


def question_of(name: str, given: Mapping[str, Any]) -> str:
    """What to ask for a call: the question of `ask_user`, or the call itself."""
    question = given.get("question") if name == ask_user.name else None
    if isinstance(question, str) and question.strip():
        return question.strip()
    return f"The agent waits for the result of {name}({', '.join(f'{key}={to_json(given[key])}' for key in given)})."
