"""`ask_user` and `decline_task`: a model pauses or ends the turn. They run after the other calls of a message."""

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


async def _decline(call: DeclineInput, workspace: Workspace) -> Outcome:
    return Decline(call.reason)


ask_user = whole_input_tool(
    "ask_user",
    "Ask the user something you cannot find out or decide yourself. The task waits for the answer, then goes on.",
    AskInput,
    _ask,
    acts_last=True,
)
decline_task = whole_input_tool(
    "decline_task",
    "Refuse the task as a whole, with the reason. Only for what you cannot or must not do; it ends the task.",
    DeclineInput,
    _decline,
    acts_last=True,
)
