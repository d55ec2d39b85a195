"""docs/quotas.md has every setting that is a limit, and the limits of the code."""

from __future__ import annotations

import re
import shlex

import pytest

from a2a_canvas.server.settings.settings import Settings, load, option_name
from a2a_canvas.server.tasks.runtime.turns import MAX_RESUMPTIONS
from tests.command_line import parsed
from tests.docs.pages import page, rows

PAGE = page("quotas")


def test_every_setting_that_is_a_limit_is_in_a_table() -> None:
    tables = "".join(cell for heading in ("Quotas", "Limits") for row in rows(PAGE, heading) for cell in row)
    options = {option_name(field) for field in Settings.model_fields}
    assert set(re.findall(r"`(--max-[\w-]+)`", tables)) == {name for name in options if name.startswith("--max-")}


def test_the_limit_of_resumptions_is_that_of_the_server() -> None:
    [row] = [row for row in rows(PAGE, "Limits") if row[0].startswith("crashes of the server")]
    assert row[1] == str(MAX_RESUMPTIONS)


@pytest.mark.parametrize("command", re.findall(r"^    a2a-canvas (serve .*)$", PAGE, re.MULTILINE))
def test_every_server_that_is_shown_can_be_started(command: str) -> None:
    _, options = parsed(*shlex.split(command))
    load({**options, "database": "sqlite:///a2a-canvas.db"})
