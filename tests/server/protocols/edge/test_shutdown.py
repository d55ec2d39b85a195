"""Graceful shutdown: which answers end by themselves, which are cancelled, and with what final event."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import grpc
import grpc.aio
import httpx
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.types import a2a_pb2 as pb
from starlette.types import Message, Receive, Scope, Send

from a2a_canvas.server.agent.events import MessageReceived
from a2a_canvas.server.protocols.edge.shutdown import Shutdown, ShutdownMiddleware, final_event_of
from tests.server.protocols.agui.agui_verifier import verify
from tests.server.protocols.bindings_harness import MESSAGE, RUN, V10, edge, rpc, streaming

REFUSED = "The server is stopping. Send it again in a moment."


async def handed_over() -> None:
    """In place of a runtime whose tasks continue on another server: no more events arrive here."""


# ------------------------------------------------------------- on a real server, handed over


async def test_streams_of_tasks_that_go_on_elsewhere_are_completed_without_another_event() -> None:
    async with edge(close=handed_over) as here, AsyncExitStack() as opened:
        task_id = await here.begin()
        streams = [
            await opened.enter_async_context(streaming(here.http, *request, json=body, headers=headers))
            for request, body, headers in (
                (("POST", "/"), rpc("SubscribeToTask", {"id": task_id}), V10),
                (("POST", "/"), rpc("tasks/resubscribe", {"id": task_id}), {}),
                (("GET", f"/rest/tasks/{task_id}:subscribe"), None, V10),
                (("GET", f"/rest/v1/tasks/{task_id}:subscribe"), None, {}),
                (("GET", "/artifacts/c/events"), None, {}),
            )
        ]
        for stream in streams:
            await anext(stream)
        while (await anext(streams[-1]))[0] != "activity":
            pass
        here.server.should_exit = True
        # A chunked answer that is cut raises.
        rest = [[event async for event in stream if event[0] != "presence"] for stream in streams]
        assert rest == [[]] * len(streams)


async def test_a_run_is_told_and_can_be_joined_again() -> None:
    async with edge(close=handed_over) as here, streaming(here.http, "POST", "/canvas/stream", json=RUN) as events:
        seen = [(await anext(events))[1]]
        await here.hold.reached.wait()
        here.server.should_exit = True
        seen += [event async for _, event in events]
    assert seen[-1] == {
        "type": "RUN_ERROR",
        "message": "The server is stopping. Send the run again in a moment to join its task.",
        "code": "unavailable",
    }
    verify(seen)


async def test_a_run_that_ends_before_the_stop_cuts_it_is_told_nothing_more() -> None:
    async with edge(close=handed_over) as here, streaming(here.http, "POST", "/canvas/stream", json=RUN) as events:
        await anext(events)
        await here.hold.reached.wait()
        here.server.should_exit = True
        here.hold.release.set()
        *_, (_, last) = [event async for event in events]
    assert last["type"] == "RUN_FINISHED"


async def test_a_call_that_waits_for_its_task_is_refused_in_plain_words() -> None:
    async with edge(close=handed_over) as here:
        task_id = await here.begin()
        following = aiter(await here.journal.follow(task_id))
        message = {**MESSAGE, "taskId": task_id}
        waiting = [
            asyncio.create_task(here.http.post("/", json=rpc("SendMessage", {"message": message}), headers=V10)),
            asyncio.create_task(here.http.post("/rest/message:send", json={"message": message}, headers=V10)),
        ]
        assert isinstance((await anext(following)).event, MessageReceived)
        here.server.should_exit = True
        answers = await asyncio.gather(*waiting)
    for answer in answers:
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json() == {"error": {"code": 503, "status": "UNAVAILABLE", "message": REFUSED}}


async def test_grpc_calls_are_unavailable_both_those_that_stream_and_those_that_wait() -> None:
    async with edge(close=handed_over) as here:
        task_id = await here.begin()
        message = pb.Message(message_id="m", role=pb.ROLE_USER, task_id=task_id, parts=[pb.Part(text="Go")])
        following = aiter(await here.journal.follow(task_id))
        calls = [
            here.grpc10.SubscribeToTask(pb.SubscribeToTaskRequest(id=task_id)),
            here.grpc03.TaskSubscription(pb03.TaskSubscriptionRequest(name=f"tasks/{task_id}")),
        ]
        for call in calls:
            await call.read()
        waiting = here.grpc10.SendMessage(pb.SendMessageRequest(message=message))
        asked = asyncio.ensure_future(waiting)
        assert isinstance((await anext(following)).event, MessageReceived)
        here.server.should_exit = True
        for end in (asked, *(call.read() for call in calls)):
            with pytest.raises(grpc.aio.AioRpcError) as cut:
                await end
            assert cut.value.code() == grpc.StatusCode.UNAVAILABLE


async def test_while_the_runtime_closes_streams_go_on_and_nothing_new_is_taken() -> None:
    closing, go_on = asyncio.Event(), asyncio.Event()

    async def close() -> None:
        closing.set()
        await go_on.wait()

    async with edge(close=close) as here:
        task_id = await here.begin()
        subscribe: dict[str, Any] = {"json": rpc("SubscribeToTask", {"id": task_id}), "headers": V10}
        async with streaming(here.http, "POST", "/", **subscribe) as stream:
            await anext(stream)
            # A connection that is open already, as those of a load balancer are.
            transport = httpx.ASGITransport(here.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://here", trust_env=False) as late:
                here.server.should_exit = True
                await closing.wait()
                refused = await late.post("/", **subscribe)
            here.hold.release.set()
            *_, (_, last) = [event async for event in stream]
            go_on.set()
    assert (refused.status_code, refused.json()["error"]["message"]) == (503, REFUSED)
    assert (refused.headers["retry-after"], refused.headers["connection"]) == ("1", "close")
    assert last["result"]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


# ------------------------------------------------------------------------------ the stop


async def test_a_runtime_that_does_not_close_in_time_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    ends: list[str] = []

    async def close() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("cancelled")

    await Shutdown(close, 0.02)()
    assert ends == ["cancelled"]
    assert [record.getMessage() for record in caplog.records] == [
        "The runtime did not stop within 0.01 seconds; running turns were abandoned."
    ]


async def test_a_runtime_that_fails_to_close_does_not_keep_the_answers_open(caplog: pytest.LogCaptureFixture) -> None:
    async def close() -> None:
        raise RuntimeError("no")

    shutdown, answer = Shutdown(close, 0.02), Answer(forever)
    serving = asyncio.create_task(answer.serve(shutdown))
    await answer.begun.wait()
    await shutdown()
    await serving
    assert answer.ended
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_no_grace_is_no_reason_not_to_begin() -> None:
    begun: list[bool] = []

    async def close() -> None:
        begun.append(True)

    await Shutdown(close, 0)()
    assert begun == [True]


async def test_a_second_stop_waits_for_the_first_and_ends_what_that_one_let_in() -> None:
    go_on = asyncio.Event()
    closed: list[str] = []

    async def close() -> None:
        closed.append("begun")
        await go_on.wait()
        closed.append("done")

    shutdown = Shutdown(close)
    calls = [asyncio.create_task(shutdown()) for _ in range(2)]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*calls)
    assert closed == ["begun", "done", "begun", "done"]


# ------------------------------------------------------------------------ the middleware

START: Message = {"type": "http.response.start", "status": 200, "headers": []}
END: Message = {"type": "http.response.body", "body": b"", "more_body": False}


def piece(body: bytes = b"x") -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}


App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Answer:
    """One request to an application, and what is sent for it.

    Attributes:
        slow: the reader takes nothing while this is set.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self.sent: list[Message] = []
        self.begun = asyncio.Event()
        self.free = asyncio.Event()
        self.free.set()

    async def serve(self, shutdown: Shutdown) -> None:
        await ShutdownMiddleware(self._app, shutdown=shutdown)({"type": "http"}, self._receive, self._send)

    @property
    def ended(self) -> bool:
        return not self.sent[-1].get("more_body", True)

    async def _receive(self) -> Message:
        raise AssertionError("nothing is read here")

    async def _send(self, message: Message) -> None:
        await self.free.wait()
        self.sent.append(message)
        self.begun.set()


