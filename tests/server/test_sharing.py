"""Contexts that their owner shares: with a user and by a link, over HTTP and A2A, until the share ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from a2a.client import A2AClientError, ClientCallContext
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.protocols.guard.bodies import SMALL_BODY_BYTES
from a2a_canvas.server.protocols.pipeline.grpc_pipeline import SERVICES
from a2a_canvas.server.tasks.journal import cursors
from tests.server.app_server import WAYS, Served, asking, envelope
from tests.server.canvas_client import CANVAS, with_metadata

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
KEYS = {name: new_key(name) for name in ("ann", "bob", "carol")}


@pytest.fixture(scope="module")
def app_options() -> Json:
    return {"database": "memory", "api_keys": ",".join(f"{name}={key}" for name, key in KEYS.items())}


@pytest_asyncio.fixture(loop_scope="module")
async def notes(served: Served) -> str:
    """A context of ann's with an artifact."""
    served.gate.open()
    context = str(uuid4())
    await send(served, "ann", context)
    return context


def as_user(who: str) -> dict[str, str]:
    """The credentials of a user, or a link's token."""
    return {"Authorization": f"Bearer {KEYS.get(who, who)}"}


async def send(served: Served, who: str, context: str, text: str = "write report") -> Json:
    parts, message_id = [{"text": text}], str(uuid4())
    message = {"messageId": message_id, "contextId": context, "role": "ROLE_USER", "parts": parts}
    return await served.rpc("SendMessage", {"message": message}, **as_user(who))


async def share(served: Served, context: str, who: str = "ann", **fields: Any) -> Json:
    answer = await served.http.post(f"/artifacts/{context}/shares", json=fields, headers=as_user(who))
    assert answer.status_code == 201, answer.text
    made: Json = answer.json()
    return made


async def get(served: Served, who: str, path: str = "") -> tuple[int, Json]:
    answer = await served.http.get(f"/artifacts{path}", headers=as_user(who))
    return answer.status_code, answer.json()


async def status(served: Served, who: str, method: str, path: str, body: Json | None = None) -> int:
    answer = await served.http.request(method, f"/artifacts{path}", json=body, headers=as_user(who))
    return answer.status_code


# ------------------------------------------------------------------------------- sharing


async def test_whoever_may_read_reads_everything_and_changes_nothing(served: Served, notes: str) -> None:
    assert (await get(served, "bob", f"/{notes}"))[0] == 404
    made = await share(served, notes, user="bob")
    assert {**made, "shareId": "", "createdAt": ""} == {"shareId": "", "user": "bob", "level": "read", "createdAt": ""}
    _, listing = await get(served, "bob", f"/{notes}")
    assert listing["shared"] == {"owner": "ann", "level": "read"}
    [artifact] = listing["artifacts"]
    path = artifact["urls"]["artifact"].removeprefix("/artifacts")
    for below in ("", "/versions", "/versions/1", "/versions/1/diff"):
        assert (await get(served, "bob", path + below))[0] == 200
    [task] = (await served.rpc("ListTasks", {"contextId": notes}, **as_user("bob")))["result"]["tasks"]
    assert "result" in await served.rpc("GetTask", {"id": task["id"]}, **as_user("bob"))
    assert (await send(served, "bob", notes))["error"]["message"].startswith(
        "Your share of this context does not allow that"
    )
    assert "error" in await served.rpc("CancelTask", {"id": task["id"]}, **as_user("bob"))
    assert (await get(served, "carol", f"/{notes}"))[0] == 404


async def test_whoever_may_edit_adds_versions_that_name_the_user_that_made_them(served: Served, notes: str) -> None:
    await share(served, notes, user="bob", level="edit")
    assert "result" in await send(served, "bob", notes)
    [artifact] = (await get(served, "ann", f"/{notes}"))[1]["artifacts"]
    path = artifact["urls"]["versions"].removeprefix("/artifacts")
    versions = (await get(served, "ann", path))[1]["versions"]
    assert [each["by"] for each in versions] == ["ann", "bob"]
    assert (await get(served, "ann", f"{path}/2"))[1]["by"] == "bob"


