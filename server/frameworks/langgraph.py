"""A graph of LangGraph as the loop. Only the modules that are called after langgraph import it.

Rule 1: the unit is a run of a node. What it shows is recorded with its writes, in one transaction, when the graph says
        that it has ended; after a crash the graph continues from its newest checkpoint.
Rule 2: interrupts are asked outside the graph's run, all of them at once. A node that was interrupted runs again from
        its start, and what it had shown is not shown again, as far as it is the same.
Rule 3: a message that a node returns and that is shown already, by the node or by its subgraph, is not shown again.
"""

from __future__ import annotations

import json
from asyncio import Event
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from functools import partial
from typing import Any

from langchain_core import messages as m
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langchain_core.tools import BaseTool
from langgraph.channels.delta import DeltaChannel
from langgraph.config import get_stream_writer
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from langgraph.types import Command, Interrupt, interrupt

from a2a_canvas.server.agent.loops.agent_function import (
    AgentDefinitionError,
    AgentFunction,
    adapter_advice,
    adapter_of,
)
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.loops.streamed_calls import ARTIFACT_TOOLS
from a2a_canvas.server.frameworks import canvas_tools as ours
from a2a_canvas.server.frameworks.langgraph_checkpoints import TurnCheckpoints
from a2a_canvas.server.frameworks.langgraph_messages import NodeRun, message_of, show_last_answer
from a2a_canvas.tools.artifact_update import artifact_update
from a2a_canvas.tools.ask_user import ask_user
from a2a_canvas.tools.functions.function_tool import AnyTool
from a2a_canvas.tools.functions.results import ToolError
from a2a_canvas.tools.tool import to_json

Graph = Pregel[Any, Any, Any, Any]

_OURS = {tool.name: tool for tool in (*ARTIFACT_TOOLS.values(), ask_user)}
_TURN: ContextVar[Turn] = ContextVar("turn")


def langgraph_agent(
    graph: Graph,
    *,
    input: Callable[[Turn], Any] | None = None,
    output: Callable[[Any], str] | None = None,
    resume: Callable[[Any, str], Any] = lambda value, answer: answer,
    context: Any = None,
    config: RunnableConfig | None = None,
) -> AgentFunction:
    """A compiled graph, for `create_app(loop=…)`, or as `agent` in agent.py.

    Args:
        input: makes the graph's input of a turn; by default, the user's message is added to the state's `messages`.
        output: makes text of the reply of the graph's last state, after what its messages show; by default, none.
        resume: makes what `interrupt` returns of the value that it was given and the user's answer; by default, the
            answer.
        context: of the graph's runtime; or a function of the turn that returns it.
        config: for each run of the graph, for example its `recursion_limit`.

    Raises:
        AgentDefinitionError: the graph is not compiled, keeps its checkpoints elsewhere, or has no `messages` to which
            the user's message can be added.

    >>> from langgraph.graph import MessagesState, StateGraph
    >>> builder = StateGraph(MessagesState).add_node("answer", lambda state: {"messages": "Hello."})
    >>> reef = langgraph_agent(builder.set_entry_point("answer").compile(name="reef"))
    """
    if not isinstance(graph, Pregel):
        otherwise = "Pass what its compile() returns."
        advice = otherwise if adapter_of(graph) == "langgraph_agent" else adapter_advice(graph, otherwise)
        raise AgentDefinitionError(f"{type(graph).__name__} is not a compiled graph. {advice}")
    if graph.checkpointer:
        raise AgentDefinitionError("The graph has a checkpointer. Compile it without one: a2a-canvas brings its own.")
    if any(isinstance(channel, DeltaChannel) for channel in graph.channels.values()):
        raise AgentDefinitionError("The graph has a DeltaChannel, which needs every checkpoint. Use a reducer instead.")
    if input is None and isinstance(graph, CompiledStateGraph) and "messages" not in graph.channels:
        raise AgentDefinitionError(_NO_MESSAGES)
    make_context = context if callable(context) else lambda turn: context

    async def run(turn: Turn) -> None:
        _TURN.set(turn)
        options = {"context": make_context(turn), "subgraphs": True, "version": "v2"}
        await _GraphRun(turn, graph, resume, config, options).run(input, output)

    async def edit(turn: Turn) -> None:
        _TURN.set(turn)
        modes: Any = ["messages", "updates"]
        parts: Any = graph.astream(
            _edit_messages(turn),
            config,
            stream_mode=modes,
            context=make_context(turn),
            subgraphs=True,
            version="v2",
        )
        async with aclosing(parts):
            await show_last_answer(turn, _messages_of_edit(parts))

    return AgentFunction(graph.get_name(), run, editor=None if input or output else edit, package="langgraph")


