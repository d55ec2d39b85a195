"""Settings as options of a command."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from a2a_canvas.server.settings import PREFIX, Settings, option, span


def add_options(command: argparse.ArgumentParser, fields: Iterable[str] = tuple(Settings.model_fields)) -> None:
    """Add the options for these settings, by the names of their fields."""
    command.epilog = f"Every setting is also an environment variable: --log-level is {PREFIX}LOG_LEVEL."
    for field in fields:
        info = Settings.model_fields[field]
        default = "" if info.default is None else f" (default: {info.default})"
        numbers = f"; {span(field)}" if span(field) else ""
        shown = f"{info.description}{numbers}{default}".replace("%", "%%")
        form: dict[str, Any] = {"metavar": field.rsplit("_", 1)[-1].upper()}
        if info.annotation is bool:
            form = {"action": argparse.BooleanOptionalAction}
        command.add_argument(option(field), dest=field, default=argparse.SUPPRESS, help=shown, **form)


def given_options(options: argparse.Namespace) -> dict[str, Any]:
    """The settings that were given, by the names of their fields."""
    return {field: value for field, value in vars(options).items() if field in Settings.model_fields}
