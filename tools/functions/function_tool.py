"""A tool that is a function: it gets its whole input, and runs when the model's message is complete.

Rule 1: a call is in the transcript before it runs. One that waits for the user, or that a crash interrupted, is run
        again from its start, with what it has recorded (`canvas.py`).
Rule 2: what the model reads of a failure is the text of a `ToolError`; of any other exception the log has the text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from a2a_canvas.tools.functions.canvas import CallRecord, Canvas
from a2a_canvas.tools.functions.results import Result
from a2a_canvas.tools.tool import Tool

Approval = Literal["never", "ask"]

TIMEOUT = 600.0
"""Seconds that a call may take, unless its tool says."""


Run = Callable[[Mapping[str, Any], Canvas], Awaitable[Result]]
Check = Callable[[Mapping[str, Any]], str]
Abandon = Callable[[CallRecord], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A tool that is offered to the model.

    Attributes:
        input_schema: the JSON schema of its input, an object.
        run: carries a call out. It gets the input as it was written, and checks it.
        check: what is wrong with an input that `run` would refuse, as the model reads it; empty for nothing. It comes
            before the user is asked to approve a call; None if only `run` can tell.
        timeout: seconds that a call may take.
        approval: whether the user is asked before each call.
        idempotent: whether a call that a crash has interrupted may run again.
        parallel: whether calls of one message run at once with others that may.
        abandon: ends what a call has begun elsewhere, by what it recorded: the call is not run again.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    run: Run
    timeout: float = TIMEOUT
    approval: Approval = "never"
    idempotent: bool = True
    parallel: bool = False
    eager: bool = False
    abandon: Abandon | None = None
    check: Check | None = None


AnyTool = Tool | FunctionTool
FindTool = Callable[[str], Awaitable[AnyTool | str]]
"""Waits for a tool that was there before a restart; why it is not there, or an empty text if nobody has it."""


class ToolSource(Protocol):
    """Where tools come from: a file, an MCP server, another agent."""

    @property
    def name(self) -> str:
        """What the log calls it: `tools.py`, `MCP server files`."""
        ...

    def tools(self) -> Sequence[AnyTool]:
        """Those it has now. Asked at the start of each turn."""
        ...

    async def wait_for(self, name: str) -> str:
        """Wait, not for long, for a tool that the source had before a restart.

        Returns:
            Why it is not there; empty if it is, or if the source does not have it.
        """
        ...

    async def start(self) -> None:
        """Begin. What cannot be reached now is logged, and tried again later."""
        ...

    async def stop(self) -> None:
        """End."""
        ...
