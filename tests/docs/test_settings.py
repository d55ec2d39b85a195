"""docs/settings.md has every setting."""

from __future__ import annotations

from a2a_canvas.server.settings.settings import Settings, option_name
from tests.docs.pages import page, rows
from tests.docs.settings_table import generated

PAGE = page("settings")


def test_the_table_of_settings_is_the_one_that_is_generated() -> None:
    assert generated(PAGE) == PAGE, "run `make docs`"


def test_the_table_has_every_setting_with_its_default() -> None:
    told = {row[0].partition(",")[0]: row[1] for row in rows(PAGE, "Settings")}
    assert told.keys() == {f"`{option_name(field)}`" for field in Settings.model_fields}
    assert (told["`--port`"], told["`--model`"], told["`--expose-thinking`"]) == ("`8000`", "–", "on")
