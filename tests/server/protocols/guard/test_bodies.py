"""How much of all bodies together there may be: over every entrance, and what becomes of what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import partial
from itertools import islice
from typing import Any

import grpc
import grpc.aio
import httpx
import pytest
from a2a.types import a2a_pb2 as pb
from a2a.types.a2a_pb2_grpc import A2AServiceStub
from a2a.utils.errors import InvalidRequestError
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.assembly import components
from a2a_canvas.server.protocols.guard.bodies import SMALL_BODY_BYTES, BodyBudget, BodyReservation
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal
from a2a_canvas.server.protocols.pipeline.http_pipeline import HttpPipeline
from tests.server.app_server import Served, Stream, asking, envelope, serving

LARGE = 2 * SMALL_BODY_BYTES
ROOM = LARGE + SMALL_BODY_BYTES
"""One large body fits in it, and no second one."""


# --------------------------------------------------------------------------------- the budget


def test_a_body_takes_its_share_as_it_grows_and_gives_it_back() -> None:
    budget = BodyBudget(ROOM)
    with budget.reserve("a") as share:
        assert share.grow(SMALL_BODY_BYTES)
        assert budget.used == 0
        assert share.grow(LARGE)
        assert share.grow(LARGE + 1)
        assert budget.used == LARGE + 1
    assert budget.used == 0


def test_a_body_beyond_the_budget_is_refused_and_takes_nothing() -> None:
    budget = BodyBudget(ROOM)
    with budget.reserve("a") as first, budget.reserve("b") as second:
        assert first.grow(LARGE)
        assert not second.fits(LARGE)
        assert not second.grow(LARGE)
        assert budget.used == LARGE
        first.release()
        assert second.grow(LARGE)


def test_a_small_body_always_passes() -> None:
    budget = BodyBudget(ROOM)
    with budget.reserve("a") as first, budget.reserve("b") as small:
        assert first.grow(ROOM)
        assert small.grow(SMALL_BODY_BYTES)
    assert budget.used == 0


def test_beside_one_body_a_user_has_at_most_as_much_as_is_left_for_others() -> None:
    budget = BodyBudget(8 * LARGE)
    with ExitStack() as bodies:
        greedy = [bodies.enter_context(budget.reserve("greedy")) for _ in range(8)]
        assert [body.grow(LARGE) for body in greedy] == [True] * 4 + [False] * 4
        other = [bodies.enter_context(budget.reserve("other")) for _ in range(8)]
        assert [body.grow(LARGE) for body in other] == [True] * 2 + [False] * 6
        third = bodies.enter_context(budget.reserve("third"))
        assert third.grow(2 * LARGE)
        assert not greedy[0].grow(LARGE + 1)
        third.release()
        greedy[1].release()
        greedy[2].release()
        assert greedy[0].grow(2 * LARGE)
    assert budget.used == 0


def test_a_second_body_of_a_user_does_not_stop_the_first() -> None:
    budget = BodyBudget(8 * LARGE)
    with budget.reserve("ann") as first, budget.reserve("ann") as second, budget.reserve("joe") as other:
        assert first.grow(2 * LARGE)
        assert other.grow(LARGE)
        assert second.grow(LARGE)
        assert first.grow(5 * LARGE)
        assert not first.grow(5 * LARGE + 1)  # it would leave less than the second one has
        assert not second.grow(LARGE + 1)
        first.release()
        assert second.grow(7 * LARGE)


def test_anonymous_callers_may_take_all_that_there_is_until_a_user_comes() -> None:
    budget = BodyBudget(8 * LARGE)
    with ExitStack() as bodies:
        anonymous = [bodies.enter_context(budget.reserve("")) for _ in range(9)]
        assert [body.grow(LARGE) for body in anonymous] == [True] * 8 + [False]
    with ExitStack() as bodies:
        user = bodies.enter_context(budget.reserve("ann"))
        anonymous = [bodies.enter_context(budget.reserve("")) for _ in range(9)]
        assert [body.grow(LARGE) for body in anonymous] == [True] * 4 + [False] * 5
        assert user.grow(4 * LARGE)


def test_one_body_may_take_all_that_there_is() -> None:
    with BodyBudget(8 * LARGE).reserve("a") as body:
        assert body.grow(LARGE)
        assert body.grow(8 * LARGE)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3 * SMALL_BODY_BYTES)), max_size=40))
def test_whatever_comes_in_whatever_order_stays_within_the_budget_and_is_given_back(
    steps: list[tuple[int, int]],
) -> None:
    budget = BodyBudget(ROOM)
    shares = [BodyReservation(budget, user) for user in "aabc"]
    for number, more in steps:
        shares[number].grow(shares[number].size + more)
        assert 0 <= budget.used == sum(share.size for share in shares) <= ROOM
    for share in shares:
        share.release()
    assert budget.used == 0


async def test_a_body_counts_until_its_answer_begins() -> None:
    budget = BodyBudget(ROOM)
    used = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        used.append(budget.used)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        used.append(budget.used)
        await send({"type": "http.response.body", "body": b""})

    guard = HttpPipeline(app, limits=BodyLimits(), budget=budget)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://x") as http:
        await http.post("/canvas/stream", content=bytes(LARGE))
    assert used == [LARGE, 0]


async def test_a_body_of_a_caller_who_may_send_no_message_is_read_only_up_to_the_limit_of_all() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    async def refuse(caller: Caller) -> Refusal:
        return Refusal(InvalidRequestError, "read-only", http_status=403)

    guard = HttpPipeline(app, limits=BodyLimits(max_body_bytes=1000), refuse_message=refuse)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://x") as http:
        answer = await http.post("/canvas/stream", content=bytes(1001))
    assert (answer.status_code, answer.json()["error"]["message"]) == (403, "read-only")


# ------------------------------------------------------------------------------- over the wire


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives servers other limits than those of the code."""

    def set_limits(**limits: int) -> None:
        monkeypatch.setattr(components, "BodyLimits", partial(BodyLimits, **limits))

    return set_limits


