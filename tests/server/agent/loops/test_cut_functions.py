"""A property: wherever a function that keeps the rules is cut off, what is left at the end is the same."""

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.loops.agent_turn import Turn
from tests.server.agent.loops.agent_life import AgentLife

Op = tuple[str, object]
ARTIFACTS = st.sampled_from(("one", "two"))
WORDS = st.text("abc <>\n", min_size=1, max_size=4)
SIMPLE = st.one_of(
    st.tuples(st.just("append"), st.tuples(ARTIFACTS, WORDS)),
    st.tuples(st.just("replace"), st.tuples(ARTIFACTS, WORDS)),
    st.tuples(st.just("stream"), WORDS),
    st.tuples(st.just("think"), WORDS),
    st.tuples(st.just("say"), WORDS),
    st.tuples(st.just("agui"), st.sampled_from(("CUSTOM", "STATE", "ACTIVITY"))),
)
STEPS = st.lists(SIMPLE, max_size=4)
OPS = st.one_of(
    SIMPLE,
    st.tuples(st.just("once"), STEPS),
    st.tuples(st.just("tool"), STEPS),
    st.tuples(st.just("ask"), WORDS),
    st.tuples(st.just("edit"), ARTIFACTS),
)


ACTIVITY = {"messageId": "log", "activityType": "LOG"}


def agui_event(kind: object, number: int) -> dict:
    match kind:
        case "CUSTOM":
            return {"type": "CUSTOM", "name": "number", "value": number}
        case "STATE":
            return {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/-", "value": number}]}
        case _:
            adds = {"op": "add", "path": "/numbers/-", "value": number}
            return {"type": "ACTIVITY_DELTA", **ACTIVITY, "patch": [adds]}


class Program:
    """A function that carries out operations, in order, and counts its steps.

    It sends AG-UI's clients a number at a time: in a CUSTOM event, or added to the state or an activity.

    Attributes:
        ran: the numbers of the steps that it has carried out.
    """

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = ops
        self.ran: list[int] = []

    async def agent(self, turn: Turn) -> None:
        await turn.agui({"type": "STATE_SNAPSHOT", "snapshot": []})
        await turn.agui({"type": "ACTIVITY_SNAPSHOT", **ACTIVITY, "content": {"numbers": []}})
        for number, op in enumerate(self.ops):
            await self._carry_out(turn, op, number)
            await asyncio.sleep(0)

    async def _carry_out(self, turn: Turn, op: Op, number: int) -> None:
        kind, given = op
        match kind:
            case "append":
                await turn.artifact(given[0]).append(given[1])
            case "replace":
                await turn.artifact(given[0]).replace(given[1])
            case "stream" | "think" | "say":
                await getattr(turn, kind)(given)
            case "agui":
                await turn.agui(agui_event(given, number))
            case "ask":
                await turn.ask(f"{number}: {given}?")
            case "edit":
                await turn.artifact(given).replace("passage")
                await turn.artifact(given).edit("passage", f"{number}")
            case "once":
                await turn.once("step", lambda: self._step(turn, given, number))
            case "tool":
                async with turn.tool("tool", {"number": number}) as call:
                    await call.run(lambda: self._step(turn, given, number))

    async def _step(self, turn: Turn, ops: Sequence[Op], number: int) -> int:
        self.ran.append(number)
        for op in ops:
            await asyncio.sleep(0)
            await self._carry_out(turn, op, number)
        return number


async def run_to_end(life: AgentLife) -> list:
    cuts = []
    while not life.record.state.terminal:
        if life.record.state.paused:
            life.answer("yes")
        cuts += [(life, cut) for cut in await life.run()]
    return cuts


def outcome(life: AgentLife) -> tuple:
    return life.record.state, life.said, life.texts(), life.agui_events()


async def check_every_cut(ops: Sequence[Op]) -> None:
    whole = AgentLife(Program(ops).agent)
    cuts = await run_to_end(whole)
    whole.check()
    for interrupted, cut in cuts:
        program = Program(ops)
        life = AgentLife(program.agent, cut.documents)
        life.told.events = interrupted.told.events[: cut.told]
        if life.record.state.terminal:
            continue
        await run_to_end(life)
        life.check()
        assert outcome(life) == outcome(whole)
        assert len(program.ran) == len(set(program.ran))


@given(st.lists(OPS, max_size=8))
@settings(deadline=None, max_examples=50)
def test_what_is_left_is_the_same_wherever_it_is_cut_off(ops: Sequence[Op]) -> None:
    asyncio.run(check_every_cut(ops))
