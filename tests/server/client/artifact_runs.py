"""Commands for artifacts, run against the whole application on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from io import StringIO
from typing import Any

from a2a_canvas.server.client.conversation.invocation import Invocation, await_command
from tests.server.canvas_client import Doc
from tests.server.client.client_harness import Result, Screen

Step = Callable[[], Any] | None


class Steps:
    """Stands for time: each time a command waits, the next step is taken; after the last one it is cancelled."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = iter(steps)

    async def __call__(self, seconds: float) -> None:
        try:
            step = next(self._steps)
        except StopIteration:
            raise asyncio.CancelledError from None
        done = step() if step else None
        if done is not None:
            await done


async def run(
    command: Callable[..., Any],
    url: str,
    *,
    tty: bool = False,
    steps: Iterable[Step] = (),
    json: bool = False,
    **values: Any,
) -> Result:
    """What a command prints."""
    out, err = Screen(tty=tty), StringIO()
    color = "always" if tty else "auto"
    invocation = Invocation(url=url, json=json, color=color, out=out, err=err, pause=Steps(steps))
    code = await await_command(invocation, command(invocation, **values))
    return Result(code, out.getvalue(), err.getvalue())


async def do(command: Callable[..., Any], doc: Doc, **values: Any) -> Result:
    """The same for an artifact."""
    return await run(command, doc.served.url, **{"artifact": doc.artifact_id, "context": doc.context} | values)
