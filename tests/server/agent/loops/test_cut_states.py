"""A property: wherever a function that appends to its state is cut off, the state is the same at the end."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.loops.agent_turn import Turn
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.agent.loops.test_cut_functions import WORDS, Op, Program, operations, outcome

SIMPLE = operations("one", "two")
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

    async def _run(self, turn: Turn) -> AsyncIterator[str]:
        self.history = await turn.state.get() or []
        async for piece in super()._run(turn):
            yield piece

    async def _act(self, turn: Turn, kind: str, given: object, number: str) -> None:
        match kind:
            case "set":
                self.history = [*self.history, given]
                await turn.state.set(self.history)
            case "get":
                await turn.state.get()
            case _:
                await super()._act(turn, kind, given, number)

    async def _run_step(self, turn: Turn, kind: str, ops: Sequence[Op], number: str) -> None:
        before = self.history
        await super()._run_step(turn, kind, ops, number)
        self.history = [*before, *(words for step, words in ops if step == "set")]


async def check_every_cut(ops: Sequence[Op]) -> None:
    whole = AgentLife(Remembering(ops, generator=False).agent)
    cuts = await whole.run_to_end()
    for interrupted, cut in cuts:
        life = interrupted.crash(cut, Remembering(ops, generator=False).agent)
        if life.record.state.terminal:
            continue
        await life.run_to_end()
        life.check()
        assert outcome(life) == outcome(whole)
        assert await life.state() == await whole.state()


@given(st.lists(OPS, max_size=7))
@settings(deadline=None, max_examples=50)
def test_the_state_is_the_same_wherever_it_is_cut_off(ops: Sequence[Op]) -> None:
    asyncio.run(check_every_cut(ops))