class _GraphRun:
    """The graph, for one message, to its end.

    Args:
        options: of `astream`.
    """

    def __init__(
        self,
        turn: Turn,
        graph: Graph,
        resume: Callable[[Any, str], Any],
        config: RunnableConfig | None,
        options: Mapping[str, Any],
    ) -> None:
        self._turn = turn
        self._saver = TurnCheckpoints(turn, _wait_until_shown)
        self._graph = graph.copy({"checkpointer": self._saver})
        self._resume = resume
        self._options = options
        self._config: Any = merge_configs(
            config,
            {"callbacks": [_NodeContexts(turn, self._saver)], "configurable": {"thread_id": turn.thread_id}},
        )
        self._nodes: dict[str, NodeRun] = {}
        self._seen: set[str | None] = set()

    async def run(self, make_input: Callable[[Turn], Any] | None, make_output: Callable[[Any], str] | None) -> None:
        await self._saver.hold()
        recorded = self._turn.model.resume()
        questions = self._recall(recorded)
        given = None if recorded else make_input(self._turn) if make_input else await self._messages()
        for asked in questions:
            given = await self._ask(asked)
        while asked := await self._stream(given):
            for key in tuple(self._nodes):  # they are interrupted
                await self._record_node(key, interrupted=True)
            await self._turn.model.checkpoint(f"interrupts {len(questions)}", partial(self._wait, asked))
            questions.append(asked)
            given = await self._ask(asked)
        if make_output:
            await self._turn.say(make_output((await self._graph.aget_state(self._config)).values))
        await self._saver.complete()

    def _recall(self, recorded: Mapping[str, Any]) -> list[list[Any]]:
        """Take over what earlier runs have recorded; returns the questions that they have asked."""
        for key, value in recorded.items():
            if isinstance(value, dict):  # of a run of a node
                self._seen |= {*value["messages"]}
                if value["interrupted"]:
                    self._nodes[key] = NodeRun(self._turn, value["interrupted"])
        return [value for value in recorded.values() if isinstance(value, list)]

    async def _messages(self) -> dict[str, Any]:
        begun = await self._saver.aget_tuple(self._config)
        earlier = [] if begun else self._turn.history.pairs()
        # A message with the id of an earlier one replaces it.
        text = await ours.instructions_for(self._turn, how_to_write="")
        instructions = [m.SystemMessage(text, id="a2a-canvas")] if text else []
        return {"messages": [*instructions, *earlier, message_of(self._turn)]}

    async def _stream(self, given: Any) -> list[Any]:
        """Run the graph until it ends or is interrupted; returns what it asks."""
        asked: list[Any] = []
        modes: Any = ["messages", "updates", "custom", "tasks"]
        parts: Any = self._graph.astream(given, self._config, stream_mode=modes, durability="sync", **self._options)
        async with aclosing(parts):
            async for part in parts:
                match part:
                    case {"type": "messages", "data": (message, about)}:
                        await self._show(message, self._saver.node_of(about["langgraph_checkpoint_ns"]))
                    case {
                        "type": "tasks",
                        "ns": ns,
                        "data": {"id": key, "error": None, "result": _, "interrupts": stops},
                    }:
                        if "|".join(ns) in self._saver.namespaces:
                            await self._end_node(key, interrupted=bool(stops))
                    case {"type": "updates", "ns": (), "data": {"__interrupt__": interrupts}}:
                        asked += [_as_json(each) for each in interrupts] or [["", None]]
                    case {"type": "custom", "data": Event() as event}:
                        event.set()
                    case {"type": "custom", "data": value}:
                        await self._turn.progress(value if isinstance(value, str) else to_json(value))
                    case _:
                        pass  # the start of a node, or what it has changed
        await self._turn.model.undo_previews()
        return asked

    async def _show(self, message: Any, key: str) -> None:
        if message.id not in self._seen:  # rule 3
            with self._turn.model.within(key):
                await self._nodes.setdefault(key, NodeRun(self._turn)).show(message)

    async def _end_node(self, key: str, *, interrupted: bool) -> None:
        if interrupted:  # recorded with the question
            self._nodes.setdefault(key, NodeRun(self._turn))
        else:
            await self._record_node(key)
            await self._turn.check_limits()

    async def _record_node(self, key: str, *, interrupted: bool = False) -> None:
        node = self._nodes.pop(key, NodeRun(self._turn))
        seen = [] if interrupted else node.messages
        self._seen |= {*seen}

        async def record() -> dict[str, Any]:
            if not interrupted:
                await self._saver.commit(key)
            return {"messages": seen, "interrupted": "".join(node.shown) if interrupted else ""}

        await self._turn.model.checkpoint(key, record, calls=node.calls, results=node.results)
        for name in [each for each in node.calls.values() if each not in _OURS][:1]:
            await self._turn.progress(f"Running {name}…")

    async def _wait(self, asked: list[Any]) -> list[Any]:
        await self._saver.wait()
        return asked

    async def _ask(self, asked: list[Any]) -> Command[Any]:
        answers = await ours.ask_all(self._turn, [_pending_call(key, value) for key, value in asked])
        resumed = {key: self._resume(value, each.text) for (key, value), each in zip(asked, answers, strict=True)}
        return Command(resume={key: value for key, value in resumed.items() if key})


