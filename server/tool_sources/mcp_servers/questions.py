"""The questions of one call of an MCP server to the user, and the answers.

Rule: a call that runs again asks the same questions in the same order, and so gets the recorded answers. Questions of a
      try whose state the server has lost come first (`repeat`); a later question with the same text
      reuses their answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

import mcp_types as types

from a2a_canvas.server.tool_sources.mcp_servers import elicitation
from a2a_canvas.tools.functions.canvas import Canvas
from a2a_canvas.tools.functions.results import ToolError

MAX_ROUNDS = 10
"""The most questions of one call."""

Asked = Mapping[str, Any]
Action = Literal["accept", "decline", "cancel"]


class Questions:
    """The questions of one call.

    Attributes:
        asked: the questions asked so far, in their order.
    """

    def __init__(self, server: str, canvas: Canvas) -> None:
        self.canvas = canvas
        self.asked: list[Asked] = []
        self._server = server
        self._given: list[tuple[str, types.ElicitResult]] = []
        self._again: list[tuple[str, types.ElicitResult]] = []

    async def repeat(self, past: Iterable[Asked]) -> None:
        """Get the answers to the questions of lost tries."""
        for asked in past:
            await self.ask(asked)
        self.answer_again()

    def answer_again(self) -> None:
        """From now on, answer each question so far once more, without asking the user."""
        self._again = list(self._given)

    async def answers(self, asked: Asked) -> Mapping[str, Any]:
        """The answers for the next request of a call, after a server has asked in its result.

        Raises:
            ToolError: the user declined a required step.
        """
        for login in asked.get("elicitations", ()):
            if (await self.ask(login)).action != "accept":
                raise ToolError(f"The user declined to open {login['url']}.")
        if "elicitations" in asked:
            return {}
        replies: dict[str, Any] = {}
        for key, each in (asked.get("inputRequests") or {}).items():
            if each.get("method") != "elicitation/create":
                raise ToolError(f"The MCP server {self._server} asks for what this agent does not have.")
            replies[key] = await self.ask(each["params"])
        if not replies:
            await asyncio.sleep(0.2)  # no question: the server only asks for another call
        return {"input_responses": replies or None, "request_state": asked.get("requestState")}

    async def ask(self, asked: Asked) -> types.ElicitResult:
        """The answer to a question, for the server."""
        text = elicitation.question(self._server, asked)
        known = next((each for each in self._again if each[0] == text), None)
        if known:
            self._again.remove(known)
            return known[1]
        reply = await self._ask_until_clear(asked, text)
        self.asked.append(asked)
        self._given.append((text, reply))
        return reply

    async def _ask_until_clear(self, asked: Asked, text: str) -> types.ElicitResult:
        if asked.get("mode") == "url":
            return types.ElicitResult(action=await self._login(asked, text))
        reply = elicitation.answer(asked, await self.canvas.ask(text))
        for _ in range(MAX_ROUNDS):
            if isinstance(reply, elicitation.ElicitationAnswer):
                content = None if reply.content is None else dict(reply.content)
                return types.ElicitResult(action=reply.action, content=content)
            reply = elicitation.answer(asked, await self.canvas.ask(f"That does not fit: {reply.reason}.\n\n{text}"))
        return types.ElicitResult(action="cancel")

    async def _login(self, asked: Asked, text: str) -> Action:
        """The user's decision. It is recorded, unlike the answer, which may contain credentials."""
        name = f"login {self.canvas.question_count}"
        known: Any = self.canvas.recall(name)
        if known:
            self.canvas.skip_question()
            return cast(Action, known)
        reply = elicitation.answer(asked, await self.canvas.ask(text, authentication=True))
        action = reply.action if isinstance(reply, elicitation.ElicitationAnswer) else "cancel"
        await self.canvas.remember(name, action)
        return action
