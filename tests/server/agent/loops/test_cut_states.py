"""A property: wherever a function that appends to its state is cut off, the state is the same at the end."""

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.loops.agent_function import agent_function
from a2a_canvas.server.agent.loops.agent_turn import Turn
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.agent.loops.test_cut_functions import SIMPLE, WORDS, Op, Program, outcome, run_to_end

SET = st.tuples(st.just("set"), WORDS)
STEPS = st.lists(st.one_of(SIMPLE, SET), max_size=3)
OPS = st.one_of(
    SET,
    st.tuples(st.just("get"), st.none()),
    st.tuples(st.just("once"), STEPS),
    st.tuples(st.just("tool"), STEPS),
    st.tuples(st.just("ask"), WORDS),
    SIMPLE,
)


class Remembering(Program):
    """Reads its history when it begins, and sets it with each word that is added."""

    async def agent(self, turn: Turn) -> None:
        self.history = await turn.state.get() or []
        await super().agent(turn)

    async def _carry_out(self, turn: Turn, op: Op, number: int) -> None:
        kind, given = op
        match kind:
            case "set":
                self.history = [*self.history, given]
                await turn.state.set(self.history)
            case "get":
                await turn.state.get()
            case "once" | "tool":
                before = self.history
                await super()._carry_out(turn, op, number)
                self.history = [*before, *(words for step, words in given if step == "set")]
            case _:
                await super()._carry_out(turn, op, number)


async def check_every_cut(ops: Sequence[Op]) -> None:
    whole = AgentLife(Remembering(ops).agent)
    cuts = await run_to_end(whole)
    for interrupted, cut in cuts:
        life = interrupted.crash(cut)
        life.agent = agent_function(Remembering(ops).agent)
        if life.record.state.terminal:
            continue
        await run_to_end(life)
        life.check()
        assert outcome(life) == outcome(whole)
        assert await life.state() == await whole.state()


@given(st.lists(OPS, max_size=7))
@settings(deadline=None, max_examples=50)
def test_the_state_is_the_same_wherever_it_is_cut_off(ops: Sequence[Op]) -> None:
    asyncio.run(check_every_cut(ops))
