"""`a2a-canvas acp` as it is started: the protocol's library is an extra."""

from __future__ import annotations

from a2a_canvas.server.client.conversation.errors import CannotBeDone
from a2a_canvas.server.client.conversation.invocation import Invocation


async def run(invocation: Invocation) -> None:
    """Speak ACP until the input ends.

    Raises:
        CannotBeDone: the library is not installed.
    """
    try:
        from a2a_canvas.server.client.bridges.acp_agent import run_acp
    except ModuleNotFoundError as error:
        if error.name != "acp":
            raise
        raise CannotBeDone("ACP is not installed: pip install 'a2a-canvas[acp]'") from None
    await run_acp(invocation)
