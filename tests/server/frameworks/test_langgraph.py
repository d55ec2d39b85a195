"""A graph of LangGraph behind the canvas: what this framework alone has."""

import asyncio
from dataclasses import dataclass, field
from operator import add
from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from a2a_canvas import Turn
from a2a_canvas.server.agent.events import (
    State,
    StatusChanged,
    ToolFailed,
    ToolSucceeded,
)
from a2a_canvas.server.agent.loops.agent_function import AgentDefinitionError
from a2a_canvas.server.agent.loops.edit_function import NOT_IN_EDITS
from a2a_canvas.server.frameworks.canvas_tools import HOW_TO_WRITE, NO_QUESTIONS
from a2a_canvas.server.frameworks.langgraph import canvas_tools, langgraph_agent
from tests.fakes import said
from tests.server.agent.edit.operation_harness import TEXT
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.agent.loops.edit_harness import edited
from tests.server.frameworks.scripted_agents import (
    Answer,
    Call,
    GraphModel,
    Request,
    ended_nodes,
    graph_reef,
    graph_results,
    graph_say,
    run,
)

REPORT = {"artifact_id": "report", "name": "report.md", "parts": [{"kind": "text", "text": "# Tides\nHigh and low."}]}
UPDATE = {"append": False, "artifact": REPORT}


@dataclass
class Trip:
    """A graph of three nodes, of which the second asks, and a subgraph in the third; it counts the runs."""

    ran: list[str] = field(default_factory=list)

    def agent(self, **options):
        class Notes(MessagesState):
            place: str

        async def plan(state: Notes):
            self.ran.append("plan")
            return {"messages": [await GraphModel(answer=lambda messages: graph_say("A plan.")).ainvoke("plan")]}

        async def choose(state: Notes):
            self.ran.append("choose")
            await GraphModel(answer=lambda messages: graph_say("I need to know.")).ainvoke("choose")
            place = interrupt({"question": "Where to?"})
            self.ran.append("chosen")
            return {"place": place}

        async def look(state: Notes):
            self.ran.append("look")
            return {"messages": [await GraphModel(answer=lambda messages: graph_say("I look.")).ainvoke("look")]}

        async def tell(state: Notes):
            self.ran.append("tell")
            return {"messages": [AIMessage(f"Go to {state['place']}.")]}

        inner = StateGraph(Notes).add_sequence([look, tell]).add_edge(START, "look").compile()
        outer = StateGraph(Notes).add_sequence([plan, choose, ("inner", inner)]).add_edge(START, "plan")
        return langgraph_agent(outer.compile(name="trip"), **options)


async def test_an_interrupt_is_a_question_and_its_answer_what_it_returns() -> None:
    trip = Trip()
    life = AgentLife(trip.agent())
    await life.run()
    assert (life.record.state, life.reply) == (State.INPUT_REQUIRED, "Where to?")
    assert life.said[0] == "A plan.\n\nI need to know."
    life.answer("Maui")
    await life.run()
    assert (life.record.state, life.said) == (
        State.COMPLETED,
        ["A plan.\n\nI need to know.", "Where to?", "I look.\n\nGo to Maui."],
    )
    assert trip.ran == ["plan", "choose", "choose", "chosen", "look", "tell"]


async def test_what_an_interrupt_returns_can_be_made_of_the_answer() -> None:
    life = AgentLife(Trip().agent(resume=lambda value, answer: f"{answer} ({value['question']})"))
    await life.run_to_end()
    assert life.said[-1] == "I look.\n\nGo to yes (Where to?)."


async def test_wherever_a_crash_cuts_it_off_the_answer_reaches_the_node_and_no_node_runs_twice() -> None:
    first = AgentLife(Trip().agent())
    resumed = 0
    for interrupted, cut in await first.run_to_end():
        trip = Trip()
        life = interrupted.crash(cut)
        life.agent = trip.agent()
        if life.record.state.terminal:
            continue
        resumed += 1
        await life.run_to_end()
        life.check()
        assert (life.record.state, life.said) == (first.record.state, first.said)
        for node in ("plan", "chosen", "look", "tell"):
            assert trip.ran.count(node) <= 1
        assert "plan" not in trip.ran or not ended_nodes(interrupted.crash(cut))
    assert resumed > 20


def graph_of(*nodes, state=MessagesState):
    """Nodes that run one after the other."""
    return StateGraph(state).add_sequence(list(nodes)).add_edge(START, nodes[0].__name__).compile()


