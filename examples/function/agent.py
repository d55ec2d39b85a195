"""An agent that is a plain function: it writes a note about tides.

a2a-canvas serve examples/function
"""

import asyncio
from collections.abc import AsyncIterator

import a2a_canvas
from a2a_canvas import Turn

HIGH_WATER = {"Brest": "5.9 m", "Cuxhaven": "3.3 m"}


@a2a_canvas.agent
async def agent(turn: Turn) -> None:
    """Answers a message. After a crash it runs again from its start, without what is recorded."""
    await turn.stream("I look it up. ")
    async with turn.tool("high_water", {"port": "Brest"}) as call:
        height = await call.run(lambda: high_water("Brest"))
    note = turn.artifact("tides")
    await note.replace("# Tides\n\n", name="tides.md")
    async for piece in write(height):
        await note.append(piece)  # live for everyone who watches; one version at the end
    await turn.say("The note is ready.")


@agent.edit
async def edit(turn: Turn) -> str:
    """The new text of a passage that the user has selected."""
    assert turn.edit
    return turn.edit.passage.upper()


async def high_water(port: str) -> str:
    return HIGH_WATER.get(port, "unknown")


async def write(height: str) -> AsyncIterator[str]:
    """In place of what streams from a model."""
    for word in f"High water in Brest: {height}.\nLow water: six hours later.\n".split(" "):
        await asyncio.sleep(0.03)
        yield word if word.endswith("\n") else f"{word} "
