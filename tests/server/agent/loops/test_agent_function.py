"""An agent is a function, decorated or not; a mistake in it is one sentence that says what to write."""

import pytest

from a2a_canvas import agent
from a2a_canvas.server.agent.loops.agent_function import AgentDefinitionError, agent_function


async def plain(turn) -> None:
    await turn.say("Hello.")


def test_a_plain_function_is_an_agent_and_so_is_a_decorated_one() -> None:
    for each in (agent_function(plain), agent(plain), agent()(plain)):
        assert (each.name, each.restartable, each.editor) == ("plain", True, None)
        assert agent_function(each) is each
    assert agent(restartable=False)(plain).restartable is False


def test_a_second_function_answers_edits() -> None:
    reef = agent(plain)

    @reef.edit
    async def edit(turn) -> None:
        await turn.say("LOUDER")

    assert reef.editor
    assert reef.run is not reef.editor


def test_the_function_answers_edits_itself_if_it_says_so() -> None:
    reef = agent(edits=True)(plain)
    own = reef.editor
    reef.edit(plain)
    assert own is not None
    assert reef.editor is not own


def sync(turn) -> None: ...


async def no_turn() -> None: ...


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "int is not a function. Write: async def agent"),
        (sync, "sync is not async. Write: async def sync"),
        (no_turn, "no_turn must take one argument, the turn: too many positional arguments"),
    ],
)
def test_a_mistake_is_one_sentence(value, message: str) -> None:
    for use in (agent_function, agent, agent(plain).edit):
        with pytest.raises(AgentDefinitionError, match=message):
            use(value)
