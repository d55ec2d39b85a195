"""The rehearsal model calls a tool that asks the user: what it returned is the reply, whatever was answered."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from a2a_canvas.server.tool_sources.remote_agents.agent_card import TOOL_PREFIX
from a2a_canvas.tools.ask_user import ask_user
from tests.server.app_server import Served, asking, every_way, said, sent, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOOLS = '''
from a2a_canvas import Canvas, tool


@tool(approval="ask")
async def sink(ship: str) -> str:
    """Sinks a ship."""
    return f"{ship} has sunk."


@tool
async def moor(ship: str, canvas: Canvas) -> str:
    """Moors a ship."""
    return f"{ship} lies at {await canvas.ask('Which quay?')}."
'''
NOT_APPROVED = "That did not work: The user did not approve this call, and answered: no"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rehearsing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    tools = tmp_path_factory.mktemp("agent") / "tools.py"
    tools.write_text(TOOLS)
    async with serving(model=Rehearsal(delay=0), tools=(tools,)) as served:
        yield served


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def calling(rehearsing: Served) -> AsyncIterator[Served]:
    """An agent whose tool is the one that rehearses."""
    async with serving(model=Rehearsal(delay=0), agents=(str(rehearsing.http.base_url),)) as served:
        yield served


@every_way
@pytest.mark.parametrize(
    ("call", "answer", "reply"),
    [
        ("call sink ship=Titanic", "yes", "Titanic has sunk."),
        ("call sink ship=Titanic", "no", NOT_APPROVED),
        ("call moor ship=Titanic", "pier 54", "Titanic lies at pier 54."),
    ],
)
@pytest.mark.transports
async def test_after_the_answer_the_result_is_the_reply(
    rehearsing: Served, way: tuple[str, str], call: str, answer: str, reply: str
) -> None:
    asked = await sent(rehearsing, way, asking(call))
    assert asked.status.state == pb.TASK_STATE_INPUT_REQUIRED
    answered = await sent(rehearsing, way, asking(answer, context=asked.context_id, task=asked.id))
    assert (answered.status.state, said(answered.status).partition("\n")[0]) == (pb.TASK_STATE_COMPLETED, reply)


@pytest.mark.parametrize(("answer", "reply"), [("yes", "Titanic has sunk."), ("no", NOT_APPROVED)])
async def test_so_it_is_through_another_agent(calling: Served, answer: str, reply: str) -> None:
    served, way = calling, ("JSONRPC", "1.0")
    await sent(served, way, asking("hi"))
    names = [spec.name for spec in served.model.requests[-1].tools if spec.name.startswith(TOOL_PREFIX)]
    name = next(each for each in names if each != ask_user.name)
    asked = await sent(served, way, asking(f"call {name} message='call sink ship=Titanic'"))
    assert asked.status.state == pb.TASK_STATE_INPUT_REQUIRED
    answered = await sent(served, way, asking(answer, context=asked.context_id, task=asked.id))
    assert reply in said(answered.status)