@pytest.mark.parametrize("level", ["read", "edit"])
async def test_only_the_owner_renames_removes_and_shares(served: Served, notes: str, level: str) -> None:
    await share(served, notes, user="bob", level=level)
    of_dan = await share(served, notes, user="dan", level=level)
    for who, expected in (("bob", 403), ("carol", 404)):
        assert await status(served, who, "PATCH", f"/{notes}", {"name": "Mine"}) == expected
        assert await status(served, who, "DELETE", f"/{notes}") == expected
        assert await status(served, who, "POST", f"/{notes}/shares", {"user": "dan"}) == expected
        assert await status(served, who, "DELETE", f"/{notes}/shares/{of_dan['shareId']}") == expected
    assert await status(served, "carol", "GET", f"/{notes}/shares") == 404
    assert [each["user"] for each in (await get(served, "ann", f"/{notes}/shares"))[1]["shares"]] == ["bob", "dan"]


async def test_a_user_sees_its_own_share_and_leaves(served: Served, notes: str) -> None:
    made = await share(served, notes, user="bob")
    await share(served, notes, user="carol")
    assert (await get(served, "bob", f"/{notes}/shares"))[1]["shares"] == [made]
    assert await status(served, "bob", "DELETE", f"/{notes}/shares/{made['shareId']}") == 204
    assert (await get(served, "bob", f"/{notes}"))[0] == 404
    assert [each["user"] for each in (await get(served, "ann", f"/{notes}/shares"))[1]["shares"]] == ["carol"]


async def test_a_user_leaves_with_an_operation(served: Served, notes: str) -> None:
    made = await share(served, notes, user="bob")
    message = {"messageId": "m", "contextId": notes, "role": "ROLE_USER", "parts": [{"text": "Leave"}]}
    asked = {"op": "unshare", "shareId": made["shareId"]}
    answer = await served.rpc("SendMessage", {"message": message | {"metadata": {CANVAS: asked}}}, **as_user("bob"))
    assert answer["result"]["message"]["parts"][0]["data"] == {"contextId": notes, "shares": []}
    assert (await get(served, "bob", f"/{notes}"))[0] == 404


@pytest.mark.parametrize("level", ["read", "edit"])
async def test_whoever_has_a_link_neither_sees_nor_ends_shares(served: Served, notes: str, level: str) -> None:
    made = await share(served, notes, link=True, level=level)
    for method, below in (("GET", ""), ("DELETE", f"/{made['shareId']}")):
        assert await status(served, made["token"], method, f"/{notes}/shares{below}") == 403


async def test_a_share_ends_when_it_is_revoked(served: Served, notes: str) -> None:
    made = await share(served, notes, user="bob")
    path = f"/{notes}/shares/{made['shareId']}"
    assert await status(served, "ann", "DELETE", path) == 204
    assert await status(served, "ann", "DELETE", path) == 404
    assert (await get(served, "bob", f"/{notes}"))[0] == 404


async def test_a_link_is_a_credential_for_one_context_and_told_once(served: Served, notes: str) -> None:
    await send(served, "ann", other := f"other-{uuid4()}")
    made = await share(served, notes, link=True)
    token = made["token"]
    assert made["url"] == f"{served.url}/#share={token}"
    assert (await get(served, token, f"/{notes}"))[1]["shared"] == {"owner": "ann", "level": "read"}
    assert (await get(served, token, f"/{other}"))[0] == 404
    assert [each["contextId"] for each in (await get(served, token))[1]["contexts"]] == [notes]
    refused = (await send(served, token, notes))["error"]["message"]
    assert refused.startswith("Your share of this context does not allow that")
    assert notes not in refused
    assert (await send(served, token, f"new-{uuid4()}"))["error"]["message"].startswith(
        "Your link gives access to one context"
    )
    listed = (await get(served, "ann", f"/{notes}/shares"))[1]["shares"]
    assert listed == [{name: made[name] for name in ("shareId", "link", "level", "createdAt")}]
    await status(served, "ann", "DELETE", f"/{notes}/shares/{made['shareId']}")
    assert (await get(served, token, f"/{notes}"))[0] == 401


