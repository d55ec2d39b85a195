"""An edit of a selection that an agent's function answers."""

from a2a_canvas import Turn, agent
from a2a_canvas.server.agent.loops.edit_function import EditFunction
from a2a_canvas.server.agent.loops.run_function import AgentRequest
from a2a_canvas.server.agent.turn.turn import TurnRequest
from a2a_canvas.server.tasks.context_values import InMemoryContextValues, TaskValues
from a2a_canvas.store.edit_events import EditChunk
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.tools.functions.recorded_call import do_nothing
from tests.fakes import said
from tests.server.agent.edit.operation_harness import OperationHarness, edit, edits_of


class Edited(OperationHarness):
    """An edit that a function answers."""

    max_calls = 6
    """Three attempts, each of which may replace its text."""

    def __init__(self, function, tools=(), **options) -> None:
        super().__init__(**options)
        self.reason_to_stop = ""
        self.spent: list[tuple[int, int]] = []
        self.is_handed_over = False
        marked = agent(nothing)
        marked.edit(function)
        turn = TurnRequest("task", "context", (), (), lambda closing: (), caller=lambda: "ann", stop=self._stop)
        self.llm = EditFunction(
            AgentRequest(turn, (said("m-1", "Louder"),), no_values(), spend=lambda *tokens: self.spent.append(tokens)),
            marked,
            "doc",
            tools=[each.tool for each in tools],
            store=self.store,
            emit=self.told,
            new_id=self._new_id,
            instructions="You are Reef.",
            handed_over=lambda: self.is_handed_over,
        )

    async def _stop(self) -> str:
        return self.reason_to_stop

    @property
    def chunks(self) -> list[str]:
        return [event.chunk for event in edits_of(self.told.events) if isinstance(event, EditChunk)]


async def nothing(turn: Turn) -> None: ...


def no_values() -> TaskValues:
    return TaskValues(InMemoryContextValues(), ContextKey("context"), "task", lambda: None, do_nothing)


async def edited(function, operation=None, **options) -> Edited:
    harness = await Edited(function, **options).ready()
    await harness.run(operation or edit())
    return harness
