"""Where a conversation stands in a script follows from its messages."""

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.models.script.current_turn import next_round
from tests.property_examples import examples

names = st.sampled_from(["artifact_update", "artifact_list", "ask_user"])
scripts = st.lists(st.lists(names, max_size=4), max_size=5)


def test_nothing_said_yet() -> None:
    assert next_round([["a", "b"]], []) == (0, (0, 1))
    assert next_round([], []) == (0, ())


def test_a_round_is_done_when_each_of_its_calls_was_made() -> None:
    assert next_round([["a", "b"], ["c"]], [["a", "b"]]) == (1, (0,))
    assert next_round([["a", "b"], ["c"]], [["a"], ["b"]]) == (1, (0,))
    assert next_round([["a", "b"]], [["b", "a"]]) == (1, ())


def test_of_a_round_that_broke_off_the_other_calls_are_left() -> None:
    assert next_round([["a", "b", "a"]], [["a"]]) == (0, (1, 2))
    assert next_round([["a", "b", "a"]], [["a"], ["b"]]) == (0, (2,))


def test_a_round_without_calls_is_done_by_the_next_message() -> None:
    assert next_round([[], ["a"]], [[]]) == (1, (0,))
    assert next_round([["a"], []], [["a"]]) == (1, ())
    assert next_round([["a"], []], [["a"], []]) == (2, ())


def test_a_message_without_calls_does_not_do_a_round_that_has_some() -> None:
    assert next_round([["a"]], [[]]) == (0, (0,))


def test_foreign_calls_count_for_nothing() -> None:
    assert next_round([["a"]], [["x"], ["y"]]) == (0, (0,))
    assert next_round([["a"]], [["a"], ["a"]]) == (1, ())


@settings(max_examples=examples(200))
@given(script=scripts, data=st.data())
def test_however_its_rounds_are_broken_up_a_script_is_played_once_and_in_order(script, data) -> None:
    played: list[list[str]] = []
    made: list[tuple[int, int]] = []
    while (here := next_round(script, played))[0] < len(script):
        number, left = here
        count = data.draw(st.integers(min(1, len(left)), len(left)))
        made += [(number, call) for call in left[:count]]
        played.append([script[number][call] for call in left[:count]])
    assert made == [(number, call) for number, one in enumerate(script) for call in range(len(one))]
