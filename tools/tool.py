"""A tool: a name, a description, a schema, and a stream that consumes its input as it is written.

Rule 1: a tool never raises for a mistake of the model; it answers `Failed`, which says how to correct the call.
Rule 2: `LimitReached` is the only exception that propagates: it ends the turn.
Rule 3: a call that is cut off undoes what it did (`abort`).
Rule 4: a durable change is made in the last step of `finish`, with no await after it. So a crash leaves the change, its
        result and its transcript entry; or none of them, and the call is made again.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, ValidationError

from a2a_canvas.store.annotations.review import Review
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.models import Author, JsonValue, Ref
from a2a_canvas.tools.faults import reason_of


@dataclass(frozen=True, slots=True)
class Done:
    """The call succeeded. `content` is for the model."""

    content: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The call changed nothing. `content` tells the model why, and how to correct it."""

    content: str


@dataclass(frozen=True, slots=True)
class Ask:
    """The turn pauses until the user has answered `question`: of any kind, or for `authentication`.

    Attributes:
        approval: the call that the user is asked to approve (docs/canvas.md, "Approvals").
    """

    question: str
    authentication: bool = False
    approval: Mapping[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class Decline:
    """The turn ends: the agent will not do this, for `reason`."""

    reason: str


Outcome = Done | Failed | Ask | Decline


READ_LIMIT = 100_000
"""The most characters of an artifact shown at once to a model with an unknown window."""


def _short_id() -> str:
    return uuid4().hex[:8]


@dataclass(frozen=True, slots=True)
class Workspace:
    """The artifacts of one context, for the tools of one task's turn.

    Attributes:
        new_id: makes an id for an edit, unique in the task.
        read_limit: the most characters of an artifact shown to the model at once.
        review: the agent's annotations; None where it can make none.
    """

    store: EventedArtifactStore
    context_id: ContextKey
    task_id: str
    new_id: Callable[[], str] = _short_id
    read_limit: int = READ_LIMIT
    review: Review | None = None

    def ref(self, artifact_id: str, author: Author = "agent") -> Ref:
        return Ref(self.context_id, artifact_id, self.task_id, author)


class ToolStream(Protocol):
    """One call, from the first character of its input to its outcome."""

    @property
    def label(self) -> str:
        """The progress to show to subscribers ("Writing report.md…"); empty until it is known."""
        ...

    async def feed(self, fragment: str) -> None:
        """Take the next fragment of the input's JSON, cut anywhere.

        Raises:
            LimitReached: the turn must end.
        """
        ...

    async def finish(self) -> Outcome:
        """The input is complete: execute the call (rule 4).

        Raises:
            LimitReached: the turn must end.
        """
        ...

    async def abort(self) -> None:
        """The call was cut off: undo what it did."""
        ...


class StrictInput(BaseModel):
    """An input of a tool, or an object in it: nothing is converted, unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)


@cache
def _schema_of(model: type[BaseModel]) -> Mapping[str, Any]:
    return model.model_json_schema()  # cached, because it takes milliseconds and every turn needs it


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool offered to the model.

    Attributes:
        input: the shape of its whole input.
        open: begins a call.
        eager: the model should send the input as it is generated, unbuffered.
        acts_last: it ends or pauses the turn, so it runs after all other calls of a message.
    """

    name: str
    description: str
    input: type[BaseModel]
    open: Callable[[Workspace], ToolStream]
    eager: bool = False
    acts_last: bool = False

    @property
    def input_schema(self) -> Mapping[str, Any]:
        return _schema_of(self.input)


InputT = TypeVar("InputT", bound=BaseModel)


def whole_input_tool(
    name: str,
    description: str,
    input: type[InputT],
    run: Callable[[InputT, Workspace], Awaitable[Outcome]],
    *,
    acts_last: bool = False,
) -> Tool:
    """A tool that needs its whole input before it can act: a pydantic model and an async function."""
    return Tool(name, description, input, partial(_WholeInput, name, input, run), acts_last=acts_last)


@dataclass(slots=True)
class _WholeInput(Generic[InputT]):
    name: str
    input: type[InputT]
    run: Callable[[InputT, Workspace], Awaitable[Outcome]]
    workspace: Workspace
    fragments: list[str] = field(default_factory=list)
    label: ClassVar[str] = ""

    async def feed(self, fragment: str) -> None:
        self.fragments.append(fragment)

    async def finish(self) -> Outcome:
        try:
            # A model may send no input at all for a tool without parameters.
            parsed = self.input.model_validate(json.loads("".join(self.fragments) or "{}"))
        except ValidationError as error:
            return Failed(explain(self.name, error))
        except (ValueError, RecursionError):
            return Failed(invalid_json_message(self.name))
        return await self.run(parsed, self.workspace)

    async def abort(self) -> None:
        self.fragments.clear()


def explain(tool: str, error: ValueError, at: tuple[int | str, ...] = ()) -> str:
    """The errors of an input by field, for the model; `at` is the path to `error`."""
    found = [(at, str(error))]
    if isinstance(error, ValidationError):
        found = [((*at, *fault["loc"]), reason_of(fault)) for fault in error.errors()[:10]]
    return invalid_input_message(tool, [f"{'.'.join(map(str, loc)) or 'input'}: {reason}" for loc, reason in found])


def invalid_input_message(tool: str, faults: Iterable[str]) -> str:
    """The answer to an input with these faults."""
    told = "; ".join(faults)
    return f"The input of {tool} is not valid, nothing was changed. {told}. Call {tool} again with these corrected."


def invalid_json_message(tool: str, reason: str = "") -> str:
    """The answer to an input that is not JSON, or incomplete."""
    why = f" ({reason})" if reason else ""
    return f"The input of {tool} is not complete, valid JSON{why}, nothing was changed. Call it again, with all of it."


def to_json(value: object) -> str:
    """JSON for a model: without ASCII escapes."""
    return json.dumps(value, ensure_ascii=False)
