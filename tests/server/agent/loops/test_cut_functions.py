"""A property: wherever a function that keeps the rules is cut off, what is left at the end is the same."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import LlmCallCompleted
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.model import Usage
from tests.fakes import said
from tests.server.agent.loops.agent_life import AgentLife

Op = tuple[str, object]
WORDS = st.text("abc <>\n", min_size=1, max_size=4)


def operations(*artifacts: str) -> st.SearchStrategy[Op]:
    """What may be done in a step and outside of any."""
    names = st.sampled_from(artifacts)
    return st.one_of(
        st.tuples(st.just("append"), st.tuples(names, WORDS)),
        st.tuples(st.just("replace"), st.tuples(names, WORDS)),
        st.tuples(st.just("edit"), names),
        st.tuples(st.sampled_from(("stream", "think", "say")), WORDS),
        st.tuples(st.just("usage"), st.integers(1, 9)),
        st.tuples(st.just("agui"), st.sampled_from(("CUSTOM", "STATE", "ACTIVITY"))),
    )


def steps(
    *artifacts: str, kinds: Sequence[str] = ("once", "tool", "keyed", "fails"), speaks: bool = True
) -> st.SearchStrategy[Op]:
    within = operations(*artifacts).filter(lambda op: speaks or op[0] not in SPOKEN)
    return st.tuples(st.sampled_from(kinds), st.lists(within, max_size=3))


SPOKEN = ("stream", "think", "say", "agui")
"""What subscribers get in the order in which it is said: of two steps that both speak, in either order."""
PARALLEL = st.tuples(
    steps("one", kinds=("once", "keyed")), steps("two", kinds=("once", "keyed", "fails"), speaks=False)
)
BOTH_SPEAK = st.tuples(steps("one", kinds=("once", "keyed")), steps("two", kinds=("once", "keyed")))
OPS = st.one_of(
    operations("one", "two"),
    steps("one", "two"),
    st.tuples(st.just("parallel"), PARALLEL),
    st.tuples(st.sampled_from(("ask", "messages", "unread")), WORDS),
    st.tuples(st.just("asks"), st.tuples(WORDS, WORDS)),
)


ACTIVITY = {"messageId": "log", "activityType": "LOG"}


def agui_event(kind: object, number: str) -> dict:
    match kind:
        case "CUSTOM":
            return {"type": "CUSTOM", "name": "number", "value": number}
        case "STATE":
            return {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/-", "value": number}]}
        case _:
            adds = {"op": "add", "path": "/numbers/-", "value": number}
            return {"type": "ACTIVITY_DELTA", **ACTIVITY, "patch": [adds]}


async def act(turn: Turn, kind: str, given: object, number: str) -> None:
    match kind:
        case "append":
            await turn.artifact(given[0]).append(given[1])
        case "replace":
            await turn.artifact(given[0]).replace(given[1])
        case "edit":
            await turn.artifact(given).append(f"passage {number}.")
            await turn.artifact(given).edit(f"passage {number}.", f"edited {number}.")
        case "usage":
            await turn.usage(given)
        case "agui":
            await turn.agui(agui_event(given, number))
        case _:
            await getattr(turn, kind)(given)


class Program:
    """A function that carries out operations, in order, and counts its steps.

    It sends AG-UI's clients a number at a time: in a CUSTOM event, or added to the state or an activity.

    Attributes:
        ran: the numbers of the steps that it has carried out.
    """

    def __init__(self, ops: Sequence[Op], generator: bool) -> None:
        self.ops = ops
        self.ran: list[str] = []
        self.agent = self.generator if generator else self.function
        self.life: AgentLife

    async def function(self, turn: Turn) -> None:
        async for piece in self._run(turn):
            await turn.stream(piece)

    async def generator(self, turn: Turn) -> AsyncIterator[str]:
        async for piece in self._run(turn):
            yield piece

    async def _run(self, turn: Turn) -> AsyncIterator[str]:
        if turn.text != "Go":
            yield f"Re: {turn.text}"
            return
        await turn.agui({"type": "STATE_SNAPSHOT", "snapshot": []})
        await turn.agui({"type": "ACTIVITY_SNAPSHOT", **ACTIVITY, "content": {"numbers": []}})
        for number, (kind, given_) in enumerate(self.ops):
            if kind == "stream":
                yield given_
            else:
                await self._carry_out(turn, kind, given_, str(number))
            await asyncio.sleep(0)

    async def _carry_out(self, turn: Turn, kind: str, given: object, number: str) -> None:
        match kind:
            case "ask":
                await turn.ask(f"{number}: {given}?")
            case "asks":
                await asyncio.gather(*(turn.ask(f"{number}: {each}?") for each in given))
            case "messages" | "unread":
                await self._receive(turn, f"m {number}", given, take=kind == "messages")
            case "parallel":
                await asyncio.gather(*(self._run_step(turn, *each, f"{number}.{n}") for n, each in enumerate(given)))
            case "once" | "keyed" | "fails" | "tool":
                await self._run_step(turn, kind, given, number)
            case _:
                await self._act(turn, kind, given, number)

    async def _act(self, turn: Turn, kind: str, given: object, number: str) -> None:
        await act(turn, kind, given, number)

    async def _run_step(self, turn: Turn, kind: str, ops: Sequence[Op], number: str) -> None:
        match kind:
            case "once":
                await turn.once("step", lambda: self._step(turn, ops, number))
            case "keyed":
                await turn.once("step", lambda: self._step(turn, ops, number), key=number)
            case "fails":
                with suppress(ZeroDivisionError):
                    await turn.once("fails", lambda: self._fail(turn, ops, number))
            case "tool":
                async with turn.tool("tool", {"number": number}) as call:
                    await call.run(lambda: self._step(turn, ops, number))

    async def _receive(self, turn: Turn, message_id: str, text: str, *, take: bool) -> None:
        if all(getattr(each, "message_id", "") != message_id for each in self.life.record.history):
            self.life.send(said(message_id, text))
        if take:
            await turn.stream("".join(message.text for message in await turn.messages()))

    async def _step(self, turn: Turn, ops: Sequence[Op], number: str) -> str:
        await self._change(turn, ops, number)
        self.ran.append(number)
        return number

    async def _fail(self, turn: Turn, ops: Sequence[Op], number: str) -> None:
        # It runs again: an edit is a version at once, and tokens that are used, and events, count again.
        await self._change(turn, [op for op in ops if op[0] not in ("edit", "usage", "agui")], number)
        raise ZeroDivisionError

    async def _change(self, turn: Turn, ops: Sequence[Op], number: str) -> None:
        for n, (kind, given_) in enumerate(ops):
            await asyncio.sleep(0)
            await self._act(turn, kind, given_, f"{number}-{n}")


def life_of(ops: Sequence[Op], generator: bool, before: AgentLife | None = None, cut=None) -> tuple[AgentLife, Program]:
    program = Program(ops, generator)
    program.life = AgentLife(program.agent) if cut is None else before.crash(cut, program.agent)
    return program.life, program


def outcome(life: AgentLife) -> tuple:
    usage = sum((event.usage for event in life.told.of(LlmCallCompleted)), Usage())
    return life.record.state, life.said, life.texts(), usage, life.agui_events()


def unordered_outcome(life: AgentLife) -> tuple:
    """The outcome without the order of what was said, and the blanks at its ends."""
    state, said, texts, usage, events = outcome(life)
    return state, sorted("".join("".join(said).split())), texts, usage, sorted(str(events))


async def check_every_cut(ops: Sequence[Op], generator: bool, outcome: Callable[[AgentLife], tuple] = outcome) -> None:
    whole, _ = life_of(ops, generator)
    cuts = await whole.run_to_end()
    whole.check()
    for interrupted, cut in cuts:
        life, program = life_of(ops, generator, interrupted, cut)
        if life.record.state.terminal:
            continue
        kept = {item.value for item in life.record.transcript if getattr(item, "kind", "") == "kept"}
        await life.run_to_end()
        life.check()
        assert outcome(life) == outcome(whole)
        assert len(program.ran) == len(set(program.ran))
        assert not kept & {f'"{number}"' for number in program.ran}


@given(st.lists(OPS, max_size=7), st.booleans(), st.sampled_from([0.0, 3600.0]))
@settings(deadline=None, max_examples=50)
def test_what_is_left_is_the_same_wherever_it_is_cut_off(ops: Sequence[Op], generator: bool, frame: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AgentLife, "frame", frame)
        asyncio.run(check_every_cut(ops, generator))


@given(st.lists(st.tuples(st.just("parallel"), BOTH_SPEAK), min_size=1, max_size=3), st.booleans())
@settings(deadline=None, max_examples=20)
def test_steps_that_speak_at_the_same_time_say_the_same_in_either_order(ops: Sequence[Op], generator: bool) -> None:
    asyncio.run(check_every_cut(ops, generator, unordered_outcome))
