"""`Turn.tools`: the tools of the agent's folder, for a loop of its own or its framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from a2a_canvas.store.text.wording import choice
from a2a_canvas.tools.functions.function_tool import FunctionTool
from a2a_canvas.tools.functions.results import ToolError

ANY_INPUT: Mapping[str, Any] = {"type": "object"}


class CallHost(Protocol):
    """Runs calls: the `Turn`."""

    async def call_tool(self, name: str, given: Mapping[str, Any], call_id: str | None, *, approved: bool) -> str: ...

    async def approve_call(self, name: str, given: Mapping[str, Any], call_id: str | None) -> bool: ...


@dataclass(frozen=True, slots=True)
class TurnTool:
    """A tool of the agent's folder: of `tools.py`, of an MCP server, or another agent.

    Attributes:
        input_schema: the JSON Schema of its input, an object.
        needs_approval: the user is asked before each call.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    needs_approval: bool = False
    _host: CallHost = field(kw_only=True, repr=False, compare=False)

    async def call(self, input: Mapping[str, Any], call_id: str | None = None, *, approved: bool = False) -> str:
        """Call the tool as a model's call would: a step, which clients see, and which waits for the user's approval.

        The turn pauses if the tool needs approval or asks the user; `call` then does not return, and returns the result
        when the function runs again. A call that a crash has cut off runs again, unless its tool is not idempotent.

        Args:
            input: a JSON object, which is validated.
            call_id: that of the framework's call, unique in the turn: calls that run at the same time need one, because
                their order may change when the function runs again. Without it, the calls of a tool are counted.
            approved: the user has approved this very call, asked by your framework: it is not asked again. To let
                this server ask, and a framework only wait for the answer, use `approve`.

        Returns:
            What a model would read: a text, or JSON; of a long result the beginning, and the artifact with all of it.

        Raises:
            ToolError: the call failed; its text is what a model would read.
            ValueError: `input` is not JSON.
        """
        return await self._host.call_tool(self.name, input, call_id, approved=approved)

    async def approve(self, input: Mapping[str, Any], call_id: str | None = None) -> bool:
        """Ask the user whether `call` may run with the same arguments, which then does not ask again.

        This is for frameworks whose tool calls wait for approval: their question and this server's are one. Without
        `needs_approval` it asks nothing. Calls approved at the same time (`asyncio.gather`) are one message.

        Returns:
            Whether the call may run; if not, `call` raises the `ToolError` that says why.
        """
        return await self._host.approve_call(self.name, input, call_id)


class TurnTools(tuple[TurnTool, ...]):
    """The tools, in the order of their sources."""

    __slots__ = ()

    def find(self, name: str) -> TurnTool:
        """The tool of this name.

        Raises:
            ToolError: there is none.
        """
        for each in self:
            if each.name == name:
                return each
        there_are = f"The tools are {choice([each.name for each in self], 'and')}." if self else "There are no tools."
        raise ToolError(f"There is no tool {name!r}. {there_are}")


def turn_tools(tools: Mapping[str, FunctionTool], called: Iterable[str], host: CallHost) -> TurnTools:
    """The tools of a turn.

    Args:
        called: the names of tools that the run has called before a crash or a question, and that may be missing now:
            their recorded results are returned, and other calls of them fail.
    """
    available = [
        TurnTool(each.name, each.description, each.input_schema, each.approval != "never", _host=host)
        for each in tools.values()
    ]
    missing = [TurnTool(name, "", ANY_INPUT, _host=host) for name in called if name not in tools]
    return TurnTools([*available, *missing])
