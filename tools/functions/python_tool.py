"""`@tool`: makes a tool of a Python function, with a schema from its type hints and its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, Generic, Never, NoReturn, ParamSpec, TypeVar, get_args, get_origin, get_type_hints, overload

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError

from a2a_canvas.store.text.wording import MAX_SHOWN, choice
from a2a_canvas.tools.functions.canvas import Canvas
from a2a_canvas.tools.functions.function_tool import TIMEOUT, Approval, FunctionTool
from a2a_canvas.tools.functions.results import RETURNED, WRAP_BYTES, Result, ToolError
from a2a_canvas.tools.functions.running import in_thread
from a2a_canvas.tools.tool import explain

P = ParamSpec("P")
R = TypeVar("R")

_STRICT = ConfigDict(extra="forbid")
_NOT_JSON = "no JSON value has. There are str, int, float, bool, list, dict, Literal, enumerations and pydantic models."

_OPTIONS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda given: given is None or isinstance(given, str), "a string"),
    "timeout": (
        lambda given: isinstance(given, int | float) and given is not True and given > 0,
        "a number of seconds above 0",
    ),
    "approval": (lambda given: given in get_args(Approval), '"ask" or "never"'),
    "idempotent": (lambda given: isinstance(given, bool), "True or False"),
    "parallel": (lambda given: isinstance(given, bool), "True or False"),
}
"""Checks of the arguments of `tool`: without them, a misspelt `approval` would approve every call."""

_IN_ONE_PIECE = "`return` its result in one piece. What is to be seen before is appended to an artifact of its Canvas."


class ToolDefinitionError(Exception):
    """A function cannot be a tool; `str()` says why, and where."""

    def __init__(self, function: Callable[..., Any], why: str) -> None:
        code = inspect.unwrap(function).__code__
        super().__init__(f"{code.co_filename}, line {code.co_firstlineno}: the tool {function.__name__} {why}")


@dataclass(frozen=True)
class PythonTool(Generic[P, R]):
    """A function that is a tool. Calling it calls the function, for tests and for other tools."""

    function: Callable[P, R]
    tool: FunctionTool

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


@overload
def tool(function: Callable[P, R], /) -> PythonTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    timeout: float = TIMEOUT,
    approval: Approval = "never",
    idempotent: bool = True,
    parallel: bool = False,
) -> Callable[[Callable[P, R]], PythonTool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a function a tool that the model may call.

    The parameters need type hints, which pydantic knows; the docstring says what the tool does, and in `Args:` what its
    parameters mean. An `async def` may have a parameter of type `Canvas`; a plain `def` runs in a thread. It returns
    `str`, a JSON value, a pydantic model, a `File`, or a list of these, and raises `ToolError` to tell the model what
    went wrong.

    Args:
        name: what the model calls it; the function's name by default.
        timeout: seconds that a call may take.
        approval: `ask`: the user is asked before each call.
        idempotent: False: a call that a crash of the server has interrupted is not run again; the model is told that
            its outcome is unknown.
        parallel: whether calls of one message may run concurrently.

    Raises:
        ToolDefinitionError: the function cannot be a tool, or an argument is wrong.
        TypeError: it is not a function.

    >>> @tool
    ... def add(a: int, b: int = 1) -> str:
    ...     \"\"\"Adds two numbers.
    ...
    ...     Args:
    ...         a: the first
    ...     \"\"\"
    ...     return str(a + b)
    >>> add.tool.name, add.tool.input_schema["required"], add(1, 2)
    ('add', ['a'], '3')
    """
    if function is None:
        return partial(_tool, **options)
    if not inspect.isfunction(function):
        instead = f": write @tool(name={function!r:.{MAX_SHOWN}})" if isinstance(function, str) else ""
        raise TypeError(f"@tool takes a function, not {function!r:.{MAX_SHOWN}}{instead}")
    return _tool(function, **options)


def _tool(function: Callable[..., Any], **options: Any) -> PythonTool[Any, Any]:
    _check_options(function, options)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(function, f"is a generator: {_IN_ONE_PIECE}")
    _check_return_type(function)
    doc = docstring_parser.parse(inspect.getdoc(function) or "")
    if not doc.description:
        raise ToolDefinitionError(function, "has no docstring. Write what it does: the model reads it.")
    shape, canvas = _parameters(function, {each.arg_name: each.description or "" for each in doc.params})
    schema = shape.model_json_schema()
    schema.pop("title", None)
    named = options.pop("name", None) or function.__name__
    run = partial(_run, function, shape, named, canvas)
    check = partial(_fault, shape, named)
    return PythonTool(function, FunctionTool(named, doc.description, schema, run, check=check, **options))