async def test_its_model_asks_the_user() -> None:
    def script(request: Request) -> Answer:
        if request.results:
            return Answer(f"You said {request.results['q1']}.")
        return Answer(calls=[Call("q1", "ask_user", {"question": "Which reef?"})])

    life = AgentLife(graph_reef(script))
    await life.run()
    assert (life.record.state, life.reply) == (State.INPUT_REQUIRED, "Which reef?")
    life.answer("the north one")
    await life.run()
    assert (life.record.state, life.reply) == (State.COMPLETED, "You said the north one.")
    assert [event.content for event in life.told.of(ToolSucceeded)] == ["the north one"]


async def test_several_interrupts_are_one_question() -> None:
    class Facts(MessagesState):
        facts: Annotated[list[str], add]

    async def where(state: Facts):
        return {"facts": [interrupt("Where?")]}

    async def when(state: Facts):
        return {"facts": [interrupt({"question": "When?"})]}

    async def tell(state: Facts):
        return {"messages": [AIMessage(" and ".join(state["facts"]))]}

    builder = StateGraph(Facts).add_node("where", where).add_node("when", when).add_node("tell", tell)
    builder.add_edge(START, "where").add_edge(START, "when").add_edge(["where", "when"], "tell")
    life = AgentLife(langgraph_agent(builder.compile()))
    await life.run()
    assert sorted(life.reply.splitlines()) == ["When?", "Where?"]
    life.answer("now, here")
    await life.run()
    assert life.reply == "now, here and now, here"


async def test_a_breakpoint_of_the_graph_is_a_question() -> None:
    async def first(state: MessagesState):
        return {"messages": [AIMessage("One.")]}

    async def second(state: MessagesState):
        return {"messages": [AIMessage("Two.")]}

    builder = StateGraph(MessagesState).add_sequence([first, second]).add_edge(START, "first")
    life = AgentLife(langgraph_agent(builder.compile(interrupt_before=["second"])))
    await life.run()
    assert (life.said, life.reply) == (["One.", life.reply], "The agent has paused. May it continue?")
    life.answer("yes")
    await life.run()
    assert life.reply == "Two."


async def test_what_a_node_writes_to_its_stream_is_progress() -> None:
    async def work(state: MessagesState):
        get_stream_writer()("Looking at tides…")
        await asyncio.sleep(0)
        return {"messages": [AIMessage("Done.")]}

    life = await run(langgraph_agent(graph_of(work)))
    assert "Looking at tides…" in [
        event.message.text for event in life.told.of(StatusChanged) if event.message and event.message.label
    ]


async def test_the_tokens_of_its_models_are_counted() -> None:
    used = UsageMetadata(input_tokens=7, output_tokens=3, total_tokens=10)

    async def work(state: MessagesState):
        chunks = [*graph_say("Done."), AIMessageChunk("", usage_metadata=used)]
        return {"messages": [await GraphModel(answer=lambda messages: chunks).ainvoke("work")]}

    life = await run(langgraph_agent(graph_of(work)))
    assert life.spent == (7, 3)


async def test_a_call_that_fails_is_a_failed_call() -> None:
    def script(request: Request) -> Answer:
        return Answer("Never mind.") if request.results else Answer(calls=[Call("s1", "nothing", {})])

    life = await run(graph_reef(script))
    assert life.said == ["Never mind."]
    assert ["is not a valid tool" in event.error for event in life.told.of(ToolFailed)] == [True]


async def test_a_model_that_does_not_stream_is_shown_whole() -> None:
    class Whole(GraphModel):
        async def _astream(self, messages, stop=None, run_manager=None, **options):
            raise NotImplementedError
            yield

        async def _agenerate(self, messages, stop=None, run_manager=None, **options) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=self.answer(messages))])

    def answer(messages: list[BaseMessage]) -> AIMessage:
        if graph_results(messages):
            return AIMessage("Written.")
        return AIMessage("I write.", tool_calls=[ToolCall(name="artifact_update", args=UPDATE, id="u1")])

    model = Whole(answer=answer, disable_streaming=True)

    async def agent(state: MessagesState):
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("agent", agent).add_node("tools", ToolNode(canvas_tools()))
    builder.add_edge(START, "agent").add_conditional_edges("agent", tools_condition).add_edge("tools", "agent")
    life = await run(langgraph_agent(builder.compile()))
    assert (life.said, life.texts()) == (["I write.", "Written."], {"report": "# Tides\nHigh and low."})