async def test_the_extended_card_is_not_for_whoever_has_a_link(served: Served, notes: str) -> None:
    guest = (await share(served, notes, link=True))["token"]
    rpc = await served.rpc("GetExtendedAgentCard", {}, **as_user(guest))
    rest = await served.http.get("/rest/extendedAgentCard", headers=as_user(guest) | {"A2A-Version": "1.0"})
    with pytest.raises(A2AClientError, match="The extended card is for users") as refused:
        context = ClientCallContext(service_parameters=as_user(guest))
        await served.client("GRPC").get_extended_agent_card(pb.GetExtendedAgentCardRequest(), context=context)
    assert "PERMISSION_DENIED" in repr(refused.value.__cause__)
    assert (rest.status_code, rest.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert rpc["error"]["code"] == -32043
    assert rpc["error"]["message"] == rest.json()["error"]["message"]
    assert "result" in await served.rpc("GetExtendedAgentCard", {}, **as_user("bob"))


async def test_a_search_finds_texts_in_contexts_that_the_caller_may_read_and_in_no_other(
    served: Served, notes: str
) -> None:
    async def found(who: str) -> dict[str, Json]:
        contexts, token = {}, ""
        while True:
            code, page = await get(served, who, f"?text={word}&pageToken={token}")
            assert code == 200
            contexts |= {each["contextId"]: each.get("shared") for each in page["found"]}
            if not (token := page["nextPageToken"]):
                return contexts

    [artifact] = (await get(served, "ann", f"/{notes}"))[1]["artifacts"]
    raw = await served.http.get(artifact["urls"]["artifact"] + "?raw=1", headers=as_user("ann"))
    word = max(raw.text.split(), key=len)
    assert (await found("ann"))[notes] is None
    assert notes not in await found("bob")
    assert notes not in await found("carol")
    made = await share(served, notes, user="bob")
    assert (await found("bob"))[notes] == {"owner": "ann", "level": "read"}
    link = await share(served, notes, link=True)
    assert await found(link["token"]) == {notes: {"owner": "ann", "level": "read"}}
    for each in (made, link):
        assert await status(served, "ann", "DELETE", f"/{notes}/shares/{each['shareId']}") == 204
    assert notes not in await found("bob")
    assert (await get(served, link["token"], f"?text={word}"))[0] == 401


async def test_whoever_edits_with_a_link_is_named_by_it(served: Served, notes: str) -> None:
    made = await share(served, notes, link=True, level="edit")
    assert "result" in await send(served, made["token"], notes)
    [artifact] = (await get(served, "ann", f"/{notes}"))[1]["artifacts"]
    versions = (await get(served, "ann", artifact["urls"]["versions"].removeprefix("/artifacts")))[1]["versions"]
    assert versions[-1]["by"] == f"link {made['shareId']}"


@pytest.mark.parametrize("form", ["span", "time"])
async def test_a_share_tells_when_it_expires(served: Served, notes: str, form: str) -> None:
    expires = 3600 if form == "span" else (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    made = await share(served, notes, user="bob", expires=expires)
    left = datetime.fromisoformat(made["expires"]) - datetime.now(UTC)
    assert timedelta(minutes=50) < left <= timedelta(hours=1)


async def test_shared_contexts_are_listed_and_an_own_one_of_the_same_id_hides_them(served: Served, notes: str) -> None:
    made = await share(served, notes, user="bob")

    async def listed() -> list[Any]:
        contexts = (await get(served, "bob"))[1]["contexts"]
        return [each.get("shared") for each in contexts if each["contextId"] == notes]

    assert await listed() == [{"owner": "ann", "level": "read"}]
    await status(served, "ann", "DELETE", f"/{notes}/shares/{made['shareId']}")
    await send(served, "bob", notes, "hello")  # a context of bob's own
    await share(served, notes, user="bob")
    assert await listed() == [None]
    assert (await get(served, "bob", f"/{notes}"))[1]["artifacts"] == []


# -------------------------------------------------------------------- operations of A2A


async def asked(served: Served, way: tuple[str, str], context: str, streaming: bool, **operation: Any) -> Json:
    """What an operation of ann's is answered with."""
    request = with_metadata(context, "Share", {CANVAS: operation})
    call = ClientCallContext(service_parameters=as_user("ann"))
    [answer] = [each async for each in served.client(*way, streaming=streaming).send_message(request, context=call)]
    assert answer.HasField("message")
    assert answer.message.context_id == context
    told: Json = MessageToDict(answer.message.parts[0].data)
    return told


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "unary"])
@pytest.mark.parametrize("way", WAYS, ids=" ".join)
async def test_an_operation_is_answered_with_a_message_and_leaves_no_task(
    served: Served, notes: str, way: tuple[str, str], streaming: bool
) -> None:
    made = await asked(served, way, notes, streaming, op="share", link=True, expires=60)
    token = made["share"]["token"]
    given = await asked(served, way, notes, streaming, op="share", user="bob", level="edit")
    told = await asked(served, way, notes, streaming, op="shares")
    assert [each["level"] for each in told["shares"]] == ["read", "edit"]
    assert "token" not in told["shares"][0]
    left = await asked(served, way, notes, streaming, op="unshare", shareId=given["share"]["shareId"])
    assert [each["shareId"] for each in left["shares"]] == [made["share"]["shareId"]]
    tasks = (await served.rpc("ListTasks", {"contextId": notes, "historyLength": 99}, **as_user("ann")))["result"]
    assert len(tasks["tasks"]) == 1
    assert token not in json.dumps(tasks)


