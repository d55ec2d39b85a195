"""Common code of the client's commands: the options for the server and the output, and running a command.

Rule: modules with command forms, and this one, do not import the A2A SDK, httpx, asyncio or a console, so `--help` and
      usage errors are immediate. A command's own module is imported when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import click

from a2a_canvas.server.client.conversation.address import (
    DEFAULT_URL,
    RequestHeader,
    all_headers,
    check_url,
    header,
    token_header,
)
from a2a_canvas.server.command_form import CommandForm, GroupedOption
from a2a_canvas.server.wire import TOKEN_VARIABLE, URL_VARIABLE


def client_command(place: str, *params: click.Parameter, more: str = "", examples: tuple[str, ...] = ()) -> CommandForm:
    """A command that calls a server.

    Args:
        place: `module:function` in this package, or `bridges.module:function`. The function is asynchronous. It is
            called with an `Invocation` and the values of `params`, and returns the exit code, None for 0. `chat` alone
            is not asynchronous.
    """
    module, _, function = place.partition(":")

    def run(url: str, headers: tuple[RequestHeader, ...], token: RequestHeader | None, **values: Any) -> int:
        from a2a_canvas.server.client.conversation.invocation import Invocation, invoke

        sent = all_headers((*headers, *([token] if token else [])))
        called = click.get_current_context().obj
        at_prompt = isinstance(called, Invocation) and called.in_chat
        program = called.program if isinstance(called, Invocation) else called or "a2a-canvas"
        output = {name: values.pop(name) for name in ("json", "color", "thinking", "quiet") if name in values}
        package = "a2a_canvas.server.client" if "." in module else "a2a_canvas.server.client.commands"
        command = getattr(import_module(f"{package}.{module}"), function)
        return invoke(command, Invocation(check_url(url), sent, program, in_chat=at_prompt, **output), values)

    return CommandForm(run, (*params, *_COMMON), more, examples, _OF_OTHERS)


def option(*names: str, group: str = "Options", **how: Any) -> click.Option:
    """An option, listed under the heading of its group."""
    return GroupedOption(names, group=group, **how)


def completer(kind: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """The shell completion of a value of a kind (`completion.complete_value`)."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[Any]:
        from a2a_canvas.server.client.commands.completion import complete_value

        return complete_value(incomplete, kind, ctx.params)

    return complete


# ------------------------------------------------------------------------- types of values


def value_type(parse: Callable[[str], Any]) -> click.ParamType[Any]:
    """The type of a value that `parse` reads; the text of its `ValueError` is the whole error message."""

    def convert(text: Any) -> Any:
        if not isinstance(text, str):
            return text
        try:
            return parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return click.types.FuncParamType(convert)


def non_empty(text: str) -> str:
    """A non-empty text."""
    if not text:
        raise ValueError("must not be empty")
    return text


def lines(text: str) -> tuple[int, int]:
    """A range of lines, `3` or `3-5`: the first and the last one, counted from 1."""
    numbers = re.fullmatch(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?", text, re.ASCII)
    if not numbers:
        raise ValueError(f"must be a line such as 3 or a range such as 3-5, counted from 1: {text!r}")
    first, last = int(numbers[1]), int(numbers[2] or numbers[1])
    if last < first:
        raise ValueError(f"ends before it begins: {text!r}")
    return first, last


def version(text: str) -> int:
    """The number of a version."""
    if text == "0":
        raise ValueError("versions are counted from 1")
    return version_or_nothing(text)


def version_or_nothing(text: str) -> int:
    """The number of a version, or 0."""
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII):
        raise ValueError(f"must be a version number: {text!r}")
    return int(text)


def limit(text: str) -> int:
    """The most items to list."""
    if not re.fullmatch("[0-9]{1,4}", text, re.ASCII) or not 1 <= int(text) <= 1000:
        raise ValueError(f"must be a whole number from 1 to 1000: {text!r}")
    return int(text)


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def expiry(text: str) -> int | str:
    """An expiry: a span such as 7d, in seconds, or a time, which the server parses."""
    span = re.fullmatch(r"([1-9][0-9]{0,8})([smhdw])", text, re.ASCII)
    if span:
        return int(span[1]) * _SECONDS[span[2]]
    if not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T", text, re.ASCII):
        raise ValueError(f"must be a duration such as 7d, 12h or 30m, or a time such as 2030-12-01T00:00:00Z: {text!r}")
    return text


_OF_OTHERS = {"--port": "--port is an option of serve; clients take --url http://127.0.0.1:PORT"}
_SERVER, _OUTPUT = partial(option, group="Server"), partial(option, group="Output")
_URL = f"the server's address, or that of its agent card (default: ${URL_VARIABLE}, else {DEFAULT_URL})"
_TOKEN = f"send 'Authorization: Bearer TOKEN'; ${TOKEN_VARIABLE} keeps it out of the process list"
_HEADER = "send this header with every request; repeatable"
_COLOR = "auto (on a terminal, unless NO_COLOR is set), always or never"
_COLORS = click.Choice(["auto", "always", "never"])
_COMMON = (
    _SERVER("--url", metavar="URL", default=DEFAULT_URL, envvar=URL_VARIABLE, help=_URL),
    _SERVER("--token", metavar="TOKEN", type=value_type(token_header), help=_TOKEN),
    _SERVER("--header", "headers", metavar="'NAME: VALUE'", type=value_type(header), multiple=True, help=_HEADER),
    _OUTPUT("--json", is_flag=True, help="print the server's responses as JSON"),
    _OUTPUT("--color", metavar="COLOR", type=_COLORS, default="auto", help=_COLOR),
)