class _NodeContexts(BaseCallbackHandler):
    """Attributes what the code of a node does with the turn to the run of the node."""

    run_inline = True
    ignore_llm = True  # else it would be called for each token

    def __init__(self, turn: Turn, saver: TurnCheckpoints) -> None:
        self._turn = turn
        self._saver = saver

    def on_chain_start(self, *args: Any, metadata: dict[str, Any] | None = None, **kwargs: Any) -> None:
        if metadata and kwargs.get("name") == metadata.get("langgraph_node"):
            self._turn.model.enter(self._saver.node_of(metadata["langgraph_checkpoint_ns"]))


def canvas_tools() -> list[BaseTool]:
    """Tools to bind to a model and to put into a `ToolNode`: those that write artifacts, and `ask_user`.

    Called in a node, it also returns the tools of the agent folder.
    """
    turn = _TURN.get(None)
    return [
        _CanvasTool(name=tool.name, description=_describe(tool), args_schema=dict(tool.input_schema))
        for tool in (ours.offered_tools(turn) if turn else _OURS.values())
    ]


def _describe(tool: AnyTool | ours.OfferedTool) -> str:
    """Its description, and how to write: only a model with the tool must know it."""
    return f"{tool.description}\n\n{ours.HOW_TO_WRITE}" if tool.name == artifact_update.name else tool.description


class _CanvasTool(BaseTool):
    """A tool of ours, or of the agent folder, which carries out a call of the model in the turn that runs."""

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> m.ToolMessage:
        call_id, given = input["id"], input["args"]
        tools = {each.name: each for each in ours.offered_tools(_TURN.get())}
        if self.name not in tools:
            content = _NOT_IN_EDITS
        elif tools[self.name].asks:
            content = str(interrupt(given))
        else:
            if tools[self.name].needs_approval:
                interrupt({"a2a-canvas: approve": [call_id, self.name, given]})
            with _TURN.get().model.within(""):  # its call is a step
                content = await tools[self.name].call(call_id, given)
        return m.ToolMessage(content, name=self.name, tool_call_id=call_id)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Run the graph as langgraph_agent does, asynchronously.")


_NO_MESSAGES = (
    "The graph's state has no messages, to which the user's message is added. Pass input, a function of the turn that "
    "returns the graph's input."
)
_NOT_IN_EDITS = "This tool cannot be used now: reply with the new text of the passage alone."


async def _wait_until_shown() -> None:
    """Wait until what a subgraph has streamed is shown: the stream is in order."""
    shown = Event()
    get_stream_writer()(shown)
    await shown.wait()


async def _messages_of_edit(parts: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for part in parts:
        match part:
            case {"type": "messages", "data": (message, _)}:
                yield message
            case {"type": "updates", "data": {"__interrupt__": _}}:
                raise ToolError(ours.NO_QUESTIONS)


def _edit_messages(turn: Turn) -> dict[str, Any]:
    assert turn.edit
    return {"messages": [m.SystemMessage(turn.edit.system_prompt), m.HumanMessage(turn.edit.user_prompt)]}


def _as_json(asked: Interrupt) -> list[Any]:
    return [asked.id, json.loads(json.dumps(asked.value, default=str))]


def _pending_call(key: str, value: Any) -> ours.PendingCall:
    match value:
        case {"a2a-canvas: approve": [call_id, name, given]}:
            return ours.PendingCall(call_id, name, given, approval=True)
        case None:
            question = "The agent has paused. May it continue?"
        case str(text) | {"question": str(text)}:
            question = text
        case _:
            question = to_json(value)
    return ours.PendingCall(key, ask_user.name, {"question": question})
