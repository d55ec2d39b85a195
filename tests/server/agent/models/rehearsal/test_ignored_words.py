"""The words of a request that a ready-made text does not follow."""

import pytest

from a2a_canvas.server.agent.model import ModelMessage, ModelText
from a2a_canvas.server.agent.models.rehearsal.ignored_words import ignored_words
from a2a_canvas.server.agent.models.rehearsal.rehearsal import SCRIPT
from a2a_canvas.server.agent.models.script.current_turn import current_turn
from a2a_canvas.server.agent.models.script.rules import read_rules

RULES = read_rules(str(SCRIPT))


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ("write a haiku about rain", ()),
        ("Please write me a nice little haiku about rain", ()),
        ("plan a trip to Japan for seven days", ()),
        ("write a story about a lighthouse", ()),
        ("write a poem about my grandmother's garden", ()),
        ("write a haiku about rain that rhymes", ("rhymes",)),
        ("write a haiku with eight lines", ("eight", "lines")),
        ("write a shopping list for pancakes without any eggs", ("without any eggs",)),
        ("write a letter to my landlord in French", ("in French",)),
        ("Schreibe ein Gedicht über den Herbst", ()),
        ("Escribe una carta de agradecimiento", ()),
        ("make it shorter, with eight lines", ()),
    ],
)
def test_they_are_those_that_neither_the_rule_nor_the_text_has(request_: str, words: tuple[str, ...]) -> None:
    turn = current_turn(RULES, [ModelMessage("user", (ModelText(request_),))])
    assert turn
    assert ignored_words(turn) == words
