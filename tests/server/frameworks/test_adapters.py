"""What holds for all adapters: an agent without its adapter is one sentence that names it."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents import Agent as OpenAIAgent
from google.adk.agents import LlmAgent
from langgraph.graph import START, MessagesState, StateGraph
from pydantic_ai import Agent as PydanticAgent

from a2a_canvas import frameworks
from a2a_canvas.server.agent.loops.agent_function import ADAPTERS, AgentDefinitionError, agent_function
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.tool_sources.framework_extras import EXTRAS


class Reef(LlmAgent):
    """A class of the user's own."""


def graph():
    return StateGraph(MessagesState).add_node("reef", lambda state: state).add_edge(START, "reef").compile()


@pytest.mark.parametrize(
    ("agent", "name", "adapter"),
    [
        (PydanticAgent("test"), "Agent", "pydantic_ai_agent"),
        (OpenAIAgent(name="reef"), "Agent", "openai_agent"),
        (LlmAgent(name="reef"), "LlmAgent", "adk_agent"),
        (Reef(name="reef"), "Reef", "adk_agent"),
        (graph(), "CompiledStateGraph", "langgraph_agent"),
    ],
)
def test_an_agent_without_its_adapter_is_a_sentence_that_names_it(agent, name: str, adapter: str) -> None:
    with pytest.raises(AgentDefinitionError) as found:
        agent_function(agent)
    sentence = f"{name} is not a function. Pass it to a2a_canvas.frameworks.{adapter}, and use what that returns."
    assert str(found.value) == sentence


def test_serve_says_so_and_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "agent.py").write_text('from pydantic_ai import Agent\n\nagent = Agent("test")\n')
    assert main(["serve", str(tmp_path), "--check"]) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path}/agent.py: Agent is not a function. Pass it to a2a_canvas.frameworks.pydantic_ai_agent" in said


def test_every_framework_has_its_adapter() -> None:
    assert ADAPTERS.keys() == EXTRAS.keys()
    assert {name for name in frameworks.__all__ if name.endswith("_agent")} <= {*ADAPTERS.values()}
