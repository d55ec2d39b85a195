"""What replicas tell each other about presence, as a closed union, and its JSON. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from a2a_canvas.server.tasks.presence.roster import CursorPlace
from a2a_canvas.store.ids import ContextKey


@dataclass(frozen=True, slots=True)
class PersonCame:
    """The replica has a stream of this account."""

    context: ContextKey
    account: str


@dataclass(frozen=True, slots=True)
class PersonLeft:
    """It no longer has one."""

    context: ContextKey
    account: str


@dataclass(frozen=True, slots=True)
class CursorMoved:
    """The cursor of a window; None if it is withdrawn."""

    context: ContextKey
    account: str
    window: str
    place: CursorPlace | None


@dataclass(frozen=True, slots=True)
class AgentMoved:
    """The passage that a task of the replica works on; None if it no longer works on one."""

    context: ContextKey
    task_id: str
    place: CursorPlace | None


@dataclass(frozen=True, slots=True)
class RosterAsked:
    """Those who know of people in this context are to tell."""

    context: ContextKey


PresenceChange = PersonCame | PersonLeft | CursorMoved | AgentMoved | RosterAsked
Json = list[Any]


def change_to_json(change: PresenceChange) -> Json:
    match change:
        case PersonCame():
            return ["+", change.context, change.account]
        case PersonLeft():
            return ["-", change.context, change.account]
        case CursorMoved():
            return ["m", change.context, change.account, change.window, *_place_json(change.place)]
        case AgentMoved():
            return ["a", change.context, change.task_id, *_place_json(change.place)]
        case RosterAsked():
            return ["?", change.context]
        case _:
            assert_never(change)


def change_from_json(item: object) -> PresenceChange | None:
    """A change; None if it is none of ours."""
    match item:
        case ["+", str(context), str(account)]:
            return PersonCame(ContextKey(context), account)
        case ["-", str(context), str(account)]:
            return PersonLeft(ContextKey(context), account)
        case ["m", str(context), str(account), str(window), *place]:
            return CursorMoved(ContextKey(context), account, window, _place(place))
        case ["a", str(context), str(task_id), *place]:
            return AgentMoved(ContextKey(context), task_id, _place(place))
        case ["?", str(context)]:
            return RosterAsked(ContextKey(context))
        case _:
            return None


def _place_json(place: CursorPlace | None) -> Json:
    return [] if place is None else [place.artifact_id, place.version, place.start, place.end]


def _place(given: Json) -> CursorPlace | None:
    match given:
        case [str(artifact_id), int(version), int(start), int(end)]:
            return CursorPlace(artifact_id, version, start, end)
        case _:
            return None
