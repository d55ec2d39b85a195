"""What a function reads of its turn: the artifacts with their versions, what is left to spend."""

import json

import pytest

from a2a_canvas import ToolError
from a2a_canvas.server.agent.loops.agent_turn import Budget, Turn
from tests.fakes import said
from tests.server.agent.loops.agent_life import AgentLife, ended


async def test_artifacts_are_listed_with_name_and_version() -> None:
    async def agent(turn: Turn) -> None:
        await turn.artifact("report", name="report.md").append("Tides")
        await turn.artifact("report").edit("Tides", "The tides")
        await turn.artifact("notes").append("High")
        listed = await turn.artifacts()
        await turn.say(json.dumps([[each, each.name, each.version] for each in listed]))

    assert json.loads((await ended(agent)).reply) == [["report", "report.md", 2], ["notes", "", 0]]


async def test_an_artifact_has_the_name_of_its_handle_unless_a_change_gives_another() -> None:
    async def agent(turn: Turn) -> None:
        report = turn.artifact("report", name="report.md")
        await report.append("a")
        await report.append("b", name="tides.md")

    life = await ended(agent)
    assert life.store.documents["report"].artifact.name == "tides.md"


async def test_its_versions_are_read_with_number_and_text() -> None:
    async def agent(turn: Turn) -> None:
        report = turn.artifact("report")
        assert (await report.versions(), await report.read()) == ([], "")
        await report.append("Tides")
        await report.edit("Tides", "The tides")
        await report.append(" are high")
        assert [(each.number, each.text, each.author, each.current) for each in await report.versions()] == [
            (1, "Tides", "agent", False),
            (2, "The tides", "agent", True),
        ]
        assert [await report.read(), await report.read(version=1)] == ["The tides are high", "Tides"]
        with pytest.raises(ToolError, match="Version 3 of artifact 'report' does not exist"):
            await report.read(version=3)
        await turn.say("Read.")

    assert (await ended(agent)).reply == "Read."


@pytest.mark.parametrize("left", [None, 70])
async def test_the_budget_is_what_is_left_to_spend(left) -> None:
    read = []

    async def agent(turn: Turn) -> None:
        read.append(turn.budget)

    life = AgentLife(agent)
    life.tokens_left = left
    await life.run()
    assert read == [Budget(left, None)]


async def test_a_function_that_is_called_again_reads_what_it_has_answered() -> None:
    read = []

    async def agent(turn: Turn) -> None:
        read.append([(each.role, each.text) for each in turn.history])
        if turn.text == "Go":
            life.send(said("m-2", "And more"))
        await turn.stream(f"Re: {turn.text}")

    life = AgentLife(agent)
    await life.run()
    assert read == [[], [("user", "Go"), ("agent", "Re: Go")]]
