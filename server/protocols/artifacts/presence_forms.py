"""Presence as JSON: the move of a cursor as clients send it, and who is present as streams show it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from a2a_canvas.server.agent.operation_forms import Id, InvalidOperation, OperationForm, read_form
from a2a_canvas.server.tasks.presence.roster import AGENT_NAME, CursorPlace, PresentPerson, Roster, colour_of
from a2a_canvas.store.models import JsonValue
from a2a_canvas.store.text.unicode import valid_id

MAX_WINDOW = 64
"""Characters of the id of a window."""
MAX_OFFSET = 2**31 - 1

_Number = Annotated[int, Field(ge=0, le=MAX_OFFSET)]


class _MoveForm(OperationForm):
    window: Annotated[str, Field(min_length=1, max_length=MAX_WINDOW), AfterValidator(valid_id)]
    artifact_id: Id | None = None
    version: _Number = 0
    start: _Number | None = None
    end: _Number | None = None


def cursor_move(given: Mapping[str, JsonValue]) -> tuple[str, CursorPlace | None]:
    """The window that has moved its cursor, and the place; None if it has withdrawn it.

    Raises:
        InvalidOperation: a field is unknown, missing or invalid.
    """
    form = read_form(_MoveForm, given)
    if form.artifact_id is None:
        return form.window, None
    if form.start is None:
        raise InvalidOperation("start", "is missing: it is the place of the cursor, in UTF-16 code units")
    end = form.start if form.end is None else form.end
    if end < form.start:
        raise InvalidOperation("end", f"is {end} and must not be before start, {form.start}")
    return form.window, CursorPlace(form.artifact_id, form.version, form.start, end)


def roster_json(roster: Roster) -> dict[str, Any]:
    """Who is present, and where cursors and agents are."""
    return {
        "people": [_person_json(person) for person in roster.people],
        "more": roster.more,
        "agents": [
            {"taskId": task_id, "colour": colour_of(AGENT_NAME), **_place_json(place)}
            for task_id, place in roster.agents
        ],
    }


def _person_json(person: PresentPerson) -> dict[str, Any]:
    return {
        "name": person.name,
        "guest": person.guest,
        "colour": colour_of(person.name),
        "cursors": [{"window": window, **_place_json(place)} for window, place in person.cursors],
    }


def _place_json(place: CursorPlace) -> dict[str, Any]:
    return {"artifactId": place.artifact_id, "version": place.version, "start": place.start, "end": place.end}
