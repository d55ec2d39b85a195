"""The agent as a plain function, over `turn.model`."""

from __future__ import annotations

import json
from functools import partial

from a2a_canvas import Turn
from bench.framework_agents.ledger import CLOSING, ROUNDS, enter, note, pause, pieces, update, words


async def agent(turn: Turn) -> None:
    """Answer one message."""
    for number in range(ROUNDS + 1):
        await turn.model.respond("model", partial(_answer, turn, number))
        if number < ROUNDS:
            await turn.model.run_artifact_call(f"u{number}", "artifact_update", json.loads(update(number)))
            await turn.model.run_call(f"n{number}", "note", {"round": number}, partial(note, turn.text, number))


async def _answer(turn: Turn, number: int) -> None:
    enter(turn.text, 2 * number)
    for word in words(number) if number < ROUNDS else [CLOSING]:
        await pause()
        await turn.stream(word)
    if number < ROUNDS:
        for call_id, name, text in ((f"u{number}", "artifact_update", update(number)), (f"n{number}", "note", "{}")):
            await turn.model.begin_call(call_id, name)
            for piece in pieces(text):
                await pause()
                await turn.model.add_input(call_id, piece)
            await turn.model.end_call(call_id)
