"""The base of tools that act while their input streams in: decoding, validation, and failures.

Rule 1: however the input is cut, the outcome is that of the whole call.
Rule 2: an error in the input (not JSON; a field that is missing, invalid or given twice) precedes any other error.
Rule 3: after an error nothing more is done, but the input is read to its end (rule 2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from typing import Generic, Self, TypeVar

from pydantic import ValidationError

from a2a_canvas.store.errors import LimitReached, StoreError
from a2a_canvas.tools.change_report import refusal_of
from a2a_canvas.tools.json_stream import Begin, JsonError, JsonEvent, JsonStream, Path, Value
from a2a_canvas.tools.tool import Done, Failed, InputT, Outcome, StrictInput, Workspace, explain, invalid_json_message

T = TypeVar("T")


class CallRefused(Exception):
    """The call is rejected; `str()` is the reason for the model."""


class InputHead(StrictInput):
    """Fields of the input that are needed before it is complete. Each one is checked when it arrives."""

    def with_field(self, field: str, value: object) -> Self:
        """Raises `ValidationError`."""
        return self.model_copy(update={field: getattr(type(self).model_validate({field: value}), field)})


class StreamingCall(ABC, Generic[InputT]):
    """One call of a streaming tool: a `ToolStream`.

    Args:
        name: the tool's.
        input: the shape of the whole input.
        depth: the depth to which duplicate fields are detected.
    """

    def __init__(self, name: str, input: type[InputT], depth: int, workspace: Workspace) -> None:
        self._name = name
        self._input = input
        self._workspace = workspace
        self._json = JsonStream()
        self._depth = depth
        self._begun: set[Path] = set()
        self._error: Failed | None = None
        self._invalid = False

    @property
    @abstractmethod
    def label(self) -> str: ...

    async def feed(self, fragment: str) -> None:
        await self._or_fail(self._feed(fragment))

    async def finish(self) -> Outcome:
        return await self._or_fail(self._finish())

    async def abort(self) -> None:
        await self._fail("The call was cut off.")

    @abstractmethod
    async def _act(self, events: Sequence[JsonEvent]) -> None:
        """Act on `events`, those of one fragment.

        Raises:
            CallRefused, StoreError: the call fails.
        """

    @abstractmethod
    def _take(self, event: JsonEvent) -> None:
        """Take an event. Called by `_check`; raises `ValueError`."""

    @abstractmethod
    async def _complete(self, whole: InputT) -> str:
        """The input is complete and valid, and nothing has failed: finish the call. Returns what the model reads.

        Raises:
            CallRefused, StoreError: the call fails.
        """

    @abstractmethod
    async def _undo(self) -> None:
        """Take back what the call has done. Called at most once by the base."""

    def _check(self, event: JsonEvent) -> None:
        """Take an event; its faults are explained to the model, with the field.

        Raises:
            CallRefused: the field is invalid, or given twice: the whole input would have the last of two values, but
                the first has been acted on.
        """
        try:
            if len(event.path) <= self._depth and _begins(event):
                if event.path in self._begun:
                    raise ValueError("is given twice; give every field once")
                self._begun.add(event.path)
            self._take(event)
        except ValidationError as error:  # it names the fields of a part from the part on, others with their own name
            at = event.path if event.path and isinstance(event.path[-1], int) else event.path[:-1]
            self._invalid = True
            raise CallRefused(explain(self._name, error, at)) from error
        except ValueError as error:
            self._invalid = True
            raise CallRefused(explain(self._name, error, event.path)) from error

    async def _feed(self, fragment: str) -> None:
        events = self._json.feed(fragment)
        if self._error is None:
            await self._act(events)

    async def _finish(self) -> Outcome:
        self._json.finish()
        if self._error and self._invalid:
            return self._error
        whole = self._input.model_validate(self._json.value)
        return self._error or Done(await self._complete(whole))

    async def _or_fail(self, step: Awaitable[T]) -> T | Failed:
        try:
            return await step
        except JsonError as error:
            return await self._fail(invalid_json_message(self._name, str(error)))
        except ValidationError as error:
            return await self._fail(explain(self._name, error))
        except CallRefused as refused:
            return await self._fail(str(refused))
        except LimitReached:
            raise
        except StoreError as error:
            return await self._fail(await refusal_of(error, self._workspace))

    async def _fail(self, reason: str) -> Failed:
        first = self._error is None
        self._error = Failed(reason)
        if first:
            await self._undo()
        return self._error


def _begins(event: JsonEvent) -> bool:
    return isinstance(event, Begin) or (isinstance(event, Value) and not isinstance(event.value, str | list | dict))
