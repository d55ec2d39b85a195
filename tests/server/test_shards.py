"""Ids that can be sharded: whatever a server hands out says the shard of what it is about, over every binding."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID, uuid4

import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError
from a2a.utils.task import decode_list_tasks_cursor
from sqlalchemy import Table

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.backend import sql_backend  # noqa: F401  (defines all tables)
from a2a_canvas.server.protocols.edge.page_tokens import context_position_of
from a2a_canvas.store.ids import SEPARATOR, context_key, new_id, shard_of
from a2a_canvas.store.sql.tables import metadata
from tests.server.app_server import WAYS, asking, sent, serving

KEYS = {name: new_key(name) for name in ("ann", "bob")}
USERS = ",".join(f"{name}={key}" for name, key in KEYS.items())
AS_ANN = {"Authorization": f"Bearer {KEYS['ann']}"}


@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_a_context_and_its_task_are_uuids_of_version_8_of_one_shard(way: Any) -> None:
    async with serving(database="memory") as served:
        served.gate.open()
        first = await sent(served, way, asking("write report"))
        assert (UUID(first.context_id).version, UUID(first.id).version) == (8, 8)
        assert shard_of(first.id) == shard_of(first.context_id)
        second = await sent(served, way, asking("write report", context=first.context_id))
        assert (second.context_id, shard_of(second.id)) == (first.context_id, shard_of(first.context_id))
        found = await served.http.get(f"/artifacts/{first.context_id}")
        assert found.json()["contextId"] == first.context_id


@pytest.mark.parametrize("context", ["b7d7c3a1-5a0f-4c39-9a3e-2f4f0c9d1e11", "notes"])
async def test_a_task_has_the_shard_of_a_context_that_its_client_named(context: str) -> None:
    async with serving(database="memory", grpc=False) as served:
        served.gate.open()
        task = await sent(served, WAYS[0], asking("write report", context=context))
        assert shard_of(task.id) == shard_of(context_key("", context))


async def test_a_message_without_a_context_starts_one_in_the_same_shard_on_every_server() -> None:
    """So a second server that gets the message again asks the database that has the first."""
    message_id = str(uuid4())
    shards = set()
    async with AsyncExitStack() as stack:
        for _ in range(2):
            served = await stack.enter_async_context(serving(database="memory", grpc=False))
            served.gate.open()
            task = await sent(served, WAYS[0], asking("write report", message_id=message_id))
            shards.add(shard_of(task.context_id))
        other = await sent(served, WAYS[0], asking("write report"))
    assert len(shards) == 1
    assert other.context_id != task.context_id


async def test_links_and_keys_and_page_tokens_say_a_shard(tmp_path) -> None:
    async with serving(database=f"sqlite:///{tmp_path}/canvas.db", grpc=False, api_keys=USERS) as served:
        served.gate.open()
        contexts = [str(uuid4()), "notes", "plan"]
        for context in contexts:
            message = {
                "messageId": str(uuid4()),
                "role": "ROLE_USER",
                "contextId": context,
                "parts": [{"text": "write report"}],
            }
            assert "result" in await served.rpc("SendMessage", {"message": message}, **AS_ANN)
        for context in contexts:
            made = await served.http.post(
                f"/artifacts/{context}/shares", json={"link": True, "level": "read"}, headers=AS_ANN
            )
            token = made.json()["token"]
            assert int(token.removeprefix("a2al_")[:3], 16) == shard_of(context_key("ann", context))
        assert {int(key.removeprefix("a2ac_")[:3], 16) for key in KEYS.values()} == {shard_of("ann"), shard_of("bob")}
        assert await listed(served, contexts) == contexts[::-1]


@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_an_id_of_another_installation_is_an_unknown_one(way: Any) -> None:
    async with serving(database="memory") as served:
        served.gate.open()
        own = await sent(served, way, asking("write report"))
        client = served.client(*way)
        unknown = ("nope", new_id(shard_of(own.id)), new_id(shard_of(own.id) ^ 1))
        got = {await refusal(client.get_task(pb.GetTaskRequest(id=each)), each) for each in unknown}
        cancelled = {await refusal(client.cancel_task(pb.CancelTaskRequest(id=each)), each) for each in unknown}
        assert (len(got), len(cancelled)) == (1, 1)


async def refusal(request: Awaitable[Any], task_id: str) -> tuple[type, str]:
    """How a request about a task is refused, without its id."""
    with pytest.raises(A2AError) as refused:
        await request
    return refused.type, str(refused.value).replace(task_id, "…")


async def listed(served: Any, contexts: list[str]) -> list[str]:
    """All contexts, read page by page; each page token says the shard of the last one of its page."""
    found, token = [], ""
    while not found or token:
        page = (await served.http.get("/artifacts", params={"pageSize": 1, "pageToken": token}, headers=AS_ANN)).json()
        [context] = page["contexts"]
        found.append(context["contextId"])
        if token := page["nextPageToken"]:
            position = context_position_of(token)
            assert position is not None
            assert position[1] == (key := context_key("ann", found[-1]))
            assert f"{shard_of(key):03x}{SEPARATOR}{key}" in decode_list_tasks_cursor(token).task_id
    return found


@pytest.mark.parametrize("table", [each for each in metadata.tables.values() if "context_id" in each.c], ids=str)
def test_each_table_by_context_has_the_rows_of_a_shard_together(table: Table) -> None:
    """The key of a context begins with its shard: it is first in the primary key, or in an index."""
    ordered = [next(iter(table.primary_key)), *(next(iter(index.columns)) for index in table.indexes)]
    assert table.c.context_id in ordered or table.name == "task_contexts"  # found by the rows of `tasks`
