"""How a message names a value, a choice, and what is near."""

import pytest

from a2a_canvas.store.text.wording import MAX_SHOWN, choice, format_value, nearest, numbers

VERBS = ("send", "show", "stop", "start", "list", "watch", "cancel")


@pytest.mark.parametrize(
    ("given", "as_shown"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        ("a\nb", "'a\\nb'"),
        ({"a": 1}, "an object"),
        ([1], "a list"),
        ("x" * (MAX_SHOWN + 1), f"'{'x' * MAX_SHOWN}'…"),
        (10**100, f"1{'0' * (MAX_SHOWN - 1)}…"),
    ],
)
def test_a_value_is_shown_short(given: object, as_shown: str) -> None:
    assert format_value(given) == as_shown


@pytest.mark.parametrize(("names", "said"), [((), ""), (("a",), "a"), (("a", "b"), "a or b"), ("abc", "a, b or c")])
def test_a_choice_is_a_part_of_a_sentence(names: tuple[str, ...], said: str) -> None:
    assert choice(names) == said


@pytest.mark.parametrize(
    ("given", "near"), [("Strat", ("start",)), ("SEND", ("send",)), ("zzz", ()), ("stp", ("stop",))]
)
def test_of_many_names_the_nearest_are_named(given: str, near: tuple[str, ...]) -> None:
    assert nearest(given, VERBS)[: len(near) or None] == near


def test_few_names_are_all_named() -> None:
    assert nearest("zzz", VERBS[:3]) == VERBS[:3]


@pytest.mark.parametrize(("last", "first", "said"), [(1, 1, "1"), (3, 1, "1 to 3"), (3, 2, "2 to 3"), (2, 2, "2")])
def test_numbers_are_a_range_or_one(last: int, first: int, said: str) -> None:
    assert numbers(last, first) == said
