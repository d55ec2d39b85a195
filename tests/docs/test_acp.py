"""docs/acp.md: what editors are given is what the command takes."""

from __future__ import annotations

import json

from a2a_canvas.server.wire import TOKEN_VARIABLE
from tests.command_line import parsed
from tests.docs.pages import ADDRESS, blocks, page


def test_the_editor_starts_the_command_that_there_is() -> None:
    [block] = blocks(page("acp"), "json")
    [agent] = json.loads(block)["agent_servers"].values()
    command, options = parsed(*agent["args"])
    assert (command, options["url"]) == ("acp", ADDRESS)
    assert agent["command"].endswith("/a2a-canvas")
    assert [*agent["env"]] == [TOKEN_VARIABLE]
