"""An agent that speaks AG-UI, as our loop: each message is a run of it, whose events become ours.

Rule 1: a run is one step (`Turn.once`): what a run that a crash cut off had shown and written is taken back.
Rule 2: AG-UI cannot take up a run that was cut off, so the task fails then (`AgentFunction.restartable`); with
        `restart`, the run is sent again with the same id. A server that shuts down waits for the run.
        An agent that cannot be reached, so that no run has begun, is tried again.
Rule 3: what the agent has written stays, even if its run fails.
Rule 4: an interrupt is a question to the user, whose answer resumes the agent in the next run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, assert_never
from urllib.parse import urlsplit

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.agent.agui_log import AguiEventError
from a2a_canvas.server.agent.loops.agent_function import AgentDefinitionError, AgentFunction
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.tool_sources.agui_agents import run_mapping as to
from a2a_canvas.server.tool_sources.agui_agents.agui_client import NOT_AGUI, AguiClient
from a2a_canvas.server.tool_sources.agui_agents.documents import (
    DocumentChange,
    DocumentRuleError,
    DocumentRules,
    Documents,
    LongAnswer,
    document_rules,
    with_documents,
)
from a2a_canvas.server.tool_sources.agui_agents.run_input import digest, run_input, wire_messages
from a2a_canvas.server.tool_sources.agui_agents.run_mapping import Interrupt, RunMapping
from a2a_canvas.server.tool_sources.agui_agents.shown_calls import ShownCalls
from a2a_canvas.server.tool_sources.remote_agents.agent_card import host_of
from a2a_canvas.server.tool_sources.remote_agents.reconnection import retry
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import TIMEOUT, Sleep
from a2a_canvas.server.tool_sources.remote_agents.remote_task import MAX_QUESTION, MAX_QUESTIONS
from a2a_canvas.tools.functions.results import ToolError
from a2a_canvas.tools.tool import to_json

logger = logging.getLogger(__name__)

PREFIX = "agui:"
BROKE = "the connection to it broke in the middle of its run"

MAX_KEPT = 1_000_000
"""Characters of JSON of the state and the messages that wait for an answer of the user."""

Answers = Sequence[tuple[Interrupt, str]]


def agui_agent(
    url: str,
    *,
    artifacts: Mapping[str, str] | None = None,
    restart: bool = False,
    tokens: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
) -> AgentFunction:
    """An agent that is served over AG-UI, for `create_app(loop=…)`.

    Args:
        url: of its endpoint, to which `RunAgentInput` is posted.
        artifacts: file names by what becomes the document: `state.KEY` of its state, or `tool.NAME.ARGUMENT`.
        restart: sends a run again that a crash of this server cut off.
        tokens: by host, or `host:port`.
        timeout: seconds that a run may take.

    Raises:
        AgentDefinitionError: the URL or `artifacts` cannot be used.

    >>> agent = agui_agent("http://127.0.0.1:8001/", artifacts={"state.document": "report.md"})
    """
    if not host_of(url):
        raise AgentDefinitionError(f"{url!r} is not the address of an AG-UI agent. Write agui:http://HOST:PORT/PATH")
    try:
        rules = document_rules(artifacts or {})
    except DocumentRuleError as error:
        raise AgentDefinitionError(str(error)) from None
    agent = AguiAgent(AguiClient(url, tokens), _name(url), rules, timeout)
    return AgentFunction(f"the agent at {host_of(url)}", agent.run, restartable=restart, lasts=True, probe=agent.probe)


def _name(url: str) -> str:
    """A name of the agent for documents: the last part of its path, else its host."""
    parts = urlsplit(url)
    return parts.path.rstrip("/").rpartition("/")[2] or parts.hostname or "agent"


@dataclass(frozen=True, slots=True)
class AguiAgent:
    """The loop.

    Attributes:
        name: names documents without a heading.
        timeout: seconds that a run may take.
    """

    client: AguiClient
    name: str
    rules: DocumentRules
    timeout: float = TIMEOUT
    sleep: Sleep = asyncio.sleep

    async def probe(self) -> str:
        """See `AgentFunction.probe`."""
        try:
            await self.client.probe()
        except AgentFault as fault:
            return f"The agent at {self.client.address} cannot be asked: {fault}."
        return ""

    async def run(self, turn: Turn) -> None:
        """Answer one message."""
        messages = wire_messages(turn.thread_id, (*turn.history, turn.message))
        result: dict[str, Any] = {"state": None, "messages": messages}
        answers: Answers = ()
        for number in range(MAX_QUESTIONS + 1):
            result = await self._run_once(turn, number, result, answers)
            if not (interrupts := _interrupts(result)):
                return
            answers = await _ask(turn, interrupts)
        raise ToolError(f"The agent asked {MAX_QUESTIONS + 1} times without an end, so its run has been given up.")

    async def _run_once(self, turn: Turn, number: int, before: Mapping[str, Any], answers: Answers) -> dict[str, Any]:
        async def body() -> dict[str, Any]:
            texts = {name: await turn.artifact(name).read() for name in self.rules.states.values()}
            state = with_documents(before["state"], self.rules, texts)
            run_id = digest(turn.task_id, turn.message.message_id, str(number))
            request = run_input(turn.thread_id, run_id, before["messages"], state, turn.instructions, answers)
            return await AguiRun(self, turn, state, texts, before["messages"]).carry_out(request)

        result = await turn.once("run", body)
        if failed := result.get("failed"):
            raise ToolError(failed)
        return result


def _interrupts(result: Mapping[str, Any]) -> list[Interrupt]:
    return [Interrupt(*each) for each in result["interrupts"]]


async def _ask(turn: Turn, interrupts: Sequence[Interrupt]) -> Answers:
    """Ask all questions of a run as one; its answer answers each."""
    answer = await turn.ask("\n\n".join(each.question[:MAX_QUESTION] for each in interrupts))
    return [(each, answer) for each in interrupts]


@dataclass(slots=True)
class AguiRun:
    """One run: carries out its operations."""

    agent: AguiAgent
    turn: Turn
    state: Any
    texts: Mapping[str, str]
    sent: Sequence[dict[str, Any]]
    result: dict[str, Any] = field(default_factory=dict)
    _mapping: RunMapping = field(init=False)
    _documents: Documents = field(init=False)
    _answer: LongAnswer = field(init=False)
    _calls: ShownCalls = field(init=False)
    _shows_state: bool | None = None  # None: no event had the state yet
    _said: list[str] = field(default_factory=list)  # the messages of the round before the one that is being written
    _skipped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._calls = ShownCalls(self.turn)
        self._mapping = RunMapping(self.state, self.sent)
        self._documents = Documents(self.agent.rules, self.texts)
        self._answer = LongAnswer(self.agent.name)

    async def carry_out(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The interrupts and the state that the run ended with, or why it failed, for a user."""
        try:
            async with asyncio.timeout(self.agent.timeout):
                follow, again = partial(self._follow, request), self.turn.resumed
                await retry(follow, self.turn, self.agent.sleep, persistent=again)
        except AgentFault as fault:
            logger.warning("The run of the agent at %s failed: %s", self.agent.client.address, fault)
            return {"failed": f"The agent could not answer: {fault}."}
        except TimeoutError:
            logger.warning("The run of the agent at %s exceeded %g s", self.agent.client.address, self.agent.timeout)
            return {"failed": f"The agent has not ended its run in {self.agent.timeout:g} seconds, so it was given up."}
        return self.result

    async def _follow(self, request: Mapping[str, Any]) -> None:
        async with aclosing(self.agent.client.events(request)) as events:
            async for event in events:
                for operation in self._map(event):
                    await self._do(operation)
                if self.result:
                    return
        raise AgentFault(BROKE)

    def _map(self, event: Any) -> list[to.Operation]:
        try:
            return self._mapping.take(event)
        except to.MappingError as error:
            logger.warning("The agent at %s sent a malformed event: %s", self.agent.client.address, error)
            raise AgentFault(NOT_AGUI) from None

    async def _do(self, operation: to.Operation) -> None:
        match operation:
            case to.ReplyText() | to.MessageEnd() | to.ReasoningText() | to.ProgressLabel():
                await self._speak(operation)
            case to.CallStart() | to.CallInput() | to.CallEnd() | to.CallResult():
                await self._call(operation)
            case to.NewState():
                await self._take_state(operation)
            case to.TokenUse(tokens_in, tokens_out, cached):
                await self.turn.usage(tokens_in, tokens_out, cached_tokens=cached)
            case to.RunEnd() | to.RunFailure():
                self._end(operation)
            case to.ClientEvent(event):
                await self._send(event)
            case to.SkippedEvent(reason):
                self._log_once(reason)
            case _:
                assert_never(operation)

    async def _speak(self, operation: to.ReplyText | to.MessageEnd | to.ReasoningText | to.ProgressLabel) -> None:
        match operation:
            case to.ReplyText(text):
                await self._say(text)
            case to.MessageEnd():
                await self._end_message()
            case to.ReasoningText(text):
                await self.turn.think(text)
            case to.ProgressLabel(label):
                await self.turn.progress(label)

    def _end(self, operation: to.RunEnd | to.RunFailure) -> None:
        match operation:
            case to.RunEnd(interrupts):
                asked = [[each.interrupt_id, each.question, dict(each.schema)] for each in interrupts]
                kept = {"state": self.state, "messages": self._mapping.messages} if asked else {}
                self.result = {"interrupts": asked, **kept}
                if len(to_json(self.result)) > MAX_KEPT:
                    self.result = {"failed": f"The agent's state and messages exceed {MAX_KEPT:,} characters."}
            case to.RunFailure(reason):
                logger.warning("The run of the agent at %s failed: %s", self.agent.client.address, reason[:2_000])
                self.result = {"failed": "The agent could not finish its run. Try again, or ask its operator."}

    async def _say(self, text: str) -> None:
        await self._calls.settle()
        if self.agent.rules:
            await self.turn.stream(text)
            return
        match self._answer.feed(text, stays=self._calls.open):
            case DocumentChange() as write:
                if not write.append:
                    await self.turn.take_back()
                    for said in self._said:
                        await self.turn.say(said)
                await self._write([write])
            case reply:
                await self.turn.stream(reply)

    async def _take_state(self, operation: to.NewState) -> None:
        """Show the state to AG-UI clients, as a delta if they have the one before."""
        self.state = operation.value
        await self._write(self._documents.of_state(operation.value))
        snapshot = {"type": "STATE_SNAPSHOT", "snapshot": operation.value}
        if operation.patch is None or self._shows_state is None:
            self._shows_state = await self._send(snapshot)
        elif self._shows_state:
            delta = {"type": "STATE_DELTA", "delta": operation.patch}
            self._shows_state = await self._send(delta) or await self._send(snapshot)

    async def _send(self, event: to.Json) -> bool:
        """Send an event to AG-UI clients. One that is too large, or that they know from us, is skipped."""
        try:
            await self.turn.agui(event)
        except AguiEventError as error:
            self._log_once(str(error))
            return False
        return True

    async def _end_message(self) -> None:
        if self._answer.name:
            text = f"The answer is in the document {self._answer.name}."
            await self.turn.say(text)
        else:
            text = self._answer.text
            await self.turn.say("")  # ends the paragraph
        self._said.append(text)
        self._answer = LongAnswer(self.agent.name)

    async def _call(self, operation: to.CallStart | to.CallInput | to.CallEnd | to.CallResult) -> None:
        match operation:
            case to.CallStart(call_id, name):
                self._said.clear()
                self._documents.begin_call(call_id, name)
                await self._calls.begin(call_id, name)
            case to.CallInput(call_id, piece):
                await self._calls.add_input(call_id, piece)
                await self._write(self._documents.add_input(call_id, piece))
            case to.CallEnd(call_id):
                await self._calls.end(call_id)
            case to.CallResult(call_id, content, failed):
                await self._calls.add_result(call_id, content, failed=failed)

    async def _write(self, writes: Sequence[DocumentChange]) -> None:
        for write in writes:
            artifact = self.turn.artifact(write.name)
            await (artifact.append if write.append else artifact.replace)(write.text, name=write.name)

    def _log_once(self, reason: str) -> None:
        if reason not in self._skipped and len(self._skipped) < 100:
            self._skipped.add(reason)
            logger.warning("Something of the agent at %s is skipped: %s", self.agent.client.address, reason)
