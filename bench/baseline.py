"""The baseline: the SDK's `DefaultRequestHandler`, set up as in the SDK's samples.

Run as `python -m bench.baseline PORT DATABASE [provider]`. The database is `memory` for the `InMemoryTaskStore`,
otherwise an address as our own server takes it, for the `DatabaseTaskStore` on an engine with SQLAlchemy's defaults.
The executor writes the pieces that the message asks for (`pace.py`) into one artifact, the first with `append=false`,
all others with `append=true`. With `provider` it reads them from the Messages API at ANTHROPIC_BASE_URL
(`messages_api.py`), through the provider's client library.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Callable

import anthropic
import uvicorn
from a2a.helpers import get_message_text, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import DatabaseTaskStore, InMemoryTaskStore, TaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

from bench.pace import SIZE, Order

_STAMP = re.compile(rf"\d{{{SIZE}}}")
"""A piece of the text. What stands before and after the text in the input of a call is none."""

DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}

CARD = pb.AgentCard(
    name="echo",
    description="Echoes pieces of text.",
    version="1",
    capabilities=pb.AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    supported_interfaces=[
        pb.AgentInterface(url="http://127.0.0.1/", protocol_binding="JSONRPC", protocol_version="1.0")
    ],
    skills=[pb.AgentSkill(id="echo", name="Echo", description="Echoes.", tags=["echo"])],
)


Pieces = Callable[[str], AsyncIterator[str]]
"""From a message to the pieces that it asks for."""


def echoed(text: str) -> AsyncIterator[str]:
    """The pieces, made here."""
    return Order.read(text).pieces()


async def provided(text: str) -> AsyncIterator[str]:
    """The pieces, as a provider writes them into the input of a call."""
    async with anthropic.AsyncAnthropic() as client:
        asked: anthropic.types.MessageParam = {"role": "user", "content": text}
        async with await client.messages.create(model="m", max_tokens=1000, messages=[asked], stream=True) as events:
            async for event in events:
                piece = event.delta if event.type == "content_block_delta" else None
                if piece and piece.type == "input_json_delta" and _STAMP.fullmatch(piece.partial_json):
                    yield piece.partial_json


class Writer(AgentExecutor):
    """Writes what the message asks for."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = new_task_from_user_message(context.message)
        task.id, task.context_id = context.task_id or task.id, context.context_id or task.context_id
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        begun = False
        async for piece in self._pieces(get_message_text(context.message)):
            await updater.add_artifact([new_text_part(piece)], artifact_id="text", append=begun)
            begun = True
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


def build_store(database: str) -> TaskStore:
    """The SDK's store for a database."""
    if database == "memory":
        return InMemoryTaskStore()
    url = make_url(database)
    return DatabaseTaskStore(create_async_engine(url.set(drivername=DRIVERS[url.get_backend_name()])))


def build_app(database: str, pieces: Pieces) -> Starlette:
    """The ASGI application."""
    handler = DefaultRequestHandler(Writer(pieces), build_store(database), CARD)
    return Starlette(routes=create_jsonrpc_routes(handler, "/"))


if __name__ == "__main__":
    source = provided if sys.argv[3:] == ["provider"] else echoed
    uvicorn.run(build_app(sys.argv[2], source), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
