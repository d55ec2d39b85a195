"""docs/settings.md has every setting, and the limits of the code."""

from __future__ import annotations

from a2a_canvas.server.settings.settings import Settings, option_name
from a2a_canvas.server.tasks.runtime.turns import MAX_RESUMPTIONS
from tests.docs.pages import page, rows
from tests.docs.settings_table import generated

PAGE = page("settings")


def test_the_table_of_settings_is_the_one_that_is_generated() -> None:
    assert generated(PAGE) == PAGE, "run `make docs`"


def test_the_table_has_every_setting_with_its_default() -> None:
    told = {row[0].partition(",")[0]: row[2] for row in rows(PAGE, "Settings")}
    assert told.keys() == {f"`{option_name(field)}`" for field in Settings.model_fields}
    assert (told["`--port`"], told["`--model`"], told["`--expose-thinking`"]) == ("`8000`", "–", "on")


def test_every_limit_that_is_a_setting_names_it() -> None:
    options = {option_name(field) for field in Settings.model_fields}
    named = {row[1].strip("`") for row in rows(PAGE, "Limits") if row[1].startswith("`--")}
    assert named <= options
    assert {name for name in options if name.startswith("--max-")} == named


def test_the_limit_of_resumptions_is_that_of_the_server() -> None:
    [row] = [row for row in rows(PAGE, "Limits") if row[0].startswith("crashes of the server")]
    assert row[1] == str(MAX_RESUMPTIONS)
