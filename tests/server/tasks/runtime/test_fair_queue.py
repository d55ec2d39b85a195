"""Who is next: fair between contexts, in order within one, and nobody is lost."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from a2a_canvas.server.tasks.runtime.admission import FairQueue

Waiting = tuple[str, int]
"""A context, and the number of the item."""


def queue_of(contexts: str) -> FairQueue[Waiting]:
    queue: FairQueue[Waiting] = FairQueue()
    for number, context_id in enumerate(contexts):
        queue.add((context_id, number), context_id)
    return queue


def served(queue: FairQueue[Waiting]) -> list[Waiting]:
    return [item for _ in range(len(queue)) if (item := queue.take())]


def test_contexts_are_served_in_turn() -> None:
    assert [context for context, _ in served(queue_of("aaaabbc"))] == list("abcabaa")


def test_who_was_just_served_comes_after_who_has_come_meanwhile() -> None:
    queue = queue_of("aa")
    assert queue.take() == ("a", 0)
    queue.add(("b", 2), "b")
    assert served(queue) == [("a", 1), ("b", 2)]
    queue = queue_of("aaa")
    queue.add(("b", 3), "b")
    assert [context for context, _ in served(queue)] == list("abaa")


def test_what_had_begun_before_goes_first() -> None:
    queue = queue_of("ab")
    queue.add(("a", 2), "a", begun=True)
    queue.add(("c", 3), "c", begun=True)
    assert served(queue) == [("a", 2), ("c", 3), ("a", 0), ("b", 1)]


CONTEXTS = st.text("abcd", max_size=30)


@given(CONTEXTS)
def test_a_context_is_served_in_the_order_in_which_it_asked(contexts: str) -> None:
    order = served(queue_of(contexts))
    for context_id in set(contexts):
        numbers = [number for context, number in order if context == context_id]
        assert numbers == sorted(numbers)


@given(CONTEXTS)
def test_nobody_waits_for_a_second_of_another_context_before_its_first(contexts: str) -> None:
    """However many a context asks for: at any moment no context that still waits is two behind another."""
    left, had = Counter(contexts), Counter[str]()
    for context, _ in served(queue_of(contexts)):
        had[context] += 1
        left[context] -= 1
        assert all(had[context] - had[other] <= 1 for other in left if left[other])


class Queueing(RuleBasedStateMachine):
    """Any order of adding, removing and serving."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: FairQueue[Waiting] = FairQueue()
        self.waiting: set[Waiting] = set()
        self.number = 0

    @rule(context_id=st.sampled_from("abc"), begun=st.booleans())
    def add(self, context_id: str, begun: bool) -> None:
        self.number += 1
        item = context_id, self.number
        self.queue.add(item, context_id, begun=begun)
        self.waiting.add(item)

    @precondition(lambda self: self.waiting)
    @rule()
    def take(self) -> None:
        first = next(iter(self.queue))
        assert self.queue.take() == first
        self.waiting.remove(first)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(sorted(self.waiting)))
        others = [other for other in self.queue if other != item]
        before = [other for other in others if other[0] == item[0]]
        self.queue.remove(item)
        self.waiting.remove(item)
        assert [other for other in self.queue if other[0] == item[0]] == before

    @invariant()
    def everybody_waits_once(self) -> None:
        order = list(self.queue)
        assert len(order) == len(self.queue) == len(self.waiting)
        assert set(order) == self.waiting
        assert all(item in self.queue for item in self.waiting)


TestQueueing = Queueing.TestCase


# ---------------------------------------------------------------------------- users


def queue_of_users(users: str) -> FairQueue[Waiting]:
    """Each item is of a context of its own."""
    queue: FairQueue[Waiting] = FairQueue()
    for number, user in enumerate(users):
        queue.add((user, number), f"context {number}", user)
    return queue


def test_users_are_served_in_turn_however_many_contexts_each_has() -> None:
    assert [user for user, _ in served(queue_of_users("aaaabbc"))] == list("abcabaa")


def test_the_contexts_of_a_user_are_served_in_turn() -> None:
    queue: FairQueue[Waiting] = FairQueue()
    for number, (user, context_id) in enumerate([("u", "a"), ("u", "a"), ("u", "b"), ("v", "c")]):
        queue.add((context_id, number), context_id, user)
    assert [context for context, _ in served(queue)] == list("acba")


def test_a_user_that_may_not_run_is_passed_over_and_keeps_its_place() -> None:
    queue = queue_of_users("aab")
    assert queue.take(lambda user: user != "a") == ("b", 2)
    assert queue.take(lambda user: False) is None
    assert served(queue) == [("a", 0), ("a", 1)]


@given(CONTEXTS)
def test_it_is_iterated_in_the_order_in_which_users_are_served(users: str) -> None:
    queue = queue_of_users(users)
    assert [queue.of_user(user) for user in "abcd"] == [users.count(user) for user in "abcd"]
    assert list(queue) == served(queue)
    assert not any(queue.of_user(user) for user in "abcd")
