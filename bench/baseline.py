"""The baseline: the SDK's `DefaultRequestHandler`, set up as in the SDK's samples.

Run as `python -m bench.baseline PORT DATABASE`. The database is `memory` for the `InMemoryTaskStore`, otherwise an
address as our own server takes it, for the `DatabaseTaskStore` on an engine with SQLAlchemy's defaults. The executor
echoes the pieces that the message asks for (`pace.py`) into one artifact, the first with `append=false`, all others
with `append=true`.
"""

from __future__ import annotations

import sys

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

from bench.pace import Order

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


class Echo(AgentExecutor):
    """Writes what the message asks for."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = new_task_from_user_message(context.message)
        task.id, task.context_id = context.task_id or task.id, context.context_id or task.context_id
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        begun = False
        async for piece in Order.read(get_message_text(context.message)).pieces():
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


def build_app(database: str) -> Starlette:
    """The ASGI application."""
    handler = DefaultRequestHandler(Echo(), build_store(database), CARD)
    return Starlette(routes=create_jsonrpc_routes(handler, "/"))


if __name__ == "__main__":
    uvicorn.run(build_app(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
