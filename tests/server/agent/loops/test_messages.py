"""Messages that come while an agent's function works, or asks."""

from dataclasses import replace

from a2a_canvas.server.agent.events import State, UserMessage
from a2a_canvas.server.agent.loops.agent_turn import Turn
from tests.fakes import said
from tests.server.agent.loops.agent_life import AgentLife


def sent_by(sender: str, text: str) -> UserMessage:
    return replace(said(text, text), sender=sender)


async def run(function, *, sender: str = "") -> AgentLife:
    life = AgentLife(function)
    life.caller = sender
    function.life = life
    await life.run()
    life.check()
    return life


async def test_each_unread_message_is_answered_by_a_call_of_its_own_the_oldest_first() -> None:
    async def agent(turn: Turn) -> None:
        if turn.text == "Go":
            agent.life.send(said("m-2", "second"))
            agent.life.send(said("m-3", "third"))
        texts = [message.text for message in turn.history]
        await turn.stream(f"Re: {turn.text} after {texts}")

    life = await run(agent)
    assert life.said == [
        "Re: Go after []",
        "Re: second after ['Go', 'Re: Go after []']",
        "Re: third after ['Go', 'Re: Go after []', 'second', \"Re: second after ['Go', 'Re: Go after []']\"]",
    ]


async def test_the_function_works_for_the_sender_of_the_last_message_that_it_has_taken() -> None:
    callers: list[str] = []

    async def agent(turn: Turn) -> None:
        callers.append(turn.caller)
        agent.life.send(sent_by("bob", "more"))
        await turn.messages()
        callers.append(turn.caller)

    await run(agent, sender="ann")
    assert callers == ["ann", "bob"]


async def test_a_rerun_works_for_each_sender_where_the_first_run_did() -> None:
    callers: list[list[str]] = []

    async def agent(turn: Turn) -> None:
        callers.append([turn.caller])
        if len(callers) == 1:
            agent.life.send(sent_by("bob", "more"))
        taken = await turn.messages()
        callers[-1] += [turn.caller, *(message.text for message in taken)]
        await turn.ask("Where?")

    life = await run(agent, sender="ann")
    life.answer("Brest")
    await life.run()
    assert callers == [["ann", "bob", "more"]] * 2


async def test_the_next_message_is_the_answer_and_one_sent_before_the_question_stays_unread() -> None:
    async def agent(turn: Turn) -> None:
        if turn.text != "Go":
            await turn.say(f"Re: {turn.text}")
            return
        if len(agent.life.record.history) == 1:
            agent.life.send(said("m-2", "before"))
        await turn.say(f"In {await turn.ask('Where?')}.")

    life = await run(agent)
    assert (life.record.state, life.reply) == (State.INPUT_REQUIRED, "Where?")
    life.answer("Brest")
    await life.run()
    assert life.said == ["Where?", "In Brest.", "Re: before"]


async def test_after_the_answer_the_function_takes_what_was_sent_before_the_question() -> None:
    async def agent(turn: Turn) -> None:
        if len(agent.life.record.history) == 1:
            agent.life.send(said("m-2", "before"))
        where = await turn.ask("Where?")
        await turn.say(f"{where}, {[message.text for message in await turn.messages()]}")

    life = await run(agent)
    life.answer("Brest")
    await life.run()
    assert (life.record.state, life.reply) == (State.COMPLETED, "Brest, ['before']")


async def test_limits_are_checked_at_each_step_and_each_usage() -> None:
    for use in (
        lambda turn: turn.once("step", never),
        lambda turn: turn.tool("search", {}).__aenter__(),
        lambda turn: turn.usage(1),
        lambda turn: turn.model.respond("model", never),
    ):

        async def agent(turn: Turn, use=use) -> None:
            agent.life.stop = "Stopped before the end. Token limit reached."
            await use(turn)
            raise AssertionError

        life = await run(agent)
        assert (life.record.state, life.reply) == (State.FAILED, "Stopped before the end. Token limit reached.")


async def never() -> None:
    raise AssertionError
