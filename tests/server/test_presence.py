"""Who has a context open, over HTTP: everybody who may read it is seen there, and says where the cursor stands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from a2a_canvas.server.accounts.api_key import new_key
from tests.server.app_server import Served
from tests.sse_events import sse_events

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
KEYS = {name: new_key(name) for name in ("ann", "bob", "carol")}
SOON = 30.0
AT = {"window": "w", "artifactId": "report", "version": 1, "start": 2, "end": 8}


@pytest.fixture(scope="module")
def app_options() -> Json:
    return {"database": "memory", "api_keys": ",".join(f"{name}={key}" for name, key in KEYS.items())}


def as_user(who: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS.get(who, who)}"}


async def send(served: Served, context: str, text: str, **settings: Any) -> None:
    message = {"messageId": str(uuid4()), "contextId": context, "role": "ROLE_USER", "parts": [{"text": text}]}
    await served.rpc("SendMessage", {"message": message, **settings}, **as_user("ann"))


@pytest_asyncio.fixture(loop_scope="module")
async def notes(served: Served) -> str:
    """A context of ann's with an artifact, which bob may read."""
    served.gate.open()
    context = str(uuid4())
    await send(served, context, "write report")
    await share(served, context, user="bob")
    return context


async def share(served: Served, context: str, **fields: Any) -> Json:
    answer = await served.http.post(f"/artifacts/{context}/shares", json=fields, headers=as_user("ann"))
    made: Json = answer.json()
    return made


async def move(served: Served, who: str, context: str, body: Json) -> tuple[int, str]:
    answer = await served.http.post(f"/artifacts/{context}/presence", json=body, headers=as_user(who))
    return answer.status_code, answer.text


async def rosters(served: Served, who: str, context: str) -> AsyncGenerator[Json, None]:
    path = f"/artifacts/{context}/events"
    async with served.http.stream("GET", path, headers=as_user(who)) as response:
        async for fields in sse_events(response):
            if fields.get("event") == "presence":
                assert {*fields} == {"event", "data"}
                yield json.loads(fields["data"])


async def shows(stream: AsyncGenerator[Json, None], expected: dict[str, list[Json]]) -> Json:
    """Until the stream shows these people with these cursors."""
    async with asyncio.timeout(SOON):
        async for roster in stream:
            if {each["name"]: each["cursors"] for each in roster["people"]} == expected:
                return roster
    raise AssertionError("the stream has ended")


async def test_who_reads_is_seen_with_the_cursor_until_the_stream_ends(served: Served, notes: str) -> None:
    async with aclosing(rosters(served, "ann", notes)) as ann:
        await shows(ann, {"ann": []})
        async with aclosing(rosters(served, "bob", notes)) as bob:
            await shows(bob, {"ann": [], "bob": []})
            assert await move(served, "bob", notes, AT) == (204, "")
            seen = await shows(ann, {"ann": [], "bob": [AT]})
            assert await shows(bob, {"ann": [], "bob": [AT]}) == seen
            assert await move(served, "bob", notes, {"window": "w"}) == (204, "")
            await shows(ann, {"ann": [], "bob": []})
        await shows(ann, {"ann": []})


async def test_a_caller_with_a_link_is_a_guest(served: Served, notes: str) -> None:
    token = (await share(served, notes, link=True))["token"]
    async with aclosing(rosters(served, "ann", notes)) as ann, aclosing(rosters(served, token, notes)) as guest:
        await shows(ann, {"ann": []})
        await shows(guest, {"ann": [], "guest": []})
        assert await move(served, token, notes, AT) == (204, "")
        roster = await shows(ann, {"ann": [], "guest": [AT]})
    assert [(each["name"], each["guest"]) for each in roster["people"]] == [("ann", False), ("guest", True)]


async def test_an_agent_is_seen_at_the_end_of_what_it_writes(served: Served, notes: str) -> None:
    served.gate.close()
    async with aclosing(rosters(served, "ann", notes)) as ann:
        await shows(ann, {"ann": []})
        await send(served, notes, "slowly notes", configuration={"returnImmediately": True})
        served.gate.let(13)
        async with asyncio.timeout(SOON):
            while not (agents := (await anext(ann))["agents"]) or agents[0]["end"] < 10:
                pass
        assert (agents[0]["artifactId"], agents[0]["start"]) == ("notes", agents[0]["end"])
        served.gate.open()
        async with asyncio.timeout(SOON):
            while (await anext(ann))["agents"]:
                pass


async def test_who_may_not_read_is_told_that_there_is_no_such_context(served: Served, notes: str) -> None:
    status, told = await move(served, "carol", notes, AT)
    assert (status, json.loads(told)["error"]["details"][0]["reason"]) == (404, "CONTEXT_NOT_FOUND")
    unknown = await move(served, "bob", str(uuid4()), AT)
    assert unknown[0] == 404


async def test_what_is_no_move_is_refused_and_names_its_field(served: Served, notes: str) -> None:
    status, told = await move(served, "bob", notes, AT | {"end": 1})
    assert (status, json.loads(told)["error"]["message"]) == (400, "end is 1 and must not be before start, 2.")
    answer = await served.http.get(f"/artifacts/{notes}/presence", headers=as_user("bob"))
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