def message(message_id: str, size: int) -> dict[str, Any]:
    parts = [{"text": "write report"}, {"raw": "QUJD" * (size // 4), "mediaType": "application/pdf"}]
    return {"messageId": message_id, "contextId": "c", "role": "ROLE_USER", "parts": parts}


async def refused(served: Served, size: int) -> dict[str, tuple[int, str, Any]]:
    """(HTTP status, Retry-After, error) of a large request on each entrance of HTTP."""
    answers = {
        "JSON-RPC": await served.http.post(
            "/", json=envelope("SendMessage", {"message": message("m-1", size)}), headers={"A2A-Version": "1.0"}
        ),
        "REST": await served.http.post(
            "/rest/message:send", json={"message": message("m-2", size)}, headers={"A2A-Version": "1.0"}
        ),
        "AG-UI": await served.http.post("/canvas/stream", json={"message": "x" * size, "thread_id": "c"}),
    }
    return {
        name: (answer.status_code, answer.headers["Retry-After"], answer.json()["error"])
        for name, answer in answers.items()
    }


async def test_beyond_the_budget_every_entrance_says_try_again_and_keeps_nothing(limit: Callable[..., None]) -> None:
    limit(max_bodies_bytes=ROOM)
    async with serving(database="memory", max_body_bytes=ROOM) as served:
        body = json.dumps(envelope("SendMessage", {"message": message("m-0", LARGE)})).encode()
        sent, rest = asyncio.Event(), asyncio.Event()

        async def halting() -> Any:
            yield body[:-10]
            sent.set()
            await rest.wait()
            yield body[-10:]

        headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
        first = asyncio.create_task(served.http.post("/", content=halting(), headers=headers))
        await sent.wait()
        async with asyncio.timeout(30):
            while (await served.http.post("/rest/nothing", content=bytes(LARGE))).status_code != 503:
                pass  # until the server has read it
        answers = await refused(served, LARGE)
        assert {(status, again) for status, again, _ in answers.values()} == {(503, "1")}
        assert answers["JSON-RPC"][2]["code"] == -32603
        assert answers["REST"][2]["status"] == "RESOURCE_EXHAUSTED"
        request = asking("write report", context="c")
        request.message.parts.add(raw=bytes(LARGE), media_type="application/pdf")
        async with grpc.aio.insecure_channel(served.grpc) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await A2AServiceStub(channel).SendMessage(request)  # type: ignore[no-untyped-call]
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        listed = await served.rpc("ListTasks", {})  # which is small, and passes
        assert listed["result"].get("totalSize", 0) == 0
        rest.set()
        assert "result" in (await first).json()
        assert "result" in await served.rpc("SendMessage", {"message": message("m-9", LARGE)})
        assert (await served.rpc("ListTasks", {}))["result"]["totalSize"] == 2


async def test_however_many_large_messages_one_user_sends_another_user_s_message_fits(
    limit: Callable[..., None],
) -> None:
    keys = {name: new_key(name) for name in ("ann", "bob")}
    large, small = 16 * LARGE, 8 * LARGE
    limit(max_bodies_bytes=4 * large)
    credentials = ",".join(f"{name}={key}" for name, key in keys.items())
    async with serving(grpc=False, database="memory", api_keys=credentials, max_body_bytes=large) as served:
        headers = {name: {"A2A-Version": "1.0", "Authorization": f"Bearer {key}"} for name, key in keys.items()}
        lines = [f"{name}: {value}" for name, value in (headers["ann"] | {"Host": "localhost"}).items()]
        head = "\r\n".join(["POST / HTTP/1.1", f"Content-Length: {large}", *lines, "", ""]).encode()

        async def answered() -> None:
            """Send a large body but for its last byte; returns when it is answered all the same."""
            reader, writer = await asyncio.open_connection(served.http.base_url.host, served.http.base_url.port)
            with closing(writer), suppress(ConnectionError):
                writer.write(head + bytes(large - 1))
                await reader.readexactly(1)

        waiting = [asyncio.create_task(answered()) for _ in range(6)]
        async with asyncio.timeout(30):
            for refused in islice(asyncio.as_completed(waiting), 4):
                await refused
        answer = await served.rpc("SendMessage", {"message": message("m-1", small)}, **headers["bob"])
        assert "result" in answer
        for task in waiting:
            task.cancel()


async def test_grpc_takes_only_so_many_calls_at_once() -> None:
    async with serving(database="memory", max_connections=1) as served:
        stream = Stream(served.client("GRPC", "1.0").send_message(asking("slowly report")))
        await stream.next()
        async with grpc.aio.insecure_channel(served.grpc) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await A2AServiceStub(channel).ListTasks(pb.ListTasksRequest())  # type: ignore[no-untyped-call]
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await stream.close()


async def test_what_is_refused_for_its_text_names_the_field_and_the_limit_and_is_not_kept(
    limit: Callable[..., None],
) -> None:
    limit(max_text_bytes=2000)
    async with serving(database="memory") as served:
        for kind, part in {"text": {"text": "x" * 2001}, "data": {"data": {"a": "x" * 2001}}}.items():
            answer = await served.rpc("SendMessage", {"message": {**message(kind, 8), "parts": [part]}})
            assert answer["error"]["code"] == -32602
            assert "message.parts has 20" in answer["error"]["message"]
            assert "may have 2000" in answer["error"]["message"]
        older = await served.http.post("/canvas/stream", json={"message": "x" * 2001, "thread_id": "c"})
        assert (older.status_code, older.json()["error"]["message"][:14]) == (400, "message has 20")
        said = [{"id": "1", "role": "user", "content": "x" * 2001}]
        run = await served.http.post("/canvas/stream", json={"threadId": "c", "runId": "r", "messages": said})
        assert (run.status_code, run.json()["error"]["message"][:25]) == (400, "messages.0.content has 20")
        assert (await served.rpc("ListTasks", {}))["result"].get("totalSize", 0) == 0


@pytest.mark.parametrize("way", [("JSONRPC", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "0.3"), ("GRPC", "0.3")])
async def test_text_is_limited_over_every_binding_and_version(way: tuple[str, str], limit: Callable[..., None]) -> None:
    limit(max_text_bytes=2000)
    async with serving(database="memory") as served:
        # The SDK's client of 0.3 over HTTP+JSON shows the status alone.
        with pytest.raises(Exception, match="400 Bad Request" if way == ("HTTP+JSON", "0.3") else "may have 2000"):
            [event async for event in served.client(*way, streaming=False).send_message(asking("x" * 2001))]


async def test_a_file_and_a_text_put_by_hand_may_be_larger_than_a_message_may_be(limit: Callable[..., None]) -> None:
    limit(max_text_bytes=2000)
    async with serving(database="memory") as served:
        task = (await served.rpc("SendMessage", {"message": message("m-1", 8000)}))["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        metadata = {"urn:a2a-canvas:canvas:v1": {"op": "put", "artifactId": "report", "text": "y" * 8000}}
        put = {**message("m-2", 0), "parts": [{"text": "put"}], "metadata": metadata}
        task = (await served.rpc("SendMessage", {"message": put}))["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        metadata["urn:a2a-canvas:canvas:v1"]["op"] = "undo"
        refused = await served.rpc("SendMessage", {"message": {**put, "messageId": "m-3", "metadata": metadata}})
        assert refused["error"]["code"] == -32602


# ---------------------------------------------------------------- bodies that are small by nature


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/artifacts/anything/shares"),
        ("PATCH", "/artifacts/anything"),
        ("POST", "/auth/signed-urls"),
        ("POST", "/auth/sign-out"),
        ("POST", "/nowhere"),
        ("GET", "/rest/tasks"),
    ],
)
async def test_only_messages_may_be_large(method: str, path: str) -> None:
    async with serving(grpc=False, database="memory") as served:
        fits, beyond = (b" " * size for size in (SMALL_BODY_BYTES, SMALL_BODY_BYTES + 1))
        assert (await served.http.request(method, path, content=fits)).status_code != 413
        refused = await served.http.request(method, path, content=beyond)
        assert refused.status_code == 413
        assert f"larger than {SMALL_BODY_BYTES} bytes; only messages may be larger" in refused.text


@pytest.mark.parametrize("path", ["/", "/rest/message:send", "/canvas/stream"])
async def test_a_message_may_be_as_large_as_the_setting_says(path: str) -> None:
    async with serving(grpc=False, database="memory", max_body_bytes=LARGE) as served:
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        fits, beyond = (b" " * size for size in (LARGE, LARGE + 1))
        assert "is empty" in (await served.http.post(path, content=fits, headers=headers)).text
        assert f"larger than {LARGE} bytes" in (await served.http.post(path, content=beyond, headers=headers)).text


def test_each_of_several_workers_has_its_part_of_the_budget_and_room_for_one_body() -> None:
    limits = BodyLimits(max_body_bytes=1000, max_bodies_bytes=8000)
    assert [BodyBudget.for_limits(limits, workers).limit for workers in (1, 4, 100)] == [8000, 2000, 1000]
