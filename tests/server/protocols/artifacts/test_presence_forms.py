"""The move of a cursor as clients send it, and what streams show."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.protocols.artifacts.presence_forms import cursor_move, roster_json
from a2a_canvas.server.tasks.presence.roster import CursorPlace, PresentPerson, Roster, colour_of

AT = {"window": "w", "artifactId": "doc", "version": 3, "start": 4, "end": 9}


def test_a_move_is_a_selection_a_cursor_or_none() -> None:
    assert cursor_move(AT) == ("w", CursorPlace("doc", 3, 4, 9))
    assert cursor_move({"window": "w", "artifactId": "doc", "start": 4}) == ("w", CursorPlace("doc", 0, 4, 4))
    assert cursor_move({"window": "w"}) == ("w", None)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"window": ""}, "window"),
        ({"window": "w" * 65}, "window"),
        ({"window": "a\nb"}, "window"),
        ({"window": None}, "window"),
        ({"artifactId": ""}, "artifactId"),
        ({"artifactId": "a" * 257}, "artifactId"),
        ({"version": -1}, "version"),
        ({"version": 2**31}, "version"),
        ({"start": -1}, "start"),
        ({"start": 1.5}, "start"),
        ({"start": None}, "start"),
        ({"end": 3}, "end"),
        ({"end": 2**31}, "end"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_no_move_is_refused_by_the_name_of_its_field(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidOperation) as refused:
        cursor_move(AT | changed)
    assert refused.value.field == field


def test_a_stream_is_told_names_colours_and_places_and_no_account_of_a_link() -> None:
    place = CursorPlace("doc", 3, 4, 9)
    shown = {"artifactId": "doc", "version": 3, "start": 4, "end": 9}
    roster = Roster((PresentPerson("ada", (("w", place),)), PresentPerson("link 123")), 2, (("task", place),))
    assert roster_json(roster) == {
        "people": [
            {"name": "ada", "guest": False, "colour": colour_of("ada"), "cursors": [{"window": "w", **shown}]},
            {"name": "guest", "guest": True, "colour": colour_of("guest"), "cursors": []},
        ],
        "more": 2,
        "agents": [{"taskId": "task", "colour": colour_of("agent"), **shown}],
    }
