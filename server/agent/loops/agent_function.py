"""An agent that is a function: its two forms, its options, and what is wrong with one, in a sentence.

Rule: `async def agent(turn)`, or an async generator: a `str` that it yields is text of the reply, a `File` an artifact.
      A `str` that a function returns is shown as `say` shows it. The function that answers edits has the same forms;
      its text, yielded, streamed or returned, is the new passage.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, TypeVar, overload

from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.tools.functions.function_tool import Abandon
from a2a_canvas.tools.functions.results import File

AgentRun = Callable[[Turn], Awaitable[None]]
F = TypeVar("F", bound=Callable[..., Any])

ADAPTERS: Final[Mapping[str, str]] = {
    "agents": "openai_agent",
    "google.adk": "adk_agent",
    "langgraph": "langgraph_agent",
    "pydantic_ai": "pydantic_ai_agent",
}
"""The functions of `a2a_canvas.frameworks` by the packages whose agents they adapt."""


class AgentDefinitionError(Exception):
    """A value cannot be an agent; `str()` is one sentence that says what to write."""


@dataclass(slots=True)
class AgentFunction:
    """An agent.

    Attributes:
        name: of the function, for the log.
        run: answers one message.
        restartable: whether a run that a crash cut off runs again.
        lasts: a run is one step, elsewhere: a server that shuts down waits for it, even if it could run again.
        editor: answers an edit of a selection: the text that it shows is the new passage. None: the model does.
        abandon: ends, from the record, what a run has started elsewhere: the function does not run again.
        probe: a sentence, with its address, about why an agent that runs elsewhere cannot be used now; empty if it can.
        package: the distribution of the framework that `run` uses, for `serve --check`; empty without one.
    """

    name: str
    run: AgentRun
    restartable: bool = True
    lasts: bool = False
    editor: AgentRun | None = None
    abandon: Abandon | None = None
    package: str = ""
    probe: Callable[[], Awaitable[str]] | None = None

    def edit(self, function: F) -> F:
        """Mark the function that answers edits of a selection, in place of any other. It finds the edit in `turn.edit`.

        Raises:
            AgentDefinitionError: it is not async, or does not take the turn alone.
        """
        self.editor = _editor_of(function)
        return function


@overload
def agent(function: Callable[[Turn], Any], /) -> AgentFunction: ...
@overload
def agent(*, restartable: bool = True, edits: bool = False) -> Callable[[Callable[[Turn], Any]], AgentFunction]: ...
def agent(
    function: Callable[[Turn], Any] | None = None, /, *, restartable: bool = True, edits: bool = False
) -> AgentFunction | Callable[[Callable[[Turn], Any]], AgentFunction]:
    """Mark the function of an agent, which needs it only for its options and for a function that answers edits.

    Args:
        restartable: a run that a crash cut off runs again; otherwise its task fails.
        edits: edits of a selection call the function, too, with `turn.edit`.

    Raises:
        AgentDefinitionError: the function is not async, or does not take the turn alone.

    >>> import a2a_canvas
    >>> @a2a_canvas.agent(restartable=False)
    ... async def reef(turn):
    ...     await turn.say("Hello.")
    >>> @reef.edit
    ... async def shout(turn):
    ...     yield turn.edit.passage.upper()
    """

    def mark(function: Callable[[Turn], Any]) -> AgentFunction:
        editor = _editor_of(function) if edits else None
        return AgentFunction(_name_of(function), _reply_of(function), restartable, editor=editor)

    return mark if function is None else mark(function)


def agent_function(value: Any) -> AgentFunction:
    """The agent that a function is; an `AgentFunction` is returned as it is.

    Raises:
        AgentDefinitionError: it is none.
    """
    return value if isinstance(value, AgentFunction) else agent(value)


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _run_of(function: Any) -> Callable[[Turn], Awaitable[object]]:
    name = _name_of(function)
    if not callable(function):
        raise AgentDefinitionError(
            f"{name} is not a function. {adapter_advice(function, 'Write: async def agent(turn: Turn) -> None')}"
        )
    if inspect.isasyncgenfunction(function):
        run = _run_of_generator(function)
    elif inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        run = function
    elif str(getattr(function, "__module__", "")).startswith("a2a_canvas."):
        raise AgentDefinitionError(f"{name} makes an agent of yours. Call it: agent = {name}(…)")
    else:
        raise AgentDefinitionError(f"{name} is not async. Write: async def {name}(turn: Turn) -> None")
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise AgentDefinitionError(f"{name} must take one argument, the turn: {error}.") from None
    return run


def adapter_advice(value: object, otherwise: str) -> str:
    """What to do with an object of a framework, or with any other."""
    adapter = adapter_of(value)
    return f"Pass it to a2a_canvas.frameworks.{adapter}, and use what that returns." if adapter else otherwise


def adapter_of(value: object) -> str:
    """The function of `a2a_canvas.frameworks` for an object of a framework; empty if it is of none."""
    modules = [f"{each.__module__}." for each in type(value).__mro__]
    return next(
        (adapter for package, adapter in ADAPTERS.items() for each in modules if each.startswith(f"{package}.")), ""
    )


def _reply_of(function: Any) -> AgentRun:
    """The run of a function that may also return the reply."""
    run = _run_of(function)

    async def reply(turn: Turn) -> None:
        if text := _returned_text(await run(turn), _name_of(function)):
            await turn.say(text)

    return reply


def _editor_of(function: Any) -> AgentRun:
    """The run of a function that may also return the passage."""
    run = _run_of(function)

    async def edit(turn: Turn) -> None:
        if passage := _returned_text(await run(turn), _name_of(function)):
            await turn.stream(passage)

    return edit


def _returned_text(value: object, name: str) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            raise TypeError(
                f"{name} returned {type(value).__name__}, and an agent's function returns text (str) or nothing. "
                "Write JSON and files to an artifact: await turn.artifact(…).replace(…)"
            )


def _run_of_generator(function: Callable[[Turn], AsyncGenerator[Any, None]]) -> AgentRun:
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