async def test_a_node_that_raises_fails_the_task() -> None:
    async def broken(state: MessagesState):
        raise ConnectionError("secret")

    life = await run(langgraph_agent(graph_of(broken)))
    assert life.record.state is State.FAILED
    assert "secret" not in life.reply


async def test_a_limit_of_the_user_ends_it_between_nodes() -> None:
    requests = []

    def stop_after_first(request: Request) -> Answer:
        requests.append(request)
        life.stop = "Stopped before the end."
        return Answer("I look.", [Call("s1", "artifact_list", {})])

    life = AgentLife(graph_reef(stop_after_first))
    await life.run()
    assert (life.record.state, life.reply, len(requests)) == (State.FAILED, "Stopped before the end.", 1)


def test_a_graph_that_cannot_be_the_loop_is_one_sentence() -> None:
    async def work(state: MessagesState):
        return {}

    builder = StateGraph(MessagesState).add_sequence([work]).add_edge(START, "work")
    with pytest.raises(AgentDefinitionError, match=r"StateGraph is not a compiled graph\. Pass what"):
        langgraph_agent(builder)
    with pytest.raises(AgentDefinitionError, match=r"has a checkpointer\. Compile it without one"):
        langgraph_agent(builder.compile(checkpointer=InMemorySaver()))


async def test_a_synchronous_node_may_ask_and_run_a_subgraph() -> None:
    def inner_node(state: MessagesState):
        return {"messages": [AIMessage("From below.")]}

    inner = StateGraph(MessagesState).add_sequence([inner_node]).add_edge(START, "inner_node").compile()

    def outer_node(state: MessagesState):
        answer = interrupt("Which reef?")
        return {"messages": [*inner.invoke({"messages": [answer]})["messages"][1:]]}

    life = AgentLife(langgraph_agent(graph_of(outer_node)))
    await life.run()
    assert life.reply == "Which reef?"
    life.answer("north")
    await life.run()
    assert (life.record.state, life.reply) == (State.COMPLETED, "From below.")


