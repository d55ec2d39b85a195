"""A task of an agent's function over several runs, each of which a crash may cut off."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace

from a2a_canvas.server.agent.events import AguiSent, MessageReceived, UserInput, UserMessage
from a2a_canvas.server.agent.loops.agent_function import agent_function
from a2a_canvas.server.agent.loops.run_function import AgentRequest, run_function
from a2a_canvas.server.agent.loops.turn_values import STATE, SavedValues
from a2a_canvas.server.agent.turn.turn import TurnLimits, TurnRequest
from a2a_canvas.server.tasks.context_values import InMemoryContextValues, TaskValues
from a2a_canvas.server.tasks.runtime.turns import unread_messages
from tests.fakes import EventRecorder, FakeLLM, ids, said
from tests.server.agent.turn.cut_harness import Cut
from tests.server.agent.turn.turn_life import Life
from tests.server.agent.turn.turn_scripts import START

Staged = tuple[int, SavedValues]
"""What was staged, and how many events there were before it."""


class StagedValues(InMemoryContextValues):
    """Remembers what was staged with which events, so that a crash takes back both."""

    def __init__(self, told: EventRecorder, staged: Iterable[Staged] = ()) -> None:
        super().__init__()
        self._told = told
        self.staged = [*staged]
        for _, saved in self.staged:
            super().stage("context", "task", saved)

    def stage(self, context_id, task_id, saved) -> None:
        self.staged.append((len(self._told.events), saved))
        super().stage(context_id, task_id, saved)


class AgentLife(Life):
    """A `Life` whose turn is that of a function.

    Attributes:
        values: what it keeps in the context.
        state_bytes: the limit of them.
        new_messages: those that arrive while it works.
        flushes: how often it waited for the database.
        owner, caller: of the context, and of the message.
        crashes: how often it was taken over after one.
        frame: seconds within which pieces of its reply are joined.
        suggests: what it changes becomes suggestions.
    """

    owner = caller = ""
    tokens_left: int | None = None
    crashes = 0
    frame = 0.0
    suggests = False

    def __init__(self, function, documents=None, tools=()) -> None:
        super().__init__(FakeLLM([]), replace(START, history=(said("m-1", "Go"),)), documents, tools=tools)
        self.agent = agent_function(function)
        self.new_messages: list[UserMessage] = []
        self.spent = (0, 0)
        self.flushes = 0
        self.stop = ""
        self.values = StagedValues(self.told)
        self.state_bytes = 100_000

    async def go_on(self, drafts: tuple[str, ...]) -> None:
        record = self.record
        turn = TurnRequest(
            task_id="task",
            context_id="context",
            earlier=(),
            transcript=record.transcript,
            new_messages=self._take,
            progress=record.progress,
            changed=tuple(record.artifacts),
            drafts=drafts,
            caller=lambda: self.caller,
            owner=self.owner,
            credentials=self.credentials,
            suggests=self.suggests,
            stop=self._reason_to_stop,
            limits=TurnLimits(state_bytes=self.state_bytes),
        )
        read = sum(isinstance(item, UserInput) and bool(item.message_id) for item in record.transcript)
        sent = [each for each in record.history if isinstance(each, UserMessage)][:read]
        messages = tuple(replace(each, sender=each.sender or self.caller) for each in sent)
        await run_function(
            AgentRequest(
                turn,
                messages,
                self._values(),
                spend=self._spend,
                tokens_left=lambda: self.tokens_left,
                agui=record.agui,
                crashes=self.crashes,
                frame=self.frame,
            ),
            self.agent,
            tools=self.tools,
            store=self.store,
            emit=self.told,
            new_id=ids(),
            flushed=self._flushed,
            find_tool=self.find_tool,
            make_review=self.annotations.make_review,
        )

    def _values(self) -> TaskValues:
        return TaskValues(self.values, "context", "task", lambda: None, self._flushed)

    async def state(self):
        """The state of the context."""
        raw = await self.values.get("context", STATE)
        return raw and json.loads(raw)

    async def _flushed(self) -> None:
        self.flushes += 1
        await asyncio.sleep(0)

    async def _reason_to_stop(self) -> str:
        return self.stop

    def _spend(self, tokens_in: int, tokens_out: int) -> None:
        self.spent = (self.spent[0] + tokens_in, self.spent[1] + tokens_out)

    def _take(self, closing: bool) -> tuple[UserMessage, ...]:
        messages, self.new_messages = tuple(self.new_messages), []
        return messages

    def send(self, message: UserMessage) -> None:
        """A message arrives while the function runs."""
        self.told.events.append(MessageReceived(message))
        self.new_messages.append(message)

    def crash(self, cut: Cut, function=None) -> "AgentLife":
        """What the server finds that takes the task over; `function` is the agent's code there."""
        life = AgentLife(function or self.agent, cut.documents)
        life.told.events = self.told.events[: cut.told]
        life.values = StagedValues(life.told, [each for each in self.values.staged if each[0] < cut.told])
        life.state_bytes = self.state_bytes
        life.crashes = self.crashes + 1
        life.new_messages = list(unread_messages(life.record))
        return life

    @property
    def reply(self) -> str:
        """The text of the task's status."""
        return self.record.message.text if self.record.message else ""

    def agui_events(self) -> list:
        """What AG-UI clients were sent by the function, and what they have."""
        sent = [event.event for event in self.told.of(AguiSent)]
        state = self.record.agui.view.state
        return [sent, state and state.value, self.record.agui.view.late_events()]

    @property
    def said(self) -> list[str]:
        """The messages of the agent that are not labels, in order."""
        return [each.text for each in self.record.history if not isinstance(each, UserMessage)]


async def ended(function, **options) -> AgentLife:
    """A task of this function after one run, in which the laws of a turn held."""
    life = AgentLife(function, **options)
    await life.run()
    life.check()
    return life
