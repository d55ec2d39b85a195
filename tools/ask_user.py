"""Tools that pause or end the turn. They run after the other calls of a message.

`auth_required` is a tool of scripts only: this server has no authentication that a model could ask for.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from a2a_canvas.tools.tool import Ask, Decline, Outcome, Workspace, whole_input_tool

NotBlank = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class AskInput(BaseModel):
    question: NotBlank = Field(description="The question, as the user will read it.")


class DeclineInput(BaseModel):
    reason: NotBlank = Field(description="Why, in a sentence the user will read.")


async def _ask(call: AskInput, workspace: Workspace) -> Outcome:
    return Ask(call.question)


async def _require_authentication(call: DeclineInput, workspace: Workspace) -> Outcome:
    return Ask(call.reason, authentication=True)


async def _decline(call: DeclineInput, workspace: Workspace) -> Outcome:
    return Decline(call.reason)


ask_user = whole_input_tool(
    "ask_user",
    "Ask the user something you cannot find out or decide yourself. The task waits for the answer, then goes on.",
    AskInput,
    _ask,
    acts_last=True,
)
auth_required = whole_input_tool(
    "auth_required",
    "Ask the user to authenticate, for a reason. The task waits for the next message, then goes on.",
    DeclineInput,
    _require_authentication,
    acts_last=True,
)
PAUSING = (ask_user.name, auth_required.name)
"""The tools whose result is the user's next message."""

decline_task = whole_input_tool(
    "decline_task",
    "Refuse the task as a whole, with the reason. Only for what you cannot or must not do; it ends the task.",
    DeclineInput,
    _decline,
    acts_last=True,
)
