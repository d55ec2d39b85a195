"""`@tool`: what a function must be like to be a tool, and what the model is told of it."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from enum import Enum
from typing import Any, Literal, NoReturn

import pytest
from pydantic import BaseModel

from a2a_canvas import File
from a2a_canvas.tools.functions.canvas import Canvas
from a2a_canvas.tools.functions.python_tool import ToolDefinitionError, tool


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(BaseModel):
    city: str
    country: str = "IT"


@tool(timeout=5, approval="ask", idempotent=False, parallel=True)
async def forecast(
    place: Place, canvas: Canvas, unit: Unit = Unit.CELSIUS, json: Literal["a", "b"] | None = None
) -> str:
    """The forecast for a place.

    Longer than a line.

    Args:
        place: where
        unit: of the degrees
    """
    return f"{place.city} {unit.value} {json} {canvas.task_id}"


def test_its_name_description_and_schema_are_those_of_the_function() -> None:
    described = forecast.tool
    assert (described.name, described.description) == ("forecast", "The forecast for a place.\n\nLonger than a line.")
    assert (described.timeout, described.approval, described.idempotent, described.parallel) == (5, "ask", False, True)
    schema = dict(described.input_schema)
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["place"], False)
    properties: Any = schema["properties"]
    assert list(properties) == ["place", "unit", "json"]
    assert properties["place"]["description"] == "where"
    assert properties["unit"]["default"] == "c"
    assert "canvas" not in str(schema).lower()


def test_by_default_it_runs_alone_unasked_again_after_a_crash_and_with_its_input_whole() -> None:
    @tool
    def note() -> str:
        """Notes."""
        return ""

    made = note.tool
    assert (made.parallel, made.approval, made.idempotent, made.eager) == (False, "never", True, False)


async def test_it_is_called_with_values_of_its_types() -> None:
    class Task:
        task_id = "t"

    given = {"place": {"city": "Rome"}, "unit": "f", "json": "a"}
    assert await forecast.tool.run(given, Task()) == "Rome f a t"  # type: ignore[arg-type]


def test_it_can_still_be_called_as_the_function() -> None:
    @tool(name="plus")
    def add(a: int, b: int = 1) -> str:
        """Adds."""
        return str(a + b)

    assert add(1) == "2"
    assert add.tool.name == "plus"


def no_docstring(city: str) -> str:
    return city


def no_type(city) -> str:  # type: ignore[no-untyped-def]
    """Says."""
    return str(city)


def no_schema(city: asyncio.Event) -> str:
    """Says."""
    return str(city)


def callback(city: Callable[[], str]) -> str:
    """Says."""
    return str(city)


def unknown(city: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
    """Says."""
    return str(city)


def any_number(*cities: str) -> str:
    """Says."""
    return str(cities)


def plain_with_canvas(canvas: Canvas) -> str:
    """Says."""
    return canvas.task_id


def in_pieces(city: str) -> Iterator[str]:
    """Says."""
    yield city


async def in_pieces_later(city: str) -> AsyncIterator[str]:
    """Says."""
    yield city


def as_bytes() -> bytes:
    """Draws the tides."""
    return b""


def as_connection() -> socket.socket:
    """Opens a connection."""
    return socket.socket()


def as_callback() -> Callable[[], None]:
    """Says what to call."""
    return print


def as_stream() -> AsyncIterator[str]:
    """Says it in pieces."""
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (as_bytes, "returns bytes: return them as a File"),
        (as_connection, "returns socket: a tool returns str, a JSON value"),
        (as_callback, "returns collections.abc.Callable[[], None]: a tool returns"),
        (as_stream, "returns collections.abc.AsyncIterator[str]: a tool returns"),
        (no_docstring, "has no docstring"),
        (no_type, "write `city: str`, for example"),
        (no_schema, "has the parameter city of a type that no JSON value has"),
        (callback, "has the parameter city of a type that no JSON value has"),
        (unknown, "name 'Nowhere' is not defined"),
        (any_number, "Give every parameter a name"),
        (plain_with_canvas, "make it `async def`"),
        (in_pieces, "is a generator: `return` its result in one piece"),
        (in_pieces_later, "is a generator: `return` its result in one piece"),
    ],
)
def test_what_cannot_be_a_tool_is_told_with_its_place(function: Any, why: str) -> None:
    with pytest.raises(ToolDefinitionError) as refused:
        tool(function)
    line = function.__code__.co_firstlineno
    assert re.match(rf".*test_python_tool\.py, line {line}: the tool {function.__name__} ", str(refused.value))
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"approval": "Ask"}, 'has approval=\'Ask\'; it must be "ask" or "never".'),
        ({"approval": True}, 'has approval=True; it must be "ask" or "never".'),
        ({"approval": "alwys"}, 'has approval=\'alwys\'; it must be "ask" or "never".'),
        ({"approval": ["ask"]}, 'has approval=[\'ask\']; it must be "ask" or "never".'),
        ({"timeout": "x"}, "has timeout='x'; it must be a number of seconds above 0."),
        ({"timeout": 0}, "has timeout=0; it must be a number of seconds above 0."),
        ({"timeout": True}, "has timeout=True; it must be a number of seconds above 0."),
        ({"timeout": None}, "has timeout=None; it must be a number of seconds above 0."),
        ({"timeout": float("nan")}, "has timeout=nan; it must be a number of seconds above 0."),
        ({"idempotent": "no"}, "has idempotent='no'; it must be True or False."),
        ({"parallel": 1}, "has parallel=1; it must be True or False."),
        ({"name": 5}, "has name=5; it must be a string."),
        ({"timout": 3}, "cannot be made: timout is no argument of tool; did you mean timeout?"),
        ({"aproval": "ask"}, "cannot be made: aproval is no argument of tool; did you mean approval?"),
        ({"retries": 3}, "retries is no argument of tool, which has name, timeout, approval, idempotent and parallel."),
    ],
    ids=str,
)
def test_an_argument_of_tool_that_is_wrong_is_told_with_its_place(options: Any, why: str) -> None:
    def delete_file(path: str) -> str:
        """Deletes a file."""
        return path

    with pytest.raises(ToolDefinitionError) as refused:
        tool(**options)(delete_file)
    line = delete_file.__code__.co_firstlineno
    assert re.match(rf".*test_python_tool\.py, line {line}: the tool delete_file ", str(refused.value))
    assert str(refused.value).endswith(why)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("high_water", "@tool takes a function, not 'high_water': write @tool(name='high_water')"),
        (print, "@tool takes a function, not <built-in function print>"),
        (Place, f"@tool takes a function, not {Place!r:.100}"),
    ],
    ids=["name", "builtin", "class"],
)
def test_only_a_function_is_made_a_tool(given: Any, why: str) -> None:
    with pytest.raises(TypeError, match=re.escape(why)):
        tool(given)


@pytest.mark.parametrize(
    "returned",
    [str, None, File, list[File], Place, dict[str, int], "int | None", Any, object, Awaitable[str], NoReturn],
)
def test_what_can_be_a_result_may_be_announced(returned: Any) -> None:
    def answers() -> Any:
        """Answers."""

    answers.__annotations__["return"] = returned
    assert tool(answers).tool.name == "answers"