REFUSED = {
    "nobody": ({"op": "share"}, "user or link must be given"),
    "both": ({"op": "share", "user": "bob", "link": True}, "user or link must be given"),
    "herself": ({"op": "share", "user": "ann"}, "user is the owner"),
    "unknown level": ({"op": "share", "user": "bob", "level": "own"}, "level"),
    "unknown field": ({"op": "share", "user": "bob", "until": 3}, "until is no field"),
    "no time": ({"op": "share", "user": "bob", "expires": "tomorrow"}, "expires is 'tomorrow'"),
    "no zone": ({"op": "share", "user": "bob", "expires": "2999-01-01T00:00:00"}, "expires is"),
    "past": ({"op": "share", "user": "bob", "expires": "2001-01-01T00:00:00Z"}, "in the past"),
    "no share": ({"op": "unshare", "shareId": "x"}, "has no share 'x'"),
    "no id": ({"op": "unshare"}, "shareId"),
    "more": ({"op": "shares", "user": "bob"}, "user is no field"),
    "a name like a link's": ({"op": "share", "user": "link x"}, "user is no user's name"),
    "a blank name": ({"op": "share", "user": " "}, "user is no user's name"),
}


@pytest.mark.parametrize(("operation", "reason"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_shared_is_refused_with_a_reason(
    served: Served, notes: str, operation: Json, reason: str
) -> None:
    message = {"messageId": "m", "contextId": notes, "role": "ROLE_USER", "parts": [{"text": "Share"}]}
    answer = await served.rpc("SendMessage", {"message": message | {"metadata": {CANVAS: operation}}}, **as_user("ann"))
    assert reason in answer["error"]["message"]


@pytest.mark.parametrize("who", ["bob", "carol"])
async def test_an_operation_of_somebody_else_is_refused(served: Served, notes: str, who: str) -> None:
    await share(served, notes, user="bob", level="edit")
    message = {"messageId": "m", "contextId": notes, "role": "ROLE_USER", "parts": [{"text": "Share"}]}
    asks = {"message": message | {"metadata": {CANVAS: {"op": "share", "link": True}}}}
    refused = (await served.rpc("SendMessage", asks, **as_user(who)))["error"]["message"]
    assert ("There is no context" in refused) == (who == "carol")


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
async def test_a_guest_gets_and_follows_tasks_over_every_binding_and_sends_nothing(
    served: Served, notes: str, way: tuple[str, str]
) -> None:
    token = (await share(served, notes, link=True))["token"]
    client, call = served.client(*way), ClientCallContext(service_parameters=as_user(token))
    [task] = (await served.rpc("ListTasks", {"contextId": notes}, **as_user(token)))["result"]["tasks"]
    assert (await client.get_task(pb.GetTaskRequest(id=task["id"]), context=call)).id == task["id"]
    # Over HTTP+JSON the SDK's client tells no reason that A2A does not know.
    refused = "Your share of this context does not allow that|HTTP Error 403"
    with pytest.raises(Exception, match=refused):
        [_ async for _ in client.send_message(asking("write report", context=notes), context=call)]
    with pytest.raises(Exception, match=refused):
        await client.cancel_task(pb.CancelTaskRequest(id=task["id"]), context=call)


async def test_whoever_may_only_read_begins_no_run_of_ag_ui(served: Served, notes: str) -> None:
    await share(served, notes, user="bob")
    run = {"threadId": notes, "runId": "r", "messages": [{"id": "r", "role": "user", "content": "write report"}]}
    answer = await served.http.post("/canvas/stream", json=run, headers=as_user("bob"))
    assert (answer.status_code, answer.json()["error"]["status"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/canvas/stream"),
        ("POST", "/rest/message:send"),
        ("POST", "/rest/v1/message:stream"),
        ("POST", "/artifacts/{notes}/shares"),
        ("PATCH", "/artifacts/{notes}"),
    ],
)
async def test_what_a_guest_may_not_send_is_not_parsed(served: Served, notes: str, method: str, path: str) -> None:
    guest = as_user((await share(served, notes, link=True))["token"]) | {"Content-Type": "application/json"}
    answer = await served.http.request(method, path.format(notes=notes), content=b"[][]", headers=guest)
    assert (answer.status_code, answer.json()["error"]["status"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize("path", ["/", "/rest/message:send", "/rest/tasks/t:cancel", "/canvas/stream"])
async def test_what_only_a_message_of_a_guest_could_be_is_not_parsed(served: Served, notes: str, path: str) -> None:
    guest = as_user((await share(served, notes, link=True))["token"]) | {"Content-Type": "application/json"}
    answer = await served.http.post(path, content=b"[" * (SMALL_BODY_BYTES + 1), headers=guest)
    assert answer.json()["error"]["message"].startswith("Your share of this context does not allow that")
    assert answer.json()["error"]["code"] in (403, -32043)


@pytest.mark.parametrize("service", SERVICES)
async def test_a_message_of_a_guest_over_grpc_is_not_parsed(served: Served, notes: str, service: str) -> None:
    token = (await share(served, notes, link=True))["token"]
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        call = channel.unary_unary(f"/{service}/SendMessage")
        with pytest.raises(grpc.aio.AioRpcError, match="Your share of this context does not allow that") as caught:
            await call(b"no message", metadata=[("authorization", as_user(token)["Authorization"])])
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_a_guest_who_may_edit_sends_messages_of_any_size(served: Served, notes: str) -> None:
    token = (await share(served, notes, link=True, level="edit"))["token"]
    assert "result" in await send(served, token, notes, "write report " + "x" * SMALL_BODY_BYTES)


# ------------------------------------------------------------------------------- streams


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "CHECK_SECONDS", 0.05)


async def working(served: Served, notes: str) -> str:
    """A task of ann's that works until the test ends."""
    message = asking("slowly report", context=notes, now=True)
    call = ClientCallContext(service_parameters=as_user("ann"))
    [answer] = [each async for each in served.client(streaming=False).send_message(message, context=call)]
    return answer.task.id


async def lines(served: Served, method: str, path: str, who: str, **body: Any) -> AsyncIterator[str]:
    headers = as_user(who) | {"A2A-Version": "1.0"}
    async with served.http.stream(method, path, headers=headers, **body) as response:
        async for line in response.aiter_lines():
            yield line


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("kind", ["SubscribeToTask", "events"])
async def test_the_streams_of_a_guest_end_with_the_share(served: Served, notes: str, kind: str) -> None:
    made = await share(served, notes, user="bob")
    if kind == "events":
        stream = lines(served, "GET", f"/artifacts/{notes}/events", "bob")
    else:
        served.gate.close()
        task = await working(served, notes)
        stream = lines(served, "POST", "/", "bob", json=envelope(kind, {"id": task}))
    assert (await anext(stream)).startswith(("data: ", "id: "))
    await status(served, "ann", "DELETE", f"/{notes}/shares/{made['shareId']}")
    rest = [line async for line in stream]
    assert ("Task not found" in "".join(rest)) == (kind != "events")
    served.gate.open()


@pytest.mark.usefixtures("soon")
async def test_a_run_of_ag_ui_ends_with_the_share(served: Served, notes: str) -> None:
    made = await share(served, notes, user="bob", level="edit")
    served.gate.close()
    message = {"id": str(uuid4()), "role": "user", "content": "slowly report"}
    run = {"threadId": notes, "runId": "r", "messages": [message]}
    stream = lines(served, "POST", "/canvas/stream", "bob", json=run)
    await anext(stream)
    await status(served, "ann", "DELETE", f"/{notes}/shares/{made['shareId']}")
    rest = "".join([line async for line in stream])
    assert "RUN_ERROR" in rest
    served.gate.open()
