"""Which of the due deliveries get a place."""

from __future__ import annotations

from dataclasses import replace

from a2a_canvas.server.push.fair_choice import Due, FreePlaces, TakenPlaces
from a2a_canvas.server.tasks.push_configs import ConfigKey

FREE = FreePlaces(total=10, failing=10, large=10, per_target=10, per_user=10)


def due(name: str, user: str = "", target: str = "", attempts: int = 0) -> Due:
    return Due(ConfigKey("c", name, "p"), target or f"{name}:443", user, attempts)


def chosen(free: FreePlaces, *found: Due) -> list[str]:
    return [each.key.task_id for each in free.choose(found)]


def test_the_user_with_the_fewest_places_is_served_first() -> None:
    found = [*(due(f"a{number}", "ann") for number in range(5)), due("b0", "bob"), due("c0", "cy"), due("c1", "cy")]
    assert chosen(replace(FREE, total=4), *found) == ["a0", "b0", "c0", "a1"]
    busy = TakenPlaces(users={"ann": 2, "bob": 1})
    assert chosen(replace(FREE, total=4, taken=busy), *found) == ["c0", "b0", "c1", "a0"]


def test_no_user_has_more_than_the_share_of_one() -> None:
    free = replace(FREE, per_user=3, taken=TakenPlaces(users={"ann": 1, "bob": 3}))
    assert chosen(free, *(due(f"a{number}", "ann") for number in range(5)), due("b", "bob")) == ["a0", "a1"]
    assert free.full_users == {"bob"}


def test_one_target_has_no_more_than_its_share_and_one_that_failed_has_one() -> None:
    found = [due(f"x{number}", target="x:443") for number in range(3)]
    free = replace(FREE, per_target=2)
    assert chosen(free, *found) == ["x0", "x1"]
    assert chosen(replace(free, failing_targets={"x:443"}), *found) == ["x0"]
    sending = TakenPlaces({"x:443": 1})
    assert replace(free, taken=sending).full_targets == frozenset()
    assert replace(free, taken=sending, failing_targets={"x:443"}).full_targets == {"x:443"}


def test_those_that_failed_last_time_share_a_few_places() -> None:
    found = [due("a", attempts=1), due("b", attempts=2), due("c"), due("d", target="x:443")]
    assert chosen(replace(FREE, failing=1, failing_targets={"x:443"}), *found) == ["a", "c"]
    none = replace(FREE, failing=0, failing_targets={"x:443"})
    assert chosen(none, *found) == ["c"]
    assert none.full_targets == {"x:443"}


def test_large_bodies_share_a_few_places() -> None:
    found = [due("a"), due("b"), due("c")]
    large = {each.key for each in found[:2]}
    assert chosen(replace(FREE, large=1, large_configs=large), *found) == ["a", "c"]
    assert chosen(replace(FREE, large=0, large_configs=large), *found) == ["c"]
