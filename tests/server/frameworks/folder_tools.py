"""Tools of an agent's folder, which a framework's model calls: what each adapter must do with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from a2a_canvas import Canvas, ToolError, tool
from a2a_canvas.server.agent.events import State, ToolFailed, ToolSucceeded
from tests.server.agent.edit.operation_harness import TEXT
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.agent.loops.edit_harness import edited


class Berths:
    """The tools of a folder, which count their calls."""

    def __init__(self) -> None:
        self.ran: list[str] = []

        @tool
        def water(port: str) -> str:
            """High water in a port."""
            self.ran.append("water")
            if port != "Brest":
                raise ToolError(f"There is no port {port}.")
            return "5.9 m"

        @tool(approval="ask")
        def book(port: str) -> str:
            """Books a berth."""
            self.ran.append("book")
            return f"Booked in {port}."

        @tool
        async def moor(canvas: Canvas) -> str:
            """Moors for some nights."""
            nights = await canvas.ask("How many nights?")
            self.ran.append("moor")
            await canvas.artifact("log").append(f"{nights} nights", name="log.md")
            return f"Moored for {nights} nights."

        self.marked = [water, book, moor]
        self.tools = [each.tool for each in self.marked]


Answering = Callable[[list[tuple[str, dict[str, Any]]]], Any]
"""Makes the framework's agent of the calls of its model's first answer; its second one is the results, as text."""


async def check_calls(make: Answering) -> None:
    """A call is a step, with its result for clients and the model; a failed one, too."""
    berths = Berths()
    life = AgentLife(
        make([("water", {"port": "Brest"}), ("water", {"port": "Rome"}), ("water", {})]), tools=berths.tools
    )
    cuts = await life.run()
    life.check()
    assert life.record.state is State.COMPLETED
    failures = ["There is no port Rome.", "port: is missing"]
    assert all(text in life.reply for text in ("5.9 m", *failures))
    assert [event.content for event in life.told.of(ToolSucceeded)] == ["5.9 m"]
    assert [text in event.error for text, event in zip(failures, life.told.of(ToolFailed), strict=True)] == [True, True]
    assert berths.ran == ["water", "water"]
    for cut in cuts:
        again = life.crash(cut)
        again.tools = berths.tools
        if not again.record.state.terminal:
            await again.run()
            again.check()
            assert again.reply == life.reply


async def check_approval(make: Answering) -> None:
    """The user is asked once, outside the framework's run, by the tool's own question."""
    for answer, result in (
        ("yes", "Booked in Brest."),
        ("no", "The user did not approve this call, and answered: no"),
    ):
        berths = Berths()
        agent = make([("book", {"port": "Brest"}), ("ask_user", {"question": "Sure?"})])
        life = AgentLife(agent, tools=berths.tools)
        await life.run()
        assert (life.record.state, berths.ran) == (State.INPUT_REQUIRED, [])
        assert sorted(life.reply.splitlines()) == ['May I run book(port="Brest")? Answer yes or no.', "Sure?"]
        life.answer(answer)
        await life.run()
        life.check()
        assert life.record.state is State.COMPLETED
        assert result in life.reply
        assert berths.ran == (["book"] if answer == "yes" else [])
        succeeded = {event.tool_use_id: event.content for event in life.told.of(ToolSucceeded)}
        failed = {event.tool_use_id: event.error for event in life.told.of(ToolFailed)}
        assert succeeded | failed == {"c0": result, "c1": answer}


async def check_invalid_approval(make: Answering) -> None:
    """The user is not asked about a call whose input is not valid."""
    berths = Berths()
    life = AgentLife(make([("book", {})]), tools=berths.tools)
    await life.run()
    assert life.record.state is State.COMPLETED
    assert "port: is missing" in life.reply
    assert berths.ran == []


async def check_question(make: Answering) -> None:
    """A tool may ask in the middle of its call, while another one runs."""
    berths = Berths()
    life = AgentLife(make([("moor", {}), ("water", {"port": "Brest"})]), tools=berths.tools)
    await life.run()
    assert (life.record.state, life.reply) == (State.INPUT_REQUIRED, "How many nights?")
    life.answer("two")
    await life.run()
    life.check()
    assert life.record.state is State.COMPLETED
    assert "Moored for two nights." in life.reply
    assert "5.9 m" in life.reply
    assert sorted(berths.ran) == ["moor", "water"]
    assert life.texts() == {"log": "two nights"}


async def check_edit(make: Answering) -> None:
    """In an edit of a passage its model calls the tools that only read."""
    berths = Berths()
    done = await edited(make([("water", {"port": "Brest"})]).editor, tools=berths.marked)
    assert (await done.doc()).text == TEXT.replace("Two.", "5.9 m")
    assert berths.ran == ["water"]


CHECKS = [check_calls, check_approval, check_invalid_approval, check_question, check_edit]
