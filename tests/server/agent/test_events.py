"""The vocabulary of a turn."""

from dataclasses import is_dataclass
from typing import get_args

import pytest

from a2a_canvas.server.agent import events
from a2a_canvas.server.agent.events import State, TurnEvent
from a2a_canvas.store.edit_events import EditEvent

VALUES = {"UserMessage", "AgentMessage", "UserInput", "AssistantOutput", "BlockPosition", "ToolStep"}


@pytest.mark.parametrize("state", State)
def test_a_task_is_over_when_it_is_completed_canceled_failed_or_rejected(state) -> None:
    assert state.terminal == (state.value in ("completed", "canceled", "failed", "rejected"))


def test_states_have_their_a2a_names() -> None:
    assert {state.value for state in State} == {
        "submitted",
        "working",
        "input-required",
        "auth-required",
        "completed",
        "canceled",
        "failed",
        "rejected",
    }


@pytest.mark.parametrize("event", get_args(TurnEvent))
def test_an_event_is_a_frozen_value(event) -> None:
    assert event.__dataclass_params__.frozen
    assert "__slots__" in vars(event)


def test_the_union_holds_every_event_there_is() -> None:
    defined = {
        name for name, thing in vars(events).items() if is_dataclass(thing) and thing.__module__ == events.__name__
    }
    edits = {event.__name__ for event in get_args(EditEvent)}
    assert (defined - VALUES) | edits | {"AnnotationsChanged"} == {event.__name__ for event in get_args(TurnEvent)}
