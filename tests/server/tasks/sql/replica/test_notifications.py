"""What replicas tell each other fits into what PostgreSQL takes, however much it is."""

from functools import reduce
from operator import or_
from uuid import uuid4

import pytest

from a2a_canvas.server.tasks.sql.replica.notifications import MAX_PAYLOAD_BYTES, Notification


def ids(count: int) -> tuple[str, ...]:
    return tuple(str(uuid4()) for _ in range(count))


def received(sent: Notification) -> Notification:
    payloads = sent.payloads()
    assert all(len(payload.encode()) <= MAX_PAYLOAD_BYTES for payload in payloads)
    return reduce(or_, map(Notification.parse, payloads))


@pytest.mark.parametrize("count", [1, 202, 203, 210, 1000])
def test_however_many_tasks_are_followed_their_replicas_are_told_which(count: int) -> None:
    sent = Notification(followed=ids(count))
    assert received(sent) == sent


def test_ids_of_every_kind_arrive_together() -> None:
    sent = Notification(ids(100), ids(150), ids(200), ids(250), ids(300), given_up=True)
    assert received(sent) == sent


@pytest.mark.parametrize("sent", [Notification(tasks=ids(5000)), Notification(contexts=("x" * 9000,)), Notification()])
def test_what_does_not_fit_says_that_anything_may_have_changed(sent: Notification) -> None:
    assert received(sent) == Notification(everything=True, missed=True)
