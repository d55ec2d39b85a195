"""Which message is one that was sent before."""

from dataclasses import replace
from datetime import timedelta

import pytest

from server.agent.events import UserMessage
from server.tasks.incoming import WINDOW, Incoming, Repeats
from store.models import DataPart, FilePart, text_part
from tests.fakes import Clock, said

MESSAGE = UserMessage("m-1", (text_part("Go"), DataPart({"a": [1]}), FilePart(content=b"x")), {"k": "v"})
SENT = Incoming(MESSAGE, owner="ann", context_id="c", task_id="t")
STRANGER = Incoming(said("m-1", "Go"), context_id="c")


def remembering(incoming: Incoming) -> tuple[Repeats, Clock]:
    clock = Clock()
    repeats = Repeats(clock)
    repeats.remember(incoming, "task-1")
    return repeats, clock


def test_a_message_that_was_never_sent_belongs_to_no_task() -> None:
    assert Repeats(Clock()).task_of(SENT) == ""


def test_the_same_message_again_belongs_to_the_task_of_the_first() -> None:
    repeats, _ = remembering(SENT)
    same = UserMessage("m-1", (text_part("Go"), DataPart({"a": [1]}), FilePart(content=b"x")), {"k": "v"})
    assert repeats.task_of(replace(SENT, message=same)) == "task-1"


@pytest.mark.parametrize(
    "other",
    [
        replace(SENT, owner="bob"),
        replace(SENT, owner=""),
        replace(SENT, context_id="d"),
        replace(SENT, context_id=""),
        replace(SENT, task_id="u"),
        replace(SENT, message=replace(MESSAGE, message_id="m-2")),
        replace(SENT, message=replace(MESSAGE, metadata={"k": "w"})),
        replace(SENT, message=replace(MESSAGE, parts=(text_part("Stop"),))),
        replace(SENT, message=replace(MESSAGE, parts=(*MESSAGE.parts, text_part("!")))),
    ],
)
def test_a_message_that_differs_in_anything_is_another_one(other) -> None:
    repeats, _ = remembering(SENT)
    assert repeats.task_of(other) == ""


def test_strangers_are_only_told_apart_by_a_context_that_they_name() -> None:
    repeats, _ = remembering(STRANGER)
    assert repeats.task_of(STRANGER) == "task-1"


@pytest.mark.parametrize("task_id", ["", "t"])
def test_a_stranger_without_a_context_never_repeats_a_message(task_id) -> None:
    nowhere = replace(STRANGER, context_id="", task_id=task_id)
    repeats, _ = remembering(nowhere)
    assert repeats.task_of(nowhere) == ""


def test_a_known_caller_needs_no_context() -> None:
    anywhere = replace(SENT, context_id="", task_id="")
    repeats, _ = remembering(anywhere)
    assert repeats.task_of(anywhere) == "task-1"


def test_a_message_is_remembered_for_a_day_and_no_longer() -> None:
    assert timedelta(hours=24) == WINDOW
    repeats, clock = remembering(SENT)
    clock.move(WINDOW)
    assert repeats.task_of(SENT) == "task-1"
    clock.move(timedelta(microseconds=1))
    assert repeats.task_of(SENT) == ""


def test_what_is_forgotten_can_be_remembered_anew() -> None:
    repeats, clock = remembering(SENT)
    clock.move(WINDOW * 2)
    assert repeats.task_of(SENT) == ""
    repeats.remember(SENT, "task-2")
    clock.move(WINDOW)
    assert repeats.task_of(SENT) == "task-2"
