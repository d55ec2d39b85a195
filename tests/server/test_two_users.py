"""Two users of one server: what is ann's does not exist for bob, whatever he calls, over every binding and version."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import grpc.aio
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.compat.v0_3.a2a_v0_3_pb2_grpc import A2AServiceStub as Stub03
from a2a.types import a2a_pb2 as pb
from a2a.types.a2a_pb2_grpc import A2AServiceStub as Stub10
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.protocols.guard.calls import LEGACY_METHODS, REQUESTS
from a2a_canvas.server.protocols.guard.rest_calls import REST_ROUTES
from tests.every_request import HOOK, Place, message_10, rest_requests, rpc_03, rpc_10
from tests.property_examples import examples
from tests.server.app_server import Served, envelope, serving
from tests.server.canvas_client import CANVAS

in_the_loop = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
KEYS = {"ann": new_key("ann"), "bob": new_key("bob")}


def as_user(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[name]}"}


@pytest.fixture(scope="module")
def app_options() -> Json:
    return {"database": "memory", "api_keys": ",".join(f"{name}={key}" for name, key in KEYS.items())}


WORDS = {"completed": "write report", "waiting": "ask"}
"""What ann asks for, by the state that her task is in then."""


def nothing() -> Place:
    """What there is not."""
    return Place(str(uuid4()), f"c-{uuid4()}")


async def begun(served: Served, user: str, words: str, context: str) -> Place:
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "contextId": context, "parts": [{"text": words}]}
    task = (await served.rpc("SendMessage", {"message": message}, **as_user(user)))["result"]["task"]
    return Place(task["id"], task["contextId"])


# ------------------------------------------------------------------------ every request there is


def http_requests(at: Place) -> Iterator[Json]:
    for version, table in (("1.0", rpc_10(at)), ("0.3", rpc_03(at))):
        for method, params in table.items():
            for each in params:
                yield {
                    "method": "POST",
                    "url": "/",
                    "json": envelope(method, each),
                    "headers": {"A2A-Version": version},
                }
    for route in REST_ROUTES:
        for asked in rest_requests(route, at, [{"taskId": at.task}, {"contextId": at.context}]):
            body = {"json": asked.body} if asked.body is not None else {}
            yield {"method": asked.method, "url": asked.url, "headers": dict(asked.headers), **body}
    below = ("", "/events", "/report", "/report/versions", "/report/versions/1", "/report/versions/1/diff", "/shares")
    for path in below:
        yield {"method": "GET", "url": f"/artifacts/{at.context}{path}"}
    yield {"method": "GET", "url": f"/artifacts/{at.context}?format=zip"}
    yield {"method": "GET", "url": f"/artifacts/{at.context}/report?raw=1"}
    yield {"method": "PATCH", "url": f"/artifacts/{at.context}", "json": {"name": "Mine"}}
    yield {"method": "POST", "url": f"/artifacts/{at.context}/shares", "json": {"user": "bob", "level": "edit"}}
    yield {"method": "DELETE", "url": f"/artifacts/{at.context}/shares/1"}
    yield {"method": "DELETE", "url": f"/artifacts/{at.context}"}
    run = {"threadId": at.context, "runId": str(uuid4()), "messages": []}
    for resume in ({"status": "resolved", "payload": "Blue"}, {"status": "cancelled"}):
        body = run | {"resume": [{"interruptId": at.task, **resume}]}
        yield {"method": "POST", "url": "/canvas/stream", "json": body}
    message = {"id": "m", "role": "user", "content": "just say it"}
    yield {"method": "POST", "url": "/canvas/stream", "json": run | {"messages": [message]}}


_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)|(seconds|nanos): \d+")


def plain(text: str, at: Place) -> str:
    """An answer without what differs between two answers to the same."""
    text = text.replace(at.task, "TASK").replace(at.context, "CONTEXT")
    return _TIME.sub("TIME", _ID.sub("ID", text))


async def answer(served: Served, user: str, request: Json, at: Place) -> tuple[int, str, str]:
    """Status, the headers that say what it is, and the body, of a stream to its end or to its first 8 KB."""
    headers = as_user(user) | request.get("headers", {})
    async with served.http.stream(**(request | {"headers": headers})) as response:
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > 8192 or (request["url"].endswith("/events") and body):
                break
    kind = {name: response.headers.get(name) for name in ("content-type", "allow", "cache-control", "www-authenticate")}
    return response.status_code, json.dumps(kind), plain(body.decode("utf-8", "replace"), at)


def label(request: Json) -> str:
    method = request.get("json", {}).get("method", "") if request["url"] == "/" else ""
    return f"{request['method']} {request['url']} {method}"


LABELS = [label(each) for each in http_requests(Place("t", "c"))]


def test_the_table_has_every_operation_of_every_version() -> None:
    at = Place("t", "c")
    assert {*rpc_10(at)} == {*REQUESTS}, REQUESTS
    assert {*rpc_03(at)} == {*LEGACY_METHODS}


@in_the_loop
@pytest.mark.parametrize("number", range(len(LABELS)), ids=LABELS)
@pytest.mark.parametrize("state", WORDS)
async def test_what_is_anothers_is_answered_as_what_is_not_there(served: Served, state: str, number: int) -> None:
    served.gate.open()
    hers, none = await begun(served, "ann", WORDS[state], f"c-{uuid4()}"), nothing()
    before = await seen_of(served, hers)
    for_hers = await answer(served, "bob", [*http_requests(hers)][number], hers)
    for_nothing = await answer(served, "bob", [*http_requests(none)][number], none)
    assert for_hers == for_nothing
    assert await seen_of(served, hers) == before


@in_the_loop
@pytest.mark.parametrize("state", WORDS)
async def test_so_is_it_over_grpc(served: Served, state: str) -> None:
    served.gate.open()
    hers, none = await begun(served, "ann", WORDS[state], f"c-{uuid4()}"), nothing()
    before = await seen_of(served, hers)
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        for calls in zip(grpc_calls(channel, hers), grpc_calls(channel, none), strict=True):
            one, other = [await grpc_answer(call, at) for call, at in zip(calls, (hers, none), strict=True)]
            assert one == other
    assert await seen_of(served, hers) == before


def grpc_calls(channel: Any, at: Place) -> Iterator[Any]:
    new: Any = Stub10(channel)  # type: ignore[no-untyped-call]
    old: Any = Stub03(channel)  # type: ignore[no-untyped-call]
    metadata = (("authorization", f"Bearer {KEYS['bob']}"),)
    name, config = f"tasks/{at.task}", f"tasks/{at.task}/pushNotificationConfigs/hook"
    for ids in ({"task_id": at.task}, {"context_id": at.context}):
        message = pb.Message(message_id=str(uuid4()), role=pb.ROLE_USER, parts=[pb.Part(text="just say it")], **ids)
        yield new.SendMessage(pb.SendMessageRequest(message=message), metadata=metadata)
        legacy = pb03.Message(message_id=str(uuid4()), role=pb03.ROLE_USER, **ids)
        legacy.content.add(text="just say it")
        yield old.SendMessage(pb03.SendMessageRequest(request=legacy), metadata=metadata)
        yield new.SendStreamingMessage(pb.SendMessageRequest(message=message), metadata=metadata)
    yield new.GetTask(pb.GetTaskRequest(id=at.task), metadata=metadata)
    yield new.CancelTask(pb.CancelTaskRequest(id=at.task), metadata=metadata)
    yield new.SubscribeToTask(pb.SubscribeToTaskRequest(id=at.task), metadata=metadata)
    yield new.ListTasks(pb.ListTasksRequest(context_id=at.context), metadata=metadata)
    hook = pb.TaskPushNotificationConfig(task_id=at.task, **HOOK)
    yield new.CreateTaskPushNotificationConfig(hook, metadata=metadata)
    one = pb.GetTaskPushNotificationConfigRequest(task_id=at.task, id="hook")
    yield new.GetTaskPushNotificationConfig(one, metadata=metadata)
    yield new.ListTaskPushNotificationConfigs(
        pb.ListTaskPushNotificationConfigsRequest(task_id=at.task), metadata=metadata
    )
    yield new.DeleteTaskPushNotificationConfig(
        pb.DeleteTaskPushNotificationConfigRequest(task_id=at.task, id="hook"), metadata=metadata
    )
    yield old.GetTask(pb03.GetTaskRequest(name=name), metadata=metadata)
    yield old.CancelTask(pb03.CancelTaskRequest(name=name), metadata=metadata)
    yield old.TaskSubscription(pb03.TaskSubscriptionRequest(name=name), metadata=metadata)
    yield old.GetTaskPushNotificationConfig(pb03.GetTaskPushNotificationConfigRequest(name=config), metadata=metadata)
    yield old.ListTaskPushNotificationConfig(pb03.ListTaskPushNotificationConfigRequest(parent=name), metadata=metadata)
    yield old.DeleteTaskPushNotificationConfig(
        pb03.DeleteTaskPushNotificationConfigRequest(name=config), metadata=metadata
    )


async def grpc_answer(call: Any, at: Place) -> tuple[str, str]:
    try:
        if hasattr(call, "read"):
            events = [str(event) async for event in call]
            return "OK", plain("".join(events), at)
        return "OK", plain(str(await call), at)
    except grpc.aio.AioRpcError as error:
        return str(error.code()), plain(error.details() or "", at)


# ------------------------------------------------------------------------ what was there before there were users


@in_the_loop
async def test_what_anonymous_callers_left_is_of_who_adopts_it(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/before.db"
    async with serving(grpc=False, database=database) as before:
        before.gate.open()
        await begun(before, "ann", "write report", "notes")
        seen = await view(before, "ann")
    with_users = {"database": database, "api_keys": ",".join(f"{name}={key}" for name, key in KEYS.items())}
    async with serving(grpc=False, **with_users) as after:
        after.gate.open()
        assert "notes" not in await view(after, "ann")
        await begun(after, "ann", "write report", "plan")
        hers = await view(after, "ann")
    async with serving(grpc=False, **with_users, adopt_anonymous="ann") as adopted:
        adopted.gate.open()
        assert {*seen.splitlines()[2:]} | {*hers.splitlines()[2:]} <= {*(await view(adopted, "ann")).splitlines()}
        assert "notes" not in await view(adopted, "bob")
        of_bob = await begun(adopted, "bob", "write report", "notes")
        listed = await adopted.rpc("ListTasks", {"contextId": "notes"}, **as_user("ann"))
        assert of_bob.task not in [task["id"] for task in listed["result"]["tasks"]]
        await begun(adopted, "ann", "ask", "notes")
        assert (await adopted.rpc("ListTasks", {"contextId": "notes"}, **as_user("ann")))["result"]["totalSize"] == 2


@in_the_loop
async def test_who_adopts_a_conversation_withdraws_what_others_wrote_in_it(tmp_path: Path) -> None:
    options = {"database": f"sqlite:///{tmp_path}/before.db", "grpc": False}
    context = str(uuid4())
    async with serving(**options) as before:
        await operated(before, "ann", context, op="put", text="One two.", name="doc.md")
        anonymous = await operated(before, "ann", context, op="annotate", selection={"start": 0, "end": 3})
    options["api_keys"] = ",".join(f"{name}={key}" for name, key in KEYS.items())
    async with serving(**options, adopt_anonymous="ann") as adopted:
        share = {"user": "bob", "level": "edit"}
        assert (await adopted.http.post(f"/artifacts/{context}/shares", json=share, headers=as_user("ann"))).is_success
        of_bob = await operated(adopted, "bob", context, op="annotate", selection={"start": 4, "end": 7})
        assert await operated(adopted, "bob", context, op="withdraw", annotationId=anonymous["annotationIds"][0]) == {}
        for theirs in (anonymous, of_bob):
            withdrawn = await operated(adopted, "ann", context, op="withdraw", annotationId=theirs["annotationIds"][0])
            assert withdrawn["annotationIds"] == theirs["annotationIds"]


async def operated(served: Served, user: str, context: str, **operation: Any) -> Json:
    """What the status of an operation names; nothing if it is not completed."""
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "contextId": context, "parts": [{"text": "Why?"}]}
    message["metadata"] = {CANVAS: {"artifactId": "doc", **operation}}
    headers = as_user(user) | {"A2A-Extensions": CANVAS}
    task = (await served.rpc("SendMessage", {"message": message}, **headers))["result"]["task"]
    named: Json = task["status"]["message"].get("metadata", {}).get(CANVAS, {})
    return named if task["status"]["state"] == "TASK_STATE_COMPLETED" else {}


# ------------------------------------------------------------------------ what a user sees


async def seen_of(served: Served, at: Place) -> str:
    """One task and its context, as ann sees them."""
    task = await served.rpc("GetTask", {"id": at.task}, **as_user("ann"))
    return json.dumps(task) + await below(served, f"/artifacts/{at.context}", as_user("ann"))


async def below(served: Served, context: str, headers: Mapping[str, str]) -> str:
    """The artifacts of a context and their versions."""
    listed = await served.http.get(context, headers=headers)
    urls = [url for artifact in listed.json()["artifacts"] for url in artifact["urls"].values()]
    return "\n".join([listed.text, *[(await served.http.get(url, headers=headers)).text for url in urls]])


async def view(served: Served, user: str) -> str:
    """All that a user sees: tasks with their artifacts, contexts, and the artifacts and versions in them."""
    headers = {"A2A-Version": "1.0", **as_user(user)}
    every = envelope("ListTasks", {"pageSize": 100, "includeArtifacts": True})
    tasks = (await served.http.post("/", json=every, headers=headers)).text
    listed = await served.http.get("/artifacts?pageSize=100", headers=headers)
    seen = [tasks, listed.text]
    for context in listed.json()["contexts"]:
        seen.append(await below(served, context["urls"]["artifacts"], headers))
    return "\n".join(seen)


ACTIONS = st.sampled_from(
    [
        *(("send", words, context) for words in ("write report", "ask", "Blue") for context in ("notes", "plan", "")),
        *(("put", "report", context) for context in ("notes", "plan")),
        *((method, "", context) for method in ("PATCH", "DELETE") for context in ("notes", "plan")),
        ("cancel", "", "notes"),
    ]
)


async def do(served: Served, user: str, action: tuple[str, str, str]) -> tuple[int, str]:
    """What a user is told."""
    kind, words, context = action
    at, headers = Place("no task", context or "no context"), {"A2A-Version": "1.0", **as_user(user)}
    match kind:
        case "send" | "put":
            operation = {CANVAS: {"op": "put", "artifactId": words, "name": "report.md", "text": "Mine"}}
            fields = {"contextId": context, "metadata": operation if kind == "put" else {}}
            body = envelope("SendMessage", message_10(**fields))
            body["params"]["message"]["parts"] = [{"text": words}]
            response = await served.http.post("/", json=body, headers=headers)
        case "cancel":
            listed = await served.rpc("ListTasks", {"contextId": context}, **as_user(user))
            ids = [task["id"] for task in listed["result"]["tasks"]]
            response = await served.http.post(
                "/", json=envelope("CancelTask", {"id": ids[0] if ids else "none"}), headers=headers
            )
        case _:
            body = {"json": {"name": "Mine"}} if kind == "PATCH" else {}
            response = await served.http.request(kind, f"/artifacts/{context}", headers=headers, **body)
    return response.status_code, plain(response.text, at)


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_no_calls_of_one_user_change_what_another_sees_or_is_told(data: st.DataObject) -> None:
    turns = data.draw(st.lists(st.tuples(st.sampled_from(["ann", "bob"]), ACTIONS), max_size=12))
    asyncio.run(_check(turns))


async def _check(turns: list[tuple[str, tuple[str, str, str]]]) -> None:
    options: Json = {"database": "memory", "api_keys": ",".join(f"{name}={key}" for name, key in KEYS.items())}
    async with serving(grpc=False, **options) as both, serving(grpc=False, **options) as alone:
        both.gate.open()
        alone.gate.open()
        for user, action in turns:
            others = "bob" if user == "ann" else "ann"
            before = await view(both, others)
            told = await do(both, user, action)
            assert await view(both, others) == before
            if user == "bob":
                assert await do(alone, user, action) == told
        at = Place("no task", "no context")
        assert plain(await view(both, "bob"), at) == plain(await view(alone, "bob"), at)


# ------------------------------------------------------------------------ an id that two users have used

SHARED_ID = "5f1c0f8e-2f0b-4f55-9d4e-0f6a1c3b2d70"
STEPS = st.tuples(st.sampled_from(["ann", "bob"]), st.sampled_from(["send", "send", "delete", "share", "unshare"]))


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(STEPS, max_size=14))
@example([("ann", "send"), ("ann", "delete"), ("bob", "send"), ("bob", "share"), ("ann", "send")])
def test_what_a_user_sends_to_an_id_that_it_has_used_reaches_its_own_context_or_nobody(
    steps: list[tuple[str, str]],
) -> None:
    asyncio.run(_check_used_id(steps))


async def _check_used_id(steps: list[tuple[str, str]]) -> None:
    options: Json = {"database": "memory", "api_keys": ",".join(f"{name}={key}" for name, key in KEYS.items())}
    async with serving(grpc=False, **options) as served:
        served.gate.open()
        used, gives = set[str](), set[str]()  # who has had a context of this id, and shares it now
        for user, step in steps:
            other = "bob" if user == "ann" else "ann"
            if step == "send":
                message = message_10(contextId=SHARED_ID)
                answer = await served.rpc("SendMessage", message, **as_user(user))
                own = user in used or other not in gives
                task = await served.rpc("GetTask", {"id": answer["result"]["task"]["id"]}, **as_user(other))
                assert ("result" in task) == (not own or user in gives)
                used |= {user} if own else set()
            else:
                done = await use_id(served, user, other, step)
                gives |= {user} if step == "share" and done else set()
                gives -= {user} if step in ("delete", "unshare") and done and user in used else set()


async def use_id(served: Served, user: str, other: str, step: str) -> bool:
    """Whether it was done."""
    url, headers = f"/artifacts/{SHARED_ID}", as_user(user)
    if step == "delete":
        return (await served.http.delete(url, headers=headers)).status_code == 204
    if step == "share":
        body = {"user": other, "level": "edit"}
        return (await served.http.post(f"{url}/shares", json=body, headers=headers)).status_code == 201
    shares = (await served.http.get(f"{url}/shares", headers=headers)).json().get("shares", [])
    given = [share["shareId"] for share in shares if share["user"] == other]
    return all([(await served.http.delete(f"{url}/shares/{id}", headers=headers)).status_code == 204 for id in given])