class Writers:
    """A graph whose nodes write an artifact each with the turn, at the same time; the second one asks, too."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def agent(self):
        async def one(state: MessagesState, runtime: Runtime[Turn]):
            self.ran.append("one")
            for piece in ("a", "b", "c"):
                await runtime.context.artifact("one").append(piece)
                await asyncio.sleep(0)

        async def two(state: MessagesState, runtime: Runtime[Turn]):
            await runtime.context.artifact("two").append("d")
            answer = interrupt("Go on?")
            self.ran.append("two")
            await runtime.context.artifact("two").append(answer)

        builder = StateGraph(MessagesState, context_schema=Turn).add_node("one", one).add_node("two", two)
        builder.add_edge(START, "one").add_edge(START, "two")
        return langgraph_agent(builder.compile(), context=lambda turn: turn)


async def test_wherever_a_crash_cuts_it_off_what_nodes_write_with_the_turn_is_written_once() -> None:
    first = AgentLife(Writers().agent())
    for interrupted, cut in await first.run_to_end():
        writers = Writers()
        life = interrupted.crash(cut)
        life.agent = writers.agent()
        if not life.record.state.terminal:
            await life.run_to_end()
            life.check()
            assert (life.record.state, life.texts()) == (State.COMPLETED, {"one": "abc", "two": "dyes"})
            assert max(map(writers.ran.count, writers.ran), default=0) <= 1


async def test_a_question_of_the_turn_in_a_node_is_an_error_that_says_so() -> None:
    async def node(state: MessagesState, runtime: Runtime[Turn]):
        with pytest.raises(RuntimeError, match="ask was called in"):
            await runtime.context.ask("Sure?")
        return {"messages": [AIMessage("Not asked.")]}

    builder = StateGraph(MessagesState, context_schema=Turn).add_sequence([node]).add_edge(START, "node")
    assert (await run(langgraph_agent(builder.compile(), context=lambda turn: turn))).reply == "Not asked."


async def test_an_edit_is_the_last_answer_of_the_graph() -> None:
    async def think(state: MessagesState):
        assert "Two." in str(state["messages"][-1].content)
        return {"messages": [AIMessage("I think about it.")]}

    async def write(state: MessagesState):
        chunks = graph_say("The second.")
        return {"messages": [await GraphModel(answer=lambda messages: chunks).ainvoke("write")]}

    done = await edited(langgraph_agent(graph_of(think, write)).editor)
    assert (await done.doc()).text == TEXT.replace("Two.", "The second.")


async def test_an_edit_of_a_graph_that_asks_fails_with_a_sentence() -> None:
    async def think(state: MessagesState):
        interrupt("Sure?")

    done = await edited(langgraph_agent(graph_of(think)).editor)
    assert (done.end.state, done.end.message.text) == (State.FAILED, NO_QUESTIONS)


async def test_an_edit_of_a_graph_that_writes_a_document_fails_with_a_sentence(caplog) -> None:
    async def think(state: MessagesState, runtime: Runtime[Turn]):
        await runtime.context.artifact("report").append("High.")

    done = await edited(langgraph_agent(graph_of(think), context=lambda turn: turn).editor)
    assert (done.end.state, done.end.message.text) == (State.FAILED, NOT_IN_EDITS)
    assert "A change of artifact 'report' is not allowed" in caplog.text


async def test_its_model_reads_how_to_write_with_our_tools_only() -> None:
    read = []

    async def think(state: MessagesState):
        read.extend(state["messages"])
        return {"messages": [AIMessage("Yes.")]}

    await run(langgraph_agent(graph_of(think)))
    assert [each.type for each in read] == ["human"]
    told = {each.name: HOW_TO_WRITE in each.description for each in canvas_tools()}
    assert [name for name, is_told in told.items() if is_told] == ["artifact_update"]


class Tide(TypedDict):
    port: str
    level: str


async def measure(state: Tide):
    return {"level": f"high in {state['port']}"}


def measuring():
    graph = StateGraph(Tide).add_node("measure", measure).add_edge(START, "measure").compile()
    return langgraph_agent(graph, input=lambda turn: {"port": turn.text}, output=lambda state: state["level"])


async def test_a_graph_without_messages_says_what_output_makes_of_its_last_state() -> None:
    first = AgentLife(measuring())
    for interrupted, cut in await first.run_to_end():
        life = interrupted.crash(cut)
        life.agent = measuring()
        await life.run_to_end()
        assert (life.record.state, life.reply) == (State.COMPLETED, first.reply)
    assert first.reply.startswith("high in ")
    assert measuring().editor is None


def test_a_graph_without_messages_needs_an_input() -> None:
    graph = StateGraph(Tide).add_node("measure", measure).add_edge(START, "measure").compile()
    with pytest.raises(AgentDefinitionError, match=r"has no messages.* Pass input"):
        langgraph_agent(graph)


async def test_a_state_that_is_too_large_fails_with_the_limit() -> None:
    async def work(state: MessagesState):
        return {"messages": [AIMessage("word " * 1000)]}

    life = AgentLife(langgraph_agent(graph_of(work)))
    life.state_bytes = 5000
    await life.run()
    assert life.record.state is State.FAILED
    assert "--max-state-bytes" in life.reply


async def test_a_message_that_comes_while_it_works_continues_the_graph() -> None:
    async def work(state: MessagesState):
        texts = [str(each.content) for each in state["messages"] if each.type != "system"]
        if len(texts) == 1:
            life.send(said("m-2", "more"))
        return {"messages": [AIMessage(", ".join(texts))]}

    life = AgentLife(langgraph_agent(graph_of(work)))
    await life.run()
    life.check()
    assert life.said == ["Go", "Go, Go, more"]


async def test_nodes_that_run_at_the_same_time_are_each_recorded_when_they_end() -> None:
    def agent(ran: list[str]):
        def node(name: str):
            async def run_node(state: MessagesState):
                ran.append(name)
                chunks = graph_say(f"{name} says much. " * (3 if name == "slow" else 1))
                return {"messages": [await GraphModel(answer=lambda messages: chunks).ainvoke(name)]}

            return run_node

        builder = StateGraph(MessagesState)
        for name in ("fast", "slow"):
            builder.add_node(name, node(name)).add_edge(START, name)
        return langgraph_agent(builder.compile())

    first = AgentLife(agent([]))
    cuts = await first.run_to_end()
    for interrupted, cut in cuts:
        ran: list[str] = []
        life = interrupted.crash(cut)
        life.agent = agent(ran)
        if life.record.state.terminal:
            continue
        ended = ended_nodes(life)
        await life.run_to_end()
        life.check()
        assert len(ran) == 2 - ended
        [reply] = life.said
        assert (reply.count("fast says"), reply.count("slow says")) == (1, 3)