def _check_options(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    for name, given in options.items():
        if name not in _OPTIONS:
            near = get_close_matches(name, _OPTIONS, n=1)
            instead = f"; did you mean {near[0]}?" if near else f", which has {choice(_OPTIONS, 'and')}."
            raise ToolDefinitionError(function, f"cannot be made: {name} is no argument of tool{instead}")
        fits, must = _OPTIONS[name]
        if not fits(given):
            raise ToolDefinitionError(function, f"has {name}={given!r:.{MAX_SHOWN}}; it must be {must}.")


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        raise ToolDefinitionError(function, f"has a type hint that cannot be read: {error}") from None


def _check_return_type(function: Callable[..., Any]) -> None:
    """Reject a return type that can never be a result."""
    returned = _hints(function).get("return")
    if inspect.isclass(origin := get_origin(returned)) and issubclass(origin, Awaitable):
        returned = get_args(returned)[-1]
    if returned in (bytes, bytearray, memoryview):
        raise ToolDefinitionError(function, f"returns {returned.__name__}: {WRAP_BYTES}")
    if returned in (None, NoReturn, Never) or (inspect.isclass(returned) and issubclass(returned, BaseModel)):
        return
    try:
        TypeAdapter(returned).json_schema(mode="serialization")
    except PydanticUserError:
        raise ToolDefinitionError(function, f"returns {_type_name(returned)}: {RETURNED}") from None


def _type_name(kind: Any) -> str:
    return kind.__name__ if inspect.isclass(kind) else str(kind)


def _parameters(function: Callable[..., Any], about: Mapping[str, str]) -> tuple[type[BaseModel], str]:
    """The model of a function's parameters, and the name of the `Canvas` parameter, empty if there is none."""
    hints = _hints(function)
    canvas = ""
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolDefinitionError(function, f"has the parameter {parameter}. Give every parameter a name.")
        if name not in hints:
            raise ToolDefinitionError(function, f"has a parameter without a type: write `{name}: str`, for example.")
        if hints[name] is Canvas:
            if not inspect.iscoroutinefunction(function):
                raise ToolDefinitionError(function, "has a Canvas, whose methods are awaited: make it `async def`.")
            canvas = name
            continue
        try:
            TypeAdapter(hints[name]).json_schema()
        except PydanticUserError:
            raise ToolDefinitionError(function, f"has the parameter {name} of a type that {_NOT_JSON}") from None
        default = ... if parameter.default is parameter.empty else parameter.default
        # By alias, because a field called `json` would hide a method of the model.
        fields[f"field_{len(fields)}"] = (hints[name], Field(default, alias=name, description=about.get(name) or None))
    return create_model(function.__name__, __config__=_STRICT, **fields), canvas


def _parse_input(shape: type[BaseModel], name: str, given: Mapping[str, Any]) -> BaseModel | str:
    """The parameters of a call, or their fault."""
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        return explain(name, error)


def _fault(shape: type[BaseModel], name: str, given: Mapping[str, Any]) -> str:
    try:
        parsed = _parse_input(shape, name, given)
    except Exception:  # from a custom validator: the call reports and logs it
        return ""
    return parsed if isinstance(parsed, str) else ""


async def _run(
    function: Callable[..., Any],
    shape: type[BaseModel],
    name: str,
    canvas_name: str,
    given: Mapping[str, Any],
    canvas: Canvas,
) -> Result:
    parsed = _parse_input(shape, name, given)
    if isinstance(parsed, str):
        raise ToolError(parsed)
    values = {str(info.alias): getattr(parsed, field) for field, info in shape.model_fields.items()}
    if canvas_name:
        values[canvas_name] = canvas
    call = partial(function, **values)
    try:
        outcome: Any = await (call() if inspect.iscoroutinefunction(function) else in_thread(call))
        if isinstance(outcome, Awaitable):
            outcome = await outcome
    except (SystemExit, KeyboardInterrupt) as error:  # asyncio lets them end the process
        raise RuntimeError(repr(error)) from error
    result: Result = outcome
    return result