async def forever(scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    await asyncio.Event().wait()


async def stopped(answer: Answer) -> list[Message]:
    """What was sent when the answer's time is up."""
    shutdown = Shutdown(handed_over, 0.02)
    serving = asyncio.create_task(answer.serve(shutdown))
    await answer.begun.wait()
    stopping = asyncio.create_task(shutdown())
    await asyncio.wait([stopping])
    answer.free.set()
    await serving
    return answer.sent


async def test_an_answer_is_cut_with_its_farewell() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        final_event_of(scope).text = b"bye"
        await forever(scope, receive, send)

    assert await stopped(Answer(app)) == [START, {**END, "body": b"bye"}]


async def test_what_a_slow_reader_has_not_taken_is_not_half_sent() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        final_event_of(scope).text = b"bye"
        await send(START)
        answer.free.clear()
        await send(piece())
        final_event_of(scope).text = b""
        await send(END)

    answer = Answer(app)
    assert await stopped(answer) == [START, {**END, "body": b"bye"}]


async def test_an_answer_that_broke_off_by_itself_has_no_farewell() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        final_event_of(scope).text = b"bye"
        await send(START)

    answer = Answer(app)
    await answer.serve(Shutdown(handed_over))
    assert answer.sent == [START, END]


async def test_an_answer_that_ends_in_time_is_left_alone() -> None:
    closing = asyncio.Event()

    async def close() -> None:
        closing.set()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        final_event_of(scope).text = b"bye"
        await send(START)
        await closing.wait()
        await send(piece())
        await send(END)

    shutdown, answer = Shutdown(close), Answer(app)
    serving = asyncio.create_task(answer.serve(shutdown))
    await answer.begun.wait()
    await shutdown()
    await serving
    assert answer.sent == [START, piece(), END]


async def test_a_request_that_its_server_cancels_stays_cancelled() -> None:
    shutdown, answer = Shutdown(handed_over), Answer(forever)
    serving = asyncio.create_task(answer.serve(shutdown))
    await answer.begun.wait()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert answer.sent == [START]


async def test_without_the_middleware_a_farewell_is_said_to_nobody() -> None:
    scope: Scope = {"type": "http"}
    final_event_of(scope).text = b"bye"
    assert final_event_of(scope).text == b""
