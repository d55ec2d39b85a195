"""For whom a turn works: who sent the message that its model has read last, also after a crash."""

from __future__ import annotations

from dataclasses import replace

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.turns import sender_of, unread_messages
from tests.fakes import Clock, said


def message(sender: str) -> UserMessage:
    return replace(said(f"m of {sender}", "Hello"), sender=sender)


def record(*senders: str, read: int) -> TaskRecord:
    history = tuple(map(message, senders))
    transcript = tuple(map(to_user_input, history[:read]))
    return TaskRecord("t", "c", "ann", Clock()(), history=history, transcript=transcript)


def test_a_message_that_the_model_has_not_read_yet_changes_nothing() -> None:
    waiting = record("ann", "bob", read=1)
    assert sender_of(waiting) == "ann"
    assert [each.sender for each in unread_messages(waiting)] == ["bob"]


def test_one_that_it_has_read_does() -> None:
    assert sender_of(record("ann", "bob", read=2)) == "bob"
    assert sender_of(record("ann", "", read=2)) == ""


def test_a_task_without_messages_is_its_owners() -> None:
    assert sender_of(record(read=0)) == "ann"
