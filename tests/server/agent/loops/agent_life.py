"""A task of an agent's function over several runs, each of which a crash may cut off."""

import asyncio
from dataclasses import replace

from a2a_canvas.server.agent.events import AguiSent, MessageReceived, UserInput, UserMessage
from a2a_canvas.server.agent.loops.agent_function import agent_function
from a2a_canvas.server.agent.loops.run_function import AgentRequest, run_function
from a2a_canvas.server.agent.turn.turn import TurnRequest
from tests.fakes import FakeLLM, ids, said
from tests.server.agent.turn.cut_harness import Cut
from tests.server.agent.turn.turn_life import Life
from tests.server.agent.turn.turn_scripts import START


class AgentLife(Life):
    """A `Life` whose turn is that of a function.

    Attributes:
        new_messages: those that arrive while it works.
        owner, caller: of the context, and of the message.
    """

    owner = caller = ""

    def __init__(self, function, documents=None, tools=()) -> None:
        super().__init__(FakeLLM([]), replace(START, history=(said("m-1", "Go"),)), documents, tools=tools)
        self.agent = agent_function(function)
        self.new_messages: list[UserMessage] = []
        self.spent = (0, 0)
        self.stop = ""

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
            stop=self._reason_to_stop,
        )
        read = sum(isinstance(item, UserInput) and bool(item.message_id) for item in record.transcript)
        messages = tuple(each for each in record.history if isinstance(each, UserMessage))[:read]
        await run_function(
            AgentRequest(turn, messages, spend=self._spend, agui=record.agui),
            self.agent,
            tools=self.tools,
            store=self.store,
            emit=self.told,
            new_id=ids(),
            flushed=self._flushed,
            find_tool=self.find_tool,
        )

    async def _flushed(self) -> None:
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

    def crash(self, cut: Cut) -> "AgentLife":
        life = AgentLife(self.agent, cut.documents)
        life.told.events = self.told.events[: cut.told]
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
