"""Function tools of a server with users: for whom a call runs, and what becomes of a user's credentials."""

from __future__ import annotations

from typing import Any

import pytest
from a2a.client import ClientCallContext

from a2a_canvas.server.agent.model import ToolResult
from a2a_canvas.server.api_key import new_key
from tests.server.app_server import Served, Stream, asking

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEYS = {name: new_key() for name in ("ann", "bob")}
TOOLS = '''
from a2a_canvas import Canvas, tool


@tool
async def who(canvas: Canvas) -> str:
    """Says for whom it runs."""
    return f"for {canvas.caller}"
'''
SCRIPT = """
rules:
  - match: {text: '^who, slowly$'}
    rounds:
      - {tools: [{name: who, input: {}}]}
      - {text: "So it is.", chunk: 3, delay: 1, tools: [{name: who, input: {}}]}
      - {tools: [{name: who, input: {}}]}
      - {text: "Done."}
"""


@pytest.fixture(scope="module")
def app_options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("agent")
    (folder / "script.yaml").write_text(SCRIPT)
    (folder / "tools.py").write_text(TOOLS)
    keys = ",".join(f"{name}={key}" for name, key in KEYS.items())
    return {
        "script": folder / "script.yaml",
        "tools": (folder / "tools.py",),
        "database": f"sqlite:///{folder}/tasks.db",
        "api_keys": keys,
    }


def as_user(name: str) -> ClientCallContext:
    return ClientCallContext(service_parameters={"Authorization": f"Bearer {KEYS[name]}"})


def sending(served: Served, user: str, text: str, **where: str) -> Stream:
    return Stream(served.client().send_message(asking(text, **where), context=as_user(user)))


async def shared_with_bob(served: Served, context: str) -> None:
    share = {"user": "bob", "level": "edit"}
    headers = {"Authorization": f"Bearer {KEYS['ann']}"}
    assert (await served.http.post(f"/artifacts/{context}/shares", json=share, headers=headers)).status_code == 201


def results(served: Served) -> list[str]:
    """Those of the tools, in the order in which the model has read them."""
    messages = served.model.requests[-1].messages
    return [str(each.content) for message in messages for each in message.content if isinstance(each, ToolResult)]


async def test_a_call_runs_for_the_user_whose_message_the_model_read_last(served: Served, context: str) -> None:
    """Else a guest who writes to the owner's working task would have the owner's tools do what it says."""
    anns = sending(served, "ann", "who, slowly", context=context)
    await anns.next()
    await shared_with_bob(served, context)
    await served.gate.reached.wait()
    await sending(served, "bob", "and for me", context=context, task=anns.task.id).next()
    served.gate.open()
    await anns.rest()
    assert results(served) == ["for ann", "for ann", "for bob"]
