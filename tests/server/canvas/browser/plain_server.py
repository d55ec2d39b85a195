"""An A2A 1.0 server without any extension of ours, made with the SDK, that pages of some origins may use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import MethodNotFoundError
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from tests.loopback import serving_app
from tests.server.client.client_harness import card, card_route

LINES = ("# Tides\n\n", "They come ", "and go.\n")


class TideWriter(AgentExecutor):
    """Answers with a message, asks, or writes a document line by line.

    Attributes:
        goes_on: what it waits for in the midst of a document.
    """

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message, wish = context.message, context.get_user_input()
        assert message is not None
        if wish == "message":
            await event_queue.enqueue_event(new_text_message("Just words.", context_id=context.context_id))
            return
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(message))
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        await updater.start_work(new_text_message("I look at the sea."))
        if wish == "ask":
            await updater.requires_input(new_text_message("Which sea?"))
            return
        for number, text in enumerate(LINES):
            await updater.add_artifact([pb.Part(text=text)], "r1", "tides.md", append=number > 0)
            if number == 1:
                await self.goes_on.wait()
        await updater.complete(new_text_message(f"Wrote it: {wish}."))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


class WithoutList(DefaultRequestHandler):
    """It has no `ListTasks`."""

    async def on_list_tasks(self, params: Any, context: ServerCallContext) -> Any:
        raise MethodNotFoundError


class WithItsOwnIds(DefaultRequestHandler):
    """It replaces the id that a client has given a context."""

    async def on_message_send_stream(self, params: Any, context: ServerCallContext) -> AsyncIterator[Any]:
        given = params.message.context_id
        params.message.context_id = given if given.startswith("theirs-") else f"theirs-{given}"
        async for event in super().on_message_send_stream(params, context):
            yield event


@asynccontextmanager
async def plain_server(
    origin: str, *, handler: type[DefaultRequestHandler] = DefaultRequestHandler, streaming: bool = True
) -> AsyncIterator[tuple[str, TideWriter]]:
    """Its address, and its agent.

    Args:
        origin: whose pages may use it.
        handler: what it does otherwise.
    """
    agent = TideWriter()

    def make(url: str) -> ASGIApp:
        content = card(url + "/", streaming=streaming)
        handles = handler(agent, InMemoryTaskStore(), ParseDict(content, pb.AgentCard(), ignore_unknown_fields=True))
        routes = [card_route(content), *create_jsonrpc_routes(handles, "/")]
        return Starlette(routes=routes, middleware=[cors(origin)])

    async with serving_app(make) as url:
        yield url, agent


def cors(origin: str) -> Middleware:
    return Middleware(CORSMiddleware, allow_origins=[origin], allow_methods=["*"], allow_headers=["*"])
