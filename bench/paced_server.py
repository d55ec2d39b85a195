"""Our server with a model that writes at the pace that the message asks for.

Run as `python -m bench.paced_server PORT FRAME_MS DATABASE MAX_TURNS`. The scripted model cannot write the current time
into its deltas; this one does nothing else (`pace.py`). The JSON before the text in a call comes at the same pace.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Literal

import uvicorn
from starlette.applications import Starlette

from a2a_canvas.server.agent import model as m
from a2a_canvas.server.app import create_app
from a2a_canvas.server.settings.settings import load
from bench.pace import SIZE, Order

OPENING = '{"append": false, "artifact": {"artifact_id": "text", "parts": [{"kind": "text", "text": "'
CLOSING = '"}]}}'


class PacedModel:
    """An `LLM` that writes one artifact with the pieces that the message asks for, and then ends the turn."""

    name = "paced"
    thinking: Literal["delta", "accumulated"] = "delta"

    async def stream(self, request: m.ModelRequest) -> AsyncGenerator[m.ModelEvent, None]:
        """The first answer is one `artifact_update`; the answer to its result is empty.

        For an endless order it is the same call again, without the first pieces.
        """
        yield m.MessageStart()
        said = (item.text for item in request.messages[0].content if isinstance(item, m.ModelText))
        order = Order.read("".join(said))
        again = any(isinstance(item, m.ToolResult) for item in request.messages[-1].content)
        if again and order.endless:
            order = replace(order, count=0)
        elif again:
            yield m.StopReasonDelta("end_turn")
            yield m.MessageStop("end_turn")
            return
        yield m.BlockStart(0, "tool_use", "call", "artifact_update")
        for at in range(0, len(OPENING), SIZE):
            yield m.InputDelta(0, OPENING[at : at + SIZE])
            await asyncio.sleep(1 / order.rate)
        async for piece in order.pieces():
            yield m.InputDelta(0, piece)
        yield m.InputDelta(0, CLOSING)
        yield m.BlockStop(0)
        yield m.StopReasonDelta("tool_use")
        yield m.MessageStop("tool_use")


def build_app(port: int, frame_ms: float, database: str, max_turns: int) -> Starlette:
    """The ASGI application."""
    given = {"port": port, "frame_ms": frame_ms, "database": database, "max_turns": max_turns, "max_streams": 10_000}
    return create_app(load(given), PacedModel())


if __name__ == "__main__":
    given_port, given_frame = int(sys.argv[1]), float(sys.argv[2])
    app = build_app(given_port, given_frame, sys.argv[3], int(sys.argv[4]))
    uvicorn.run(app, host="127.0.0.1", port=given_port, log_level="warning")
