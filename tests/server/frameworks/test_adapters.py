"""What holds for all adapters: what their models read, how their tasks end, and what is wrong or unknown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from threading import Event

import pytest
from agents import Agent as OpenAIAgent
from agents import function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai.types import Content, ExecutableCode, Language, Part
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from openai.types.responses import ResponseWebSearchCallSearchingEvent
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import NativeToolCallPart
from pydantic_ai.models.function import FunctionModel

from a2a_canvas import frameworks
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.loops.agent_function import ADAPTERS, AgentDefinitionError, agent_function
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.frameworks.canvas_tools import RESERVED, log_unknown
from a2a_canvas.server.tool_sources.framework_extras import EXTRAS
from a2a_canvas.testing import agent as served
from tests.docs.pages import page
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.frameworks.folder_tools import Berths


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


@pytest.mark.parametrize(
    ("adapter", "agent", "right"),
    [
        (frameworks.pydantic_ai_agent, OpenAIAgent(name="reef"), "openai_agent"),
        (frameworks.openai_agent, LlmAgent(name="reef"), "adk_agent"),
        (frameworks.adk_agent, PydanticAgent("test"), "pydantic_ai_agent"),
        (frameworks.langgraph_agent, OpenAIAgent(name="reef"), "openai_agent"),
        (frameworks.pydantic_ai_agent, "reef", ""),
    ],
)
def test_an_agent_of_another_framework_is_a_sentence_that_names_its_adapter(adapter, agent, right: str) -> None:
    with pytest.raises(AgentDefinitionError) as found:
        adapter(agent)
    assert type(agent).__name__ in str(found.value)
    assert f"Pass it to a2a_canvas.frameworks.{right}, and use" in str(found.value) or not right


def test_every_framework_has_its_adapter() -> None:
    assert ADAPTERS.keys() == EXTRAS.keys()
    assert {name for name in frameworks.__all__ if name.endswith("_agent")} <= {*ADAPTERS.values()}


# ------------------------------------------------------------------------- what their models read


Answer = Callable[[str], Awaitable[str]]
"""A model: the answer to all that it reads."""


def pydantic_model(answer: Answer):
    async def model(messages, info) -> AsyncIterator:
        yield await answer(str(messages))

    return frameworks.pydantic_ai_agent(PydanticAgent(FunctionModel(stream_function=model)))


def openai_model(answer: Answer):
    async def respond(call):
        return [assistant_message(await answer(str(call.input)))]

    return frameworks.openai_agent(OpenAIAgent(name="reef", model=ScriptedModel([ModelStep.respond(respond)] * 2)))


def adk_model(answer: Answer):
    class Model(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False) -> AsyncIterator:
            text = await answer(str([each.model_dump() for each in llm_request.contents]))
            yield LlmResponse(content=Content(role="model", parts=[Part(text=text)]))

    return frameworks.adk_agent(LlmAgent(name="reef", model=Model(model="fake")))


def graph_of(answer):
    async def node(state: MessagesState):
        return {"messages": [await answer(state["messages"])]}

    return StateGraph(MessagesState).add_sequence([node]).add_edge(START, "node").compile()


def graph_model(answer: Answer):
    async def say(messages) -> AIMessage:
        return AIMessage(await answer(str(messages)))

    return frameworks.langgraph_agent(graph_of(say))


models = pytest.mark.parametrize("model", [pydantic_model, openai_model, adk_model, graph_model])


class Reader:
    """Keeps what it reads."""

    def __init__(self) -> None:
        self.read: list[str] = []

    async def answer(self, said: str) -> str:
        self.read.append(said)
        return "Read."


@models
def test_its_model_reads_files_with_their_names_and_the_tasks_before(model) -> None:
    reader = Reader()
    with served(loop=model(reader.answer)) as it:
        assert it.send("first", files={"reef.png": b"\x89PNG"}).text == "Read."
        assert it.send("second").text == "Read."
    for said in reader.read:
        assert all(text in said for text in ("first", '[File "reef.png", image/png]'))
        assert "x89PNG" in said or "iVBORw==" in said
    assert [text in reader.read[1] for text in ("Read.", "second")] == [True, True]


@pytest.mark.parametrize("model", [pydantic_model, openai_model, adk_model])
def test_a_large_file_is_read_once_and_its_name_is_kept(model) -> None:
    reader = Reader()
    with served(loop=model(reader.answer), max_state_bytes=100_000) as it:
        it.send("first", files={"reef.png": b"\x89PNG" + bytes(40_000)})
        it.send("second")
    assert [len(said) > 40_000 for said in reader.read] == [True, False]
    assert all(text in reader.read[1] for text in ("first", '[File "reef.png", image/png]', "Read.", "second"))


# ------------------------------------------------------------------------- names of tools


def water() -> str:
    """High water."""
    return "5.9 m"


def ask_user() -> str:
    """Ask."""
    return ""


def pydantic_tools(*tools):
    return frameworks.pydantic_ai_agent(PydanticAgent("test", tools=tools))


def openai_tools(*tools):
    model = ScriptedModel([[assistant_message("High.")] for _ in range(2)])
    return frameworks.openai_agent(OpenAIAgent(name="reef", model=model, tools=[function_tool(each) for each in tools]))


def adk_tools(*tools):
    return frameworks.adk_agent(LlmAgent(name="reef", model=Calculating(model="fake"), tools=[*tools]))


with_tools = pytest.mark.parametrize("make", [pydantic_tools, openai_tools, adk_tools])


@with_tools
def test_a_tool_with_the_name_of_one_of_ours_is_a_sentence_before_the_start(make) -> None:
    with pytest.raises(AgentDefinitionError, match=r"^a2a-canvas adds the tool ask_user to the agent, which has one\."):
        make(water, ask_user)


@with_tools
async def test_a_tool_with_the_name_of_one_of_the_folder_is_a_sentence_for_user_and_log(make, caplog) -> None:
    life = AgentLife(make(water), tools=Berths().tools)
    await life.run()
    sentence = "The agent has two tools named water. Its operator must rename one of them."
    assert (life.record.state, life.reply) == (State.FAILED, sentence)
    assert sentence in caplog.messages


def test_the_page_names_the_tools_that_are_taken() -> None:
    [names] = re.findall(r"the model gets\s(.*?),\s+and the tools of the agent folder", page("own-loop"), re.DOTALL)
    assert {*re.findall(r"`(\w+)`", names)} == RESERVED


async def test_adk_does_not_log_each_request_of_a_model_that_counts_no_tokens(caplog) -> None:
    await AgentLife(adk_tools()).run()
    assert "token usage" not in caplog.text


# ------------------------------------------------------------------------- how a task ends


@models
def test_a_failure_of_the_model_is_a_failed_task_that_gives_nothing_away(model) -> None:
    async def fail(said: str) -> str:
        raise ValueError("the key is 1234")

    with served(loop=model(fail)) as it:
        answer = it.send("Go")
    assert (answer.state, "operator's log" in answer.text, "1234" in answer.text) == ("failed", True, False)


@models
def test_a_cancelled_task_cancels_the_request_to_the_model(model) -> None:
    begun, ended = Event(), Event()

    async def hang(said: str) -> str:
        begun.set()
        try:
            await asyncio.Future()
        finally:
            ended.set()
        return ""

    with served(loop=model(hang)) as it:
        task = it.begin("Go")
        assert begun.wait(20)
        assert it.cancel(task).state == "canceled"
        assert ended.wait(20)


# ------------------------------------------------------------------------- events that an adapter does not know


async def search(messages, info) -> AsyncIterator:
    yield {0: NativeToolCallPart("web_search", {"query": "tides"})}
    yield "High."


async def show_video(messages) -> AIMessage:
    return AIMessage([{"type": "video", "url": "u"}, {"type": "text", "text": "High."}])


class Searching(ScriptedModel):
    async def stream_response(self, *given, **more) -> AsyncIterator:
        kind = "response.web_search_call.searching"
        yield ResponseWebSearchCallSearchingEvent(item_id="w1", output_index=0, sequence_number=0, type=kind)
        async for event in super().stream_response(*given, **more):
            yield event


class Calculating(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False) -> AsyncIterator:
        code = Part(executable_code=ExecutableCode(code="1 + 1", language=Language.PYTHON))
        yield LlmResponse(content=Content(role="model", parts=[code, Part(text="High.")]))


@pytest.mark.parametrize(
    ("agent", "event"),
    [
        (
            lambda: frameworks.pydantic_ai_agent(PydanticAgent(FunctionModel(stream_function=search))),
            "builtin-tool-call",
        ),
        (
            lambda: frameworks.openai_agent(
                OpenAIAgent(name="reef", model=Searching([[assistant_message("High.")] for _ in range(2)]))
            ),
            "response.web_search_call.searching",
        ),
        (
            lambda: frameworks.adk_agent(LlmAgent(name="reef", model=Calculating(model="fake"))),
            "executable_code",
        ),
        (
            lambda: frameworks.langgraph_agent(graph_of(show_video)),
            "video",
        ),
    ],
)
async def test_an_event_that_an_adapter_does_not_know_is_logged_once(
    agent, event: str, caplog: pytest.LogCaptureFixture
) -> None:
    log_unknown.cache_clear()
    made = agent()
    for _ in range(2):
        life = AgentLife(made)
        await life.run()
        assert life.said == ["High."]
    assert [event in message for message in caplog.messages if "are skipped" in message] == [True]
