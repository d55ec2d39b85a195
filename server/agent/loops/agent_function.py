"""An agent that is a function: its two forms, and what is wrong with one, in a sentence.

Rule: `async def agent(turn)`, or an async generator: a `str` that it yields is text of the reply, a `File` an artifact.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.tools.functions.results import File

AgentRun = Callable[[Turn], Awaitable[None]]


class AgentDefinitionError(Exception):
    """A value cannot be an agent; `str()` is one sentence that says what to write."""


@dataclass(frozen=True, slots=True)
class AgentFunction:
    """An agent.

    Attributes:
        name: of the function, for the log.
        run: answers one message.
        restartable: whether a run that a crash cut off runs again.
    """

    name: str
    run: AgentRun
    restartable: bool = True


def agent_function(value: Any, *, restartable: bool = True) -> AgentFunction:
    """The agent that a function is; an `AgentFunction` is returned as it is.

    Raises:
        AgentDefinitionError: it is none.
    """
    if isinstance(value, AgentFunction):
        return value
    name = getattr(value, "__name__", type(value).__name__)
    if not callable(value):
        raise AgentDefinitionError(f"{name} is not a function. Write: async def agent(turn: Turn) -> None")
    if inspect.isasyncgenfunction(value):
        run: AgentRun = _of_generator(value)
    elif inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(type(value).__call__):
        run = value
    else:
        raise AgentDefinitionError(f"{name} is not async. Write: async def {name}(turn: Turn) -> None")
    try:
        inspect.signature(value).bind(None)
    except TypeError as error:
        raise AgentDefinitionError(f"{name} must take one argument, the turn: {error}.") from None
    return AgentFunction(name, run, restartable)


def _of_generator(function: Callable[[Turn], AsyncGenerator[Any, None]]) -> AgentRun:
    async def run(turn: Turn) -> None:
        async with aclosing(function(turn)) as pieces:
            async for piece in pieces:
                match piece:
                    case str():
                        await turn.stream(piece)
                    case File():
                        await turn.artifact(piece.name).replace(piece, name=piece.name)
                    case _:
                        raise TypeError(f"An agent yields str or File, not {type(piece).__name__}.")

    return run
