"""Clients of a server: operations over each transport, and the stream of a context. They outlive servers.

Rule 1: an operation is sent until it is answered, each time with the same `messageId`: a server that has it joins its
        task. A connection that breaks while its server lives is a fault.
Rule 2: a follower reconnects with its last id, reads the annotations again, and continues.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any, Literal, get_args
from uuid import uuid4

import grpc
import grpc.aio
import httpx
from a2a.types import a2a_pb2 as pb
from a2a.types.a2a_pb2_grpc import A2AServiceStub
from google.protobuf.json_format import MessageToDict, ParseDict

from a2a_canvas.server.wire import CANVAS, TURN
from bench.hands.choices import Planned
from bench.hands.folds import ContextFold, text_of
from bench.hands.ledger import ANNOTATES, Json, Ledger, Operation
from bench.hands.script import DOC
from tests.server.agui_client import Run
from tests.server.faults.server_processes import ServerProcess, message
from tests.server.faults.sse_client import EXTENSIONS, envelope

Transport = Literal["JSON-RPC", "HTTP+JSON", "gRPC", "AG-UI"]
TRANSPORTS: Sequence[Transport] = get_args(Transport)
ANSWERED = 300.0
"""Seconds within which everything is answered. Operations on annotations wait for each other."""
AGAIN = 0.1
"""Seconds until a client tries again."""
BROKEN = (httpx.TransportError, OSError)
SETTLED = {"completed", "failed", "rejected", "canceled"}


class Retry(Exception):
    """No answer, or one that says to try again."""


class Refused(Exception):
    """There is no task."""


class Cluster:
    """Servers on one database. Each client has a place, and takes the next server while its own is down."""

    def __init__(self, servers: Sequence[ServerProcess]) -> None:
        self.servers: list[ServerProcess | None] = [*servers]
        self._changed = asyncio.Condition()

    async def server(self, place: int) -> ServerProcess:
        """One that lives."""
        async with self._changed:
            while True:
                for number in range(len(self.servers)):
                    if server := self.servers[(place + number) % len(self.servers)]:
                        return server
                await self._changed.wait()

    def lives(self, server: ServerProcess) -> bool:
        return server in self.servers

    async def set(self, place: int, server: ServerProcess | None) -> None:
        async with self._changed:
            self.servers[place] = server
            self._changed.notify_all()


# ------------------------------------------------------------------------- operations


class Answer:
    """What a client was told of a task, folded.

    Attributes:
        told: the metadata of its last message.
        results: calls that had a result.
        version: the version that it left.
    """

    def __init__(self, fold: ContextFold) -> None:
        self.task_id = self.state = ""
        self.told: Json = {}
        self.results: set[str] = set()
        self.version = 0
        self._fold = fold

    def take(self, event: Json) -> None:
        """An event of A2A."""
        self._fold.take(event)
        match event:
            case {"task": task}:
                self.task_id = task["id"]
                self._status(task["status"])
                made = task.get("metadata", {}).get(CANVAS, {}).get("artifacts", {}).get(DOC)
                self.version = int(made["artifactVersion"]) if made else self.version
            case {"statusUpdate": update}:
                turn = update.get("metadata", {}).get(TURN, {})
                if turn.get("event_type") == "tool_result":
                    self.results.add(turn["data"]["tool_use_id"])
                self._status(update["status"])
            case {"artifactUpdate": update}:
                self.version = int(update["metadata"][CANVAS]["artifactVersion"])

    def _status(self, status: Json) -> None:
        self.state = status["state"].removeprefix("TASK_STATE_").lower()
        self.told = status.get("message", {}).get("metadata", {}).get(CANVAS, {})

    def take_run(self, run: Run) -> None:
        """A run of AG-UI, as far as it was read."""
        self.task_id, self.state = run.state.get("taskId", ""), run.state.get("phase", "")
        self.told = (run.of("operation_result") or [{}])[-1]
        self.results = {event["toolCallId"] for event in run.of("tool_result") if "toolCallId" in event}
        if run.state.get("artifacts", {}).get(DOC, {}).get("open") is False:
            self.version = run.state["artifacts"][DOC]["version"]
            self._fold.take_version(self.version, run.text(DOC))


class Hand:
    """Somebody who operates on the document, over one transport.

    Attributes:
        fold: what its tasks have told it.
        faults: what must not happen.
    """

    def __init__(self, cluster: Cluster, ledger: Ledger, context: str, key: str, place: int) -> None:
        self.transport: Transport = TRANSPORTS[place % len(TRANSPORTS)]
        self.fold = ContextFold(DOC)
        self.faults: list[str] = []
        self._cluster, self._ledger, self._context, self._place = cluster, ledger, context, place
        self._headers = {"Authorization": f"Bearer {key}", "A2A-Version": "1.0", "A2A-Extensions": EXTENSIONS}

    async def carry_out(self, planned: Planned) -> None:
        """Send an operation until it is answered (rule 1)."""
        operation = planned.operation
        sent = message(planned.text, context=self._context, operation=planned.metadata)
        self._ledger.begin(operation)
        while not operation.state:
            server = await self._cluster.server(self._place)
            answer = Answer(self.fold)
            try:
                async with asyncio.timeout(ANSWERED):
                    await self._ask(server, sent, answer)
            except Refused as error:
                operation.state = "refused"
                self._check_refusal(operation, str(error))
            except (Retry, TimeoutError, *BROKEN) as error:
                if self._cluster.lives(server) and not isinstance(error, Retry):
                    self.faults.append(f"{self.transport}: {operation}: {type(error).__name__} {error}")
                await asyncio.sleep(AGAIN)
            else:
                _note(operation, answer)
        self._ledger.end(operation)

    def _check_refusal(self, operation: Operation, reason: str) -> None:
        """Every request is valid, unless somebody has withdrawn what it is about."""
        if not operation.target or "annotationId" not in reason:
            self.faults.append(f"{self.transport}: {operation}: {reason}")

    async def _ask(self, server: ServerProcess, sent: Json, answer: Answer) -> None:
        match self.transport:
            case "AG-UI":
                await self._run(server, sent, answer)
                return
            case "gRPC":
                events = _over_grpc(server, sent, self._headers)
            case "JSON-RPC":
                body = envelope("SendStreamingMessage", {"message": sent})
                events = _over_http(server, "/", body, self._headers)
            case "HTTP+JSON":
                events = _over_http(server, "/rest/message:stream", {"message": sent}, self._headers)
        async with aclosing(events):
            async for event in events:
                answer.take(event)
        if answer.state not in SETTLED:
            raise Retry(answer.state)

    async def _run(self, server: ServerProcess, sent: Json, answer: Answer) -> None:
        said = {"id": sent["messageId"], "role": "user", "content": sent["parts"][0]["text"]}
        body = {"threadId": self._context, "runId": sent["messageId"], "messages": [said]}
        body |= {"forwardedProps": sent["metadata"]} if "metadata" in sent else {}
        async with server.http.stream("POST", "/canvas/stream", json=body, headers=self._headers) as response:
            if response.status_code != 200:
                _raise_refusal(response.status_code, response.headers, (await response.aread()).decode())
            run = Run(response)
            try:
                await run.rest()
            except AssertionError:
                raise Retry("a run was cut off") from None
        answer.take_run(run)
        if answer.state not in SETTLED:
            raise Retry(answer.state)


def _note(operation: Operation, answer: Answer) -> None:
    operation.state, operation.task_id = answer.state, answer.task_id
    operation.accepted = answer.told.get("accepted", ())
    operation.current = answer.version
    if operation.verb in ANNOTATES and answer.told.get("annotationIds"):
        operation.target = answer.told["annotationIds"][0]
    operation.acknowledged = len(answer.results) if operation.verb.startswith("agent-") else int(operation.done)


async def _over_http(server: ServerProcess, path: str, body: Json, headers: Json) -> AsyncGenerator[Json]:
    async with server.http.stream("POST", path, json=body, headers=headers) as response:
        if "text/event-stream" not in response.headers.get("content-type", ""):
            _raise_refusal(response.status_code, response.headers, (await response.aread()).decode())
        async for line in response.aiter_lines():
            if line.startswith("data:"):
                event = json.loads(line[5:])
                if "error" in event:
                    _raise_refusal(response.status_code, response.headers, line)
                yield event.get("result", event)


def says_to_retry(headers: httpx.Headers) -> bool:
    """Whether a server could not answer now."""
    return "retry-after" in headers


def _raise_refusal(status: int, headers: httpx.Headers, text: str) -> None:
    if says_to_retry(headers) or '"retryable": "true"' in text or '"retryable":"true"' in text:
        raise Retry(text)
    raise Refused(f"{status}: {text}")


async def _over_grpc(server: ServerProcess, sent: Json, headers: Json) -> AsyncGenerator[Json]:
    request = ParseDict({"message": sent}, pb.SendMessageRequest())
    metadata = tuple((name.lower(), value) for name, value in headers.items())
    async with grpc.aio.insecure_channel(server.grpc) as channel:
        stub: Any = A2AServiceStub(channel)  # type: ignore[no-untyped-call]
        try:
            async for event in stub.SendStreamingMessage(request, metadata=metadata):
                yield MessageToDict(event)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                # A server that died, and one that says to try again, have the same code.
                raise Retry(error.details()) from None
            raise Refused(f"{error.code().name}: {error.details()}") from None


# --------------------------------------------------------------------------- followers


class Follower:
    """A client of the stream of a context.

    Attributes:
        fold: what it has.
        connections: how often it has begun.
    """

    def __init__(self, cluster: Cluster, context: str, key: str, place: int) -> None:
        self.fold = ContextFold(DOC)
        self.faults: list[str] = []
        self.connections = 0
        self._cluster, self._path, self._place = cluster, f"/artifacts/{context}", place
        self._headers = {"Authorization": f"Bearer {key}"}
        self._last = ""
        self._news = asyncio.Condition()

    async def run(self) -> None:
        """Follow for ever."""
        while True:
            server = await self._cluster.server(self._place)
            try:
                await self._follow(server)
            except BROKEN as error:
                if self._cluster.lives(server):
                    when = f"{error!r} in connection {self.connections}, after {self._last or 'nothing'}"
                    self.faults.append(f"a stream of {server.port}: {when}")
            await asyncio.sleep(AGAIN)

    async def until_equal(self, holds: Any) -> bool:
        """Wait until it has something, as long as an answer may take."""
        try:
            async with asyncio.timeout(ANSWERED), self._news:
                await self._news.wait_for(lambda: holds(self.fold))
        except TimeoutError:
            return False
        return True

    async def _follow(self, server: ServerProcess) -> None:
        last = {"Last-Event-ID": self._last} if self._last else {}
        asked = server.http.stream("GET", f"{self._path}/events", headers=self._headers | last)
        async with asked as response:
            if response.status_code != 200:
                self.faults += [] if says_to_retry(response.headers) else [f"a stream: {response.status_code}"]
                return
            self.connections += 1
            name = event_id = ""
            begun = False
            async for line in response.aiter_lines():
                field, _, value = line.partition(": ")
                if field == "data":
                    if not begun:
                        await self._read_annotations(server)
                        begun = True
                    await self._take(name, event_id, json.loads(value))
                name = value if field == "event" else name if line else ""
                event_id = value if field == "id" else event_id if line else ""

    async def _read_annotations(self, server: ServerProcess) -> None:
        """Not before the first event: what changes after it is an event."""
        answer = await server.http.get(f"{self._path}/{DOC}/annotations", headers=self._headers)
        if answer.status_code == 200:  # else there is no document yet
            self.fold.read_annotations([item["canvas"] for item in answer.json()["first"]["items"]])

    async def _take(self, name: str, event_id: str, data: Json) -> None:
        async with self._news:
            if name == "annotations":
                self.fold.change_annotations(data)
            elif not name:
                self.fold.take(data)
            self._last = event_id or self._last
            self._news.notify_all()


class Poller:
    """A client that reads again and again, with the ETag of what it has."""

    def __init__(self, cluster: Cluster, context: str, key: str) -> None:
        self.fold = ContextFold(DOC)
        self._cluster, self._path = cluster, f"/artifacts/{context}/{DOC}"
        self._headers = {"Authorization": f"Bearer {key}"}
        self._tags: dict[str, str] = {}

    async def poll(self, place: int = 0) -> None:
        """Take what has changed; nothing if the server dies meanwhile."""
        server = await self._cluster.server(place)
        with suppress(*BROKEN):
            if document := await self._changed(server, self._path):
                if document["open"]:
                    del self._tags[self._path]  # a draft, whose text a poll may have in the middle
                else:
                    self.fold.take_version(document["version"], text_of(document))
            if listed := await self._changed(server, f"{self._path}/annotations"):
                self.fold.read_annotations([item["canvas"] for item in listed["first"]["items"]])

    async def _changed(self, server: ServerProcess, path: str) -> Json | None:
        known = {"If-None-Match": self._tags[path]} if path in self._tags else {}
        answer = await server.http.get(path, headers=self._headers | known)
        if answer.status_code == 304 or says_to_retry(answer.headers):
            return None
        found: Json = answer.raise_for_status().json()
        self._tags[path] = answer.headers["etag"]
        return found


def new_context() -> str:
    """An id that can be shared with users."""
    return str(uuid4())
