"""A tool as a function: it gets its whole input, and runs when the model's message is complete.

Rule 1: a call is in the transcript before it runs. One that waits for the user, or that a crash interrupted, runs again
        from its start, with its record (`canvas.py`).
Rule 2: the model reads the text of a `ToolError`; the text of any other exception goes to the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from a2a_canvas.tools.functions.canvas import Canvas
from a2a_canvas.tools.functions.recorded_call import CallRecord
from a2a_canvas.tools.functions.results import Result
from a2a_canvas.tools.tool import Tool

Approval = Literal["never", "ask"]

TIMEOUT = 600.0
"""Seconds that a call may take, unless its tool sets a limit."""


Run = Callable[[Mapping[str, Any], Canvas], Awaitable[Result]]
Check = Callable[[Mapping[str, Any]], str]
Abandon = Callable[[CallRecord], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A tool that is offered to the model.

    Attributes:
        input_schema: the JSON schema of its input, an object.
        run: runs a call. It gets the input as written, and validates it.
        check: returns the fault of an input that `run` would reject, for the model; empty without a fault. It is called
            before the user is asked to approve a call; None if only `run` can tell.
        timeout: seconds that a call may take.
        approval: whether the user is asked before each call.
        idempotent: whether a call interrupted by a crash may run again.
        parallel: whether calls of one message may run concurrently.
        abandon: ends, from the record, what a call has started elsewhere: the call is not run again.
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
"""Waits for a tool that existed before a restart; returns it, why it is missing, or an empty text if unknown."""


class ToolSource(Protocol):
    """Where tools come from: a file, an MCP server, another agent."""

    @property
    def name(self) -> str:
        """Its name in the log: `tools.py`, `MCP server files`."""
        ...

    def tools(self) -> Sequence[AnyTool]:
        """The tools available now. Called at the start of each turn."""
        ...

    async def wait_for(self, name: str) -> str:
        """Wait briefly for a tool that the source had before a restart.

        Returns:
            Why it is missing; empty if it is available, or if the source does not have it.
        """
        ...

    async def start(self) -> None:
        """Start. What cannot be reached is logged, and retried later."""
        ...

    async def stop(self) -> None:
        """Stop."""
        ...
