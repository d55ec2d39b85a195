"""Two things wrong with one request: which of them its answer names, for every pair, over every binding.

Rule 1: a table lists what can be wrong in the order in which it is checked. A request with two faults gets the answer
        that it gets with the earlier one alone.
Rule 2: two faults of one kind replace each other, such as two versions: no request has both.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any
from uuid import uuid4

import grpc
import grpc.aio
import httpx
import pytest
import pytest_asyncio
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb03
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.app import create_app
from a2a_canvas.server.protocols.guard.bodies import BodyReservation
from a2a_canvas.server.protocols.identity.authenticator import Authenticator, OverQuota
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.store.errors import Unavailable
from tests.server.app_server import Served, envelope, stoppable

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
Answer = tuple[Any, ...]
"""Status, code and message."""

ANN = new_key("ann")
MAX_BODY = 4096
V10 = {"A2A-Version": "1.0"}
CONTEXT = str(uuid4())
MESSAGE = {"messageId": "m", "contextId": CONTEXT, "role": "ROLE_USER", "parts": [{"text": "write report"}]}
RUN = {"threadId": "c", "runId": "r", "messages": [{"id": "r", "role": "user", "content": "hi"}]}
WRONG_TOKEN = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.c2ln"
NO_TASK = {"message": {**MESSAGE, "taskId": "none"}}


@dataclass(frozen=True)
class Sent:
    """A request, and the state of the server that it meets.

    Attributes:
        before, after: what surrounds the JSON.
        credential: `{link}` is the token of a link for reading.
        states: names in `STATES`.
    """

    method: str
    path: str
    body: Json
    headers: Mapping[str, str]
    before: bytes = b""
    after: bytes = b""
    credential: str | None = ANN
    states: frozenset[str] = field(default_factory=frozenset)

    @property
    def content(self) -> bytes:
        return self.before + json.dumps(self.body).encode() + self.after


@dataclass(frozen=True)
class Fault:
    """What is wrong. `kind`: rule 2; `sooner`: faults that are checked earlier in most requests, yet not with this."""

    name: str
    kind: str
    spoil: Callable[[Any], Any]
    sooner: tuple[str, ...] = ()


def headed(name: str, value: str) -> Callable[[Any], Any]:
    return lambda sent: replace(sent, headers={**sent.headers, name: value})


def changed(**changes: Any) -> Callable[[Any], Any]:
    return lambda sent: replace(sent, **changes)


def in_body(**members: Any) -> Callable[[Any], Any]:
    return lambda sent: replace(sent, body={**sent.body, **members})


def met(state: str) -> Callable[[Any], Any]:
    return lambda sent: replace(sent, states=sent.states | {state})


def without_id(sent: Sent) -> Sent:
    return replace(sent, body={name: value for name, value in sent.body.items() if name != "id"})


FROM_PAGES = (
    Fault("another host", "host", headed("Host", "evil.example")),
    Fault("a page of another origin", "origin", headed("Origin", "https://evil.example")),
)
CALLERS = (
    Fault("no credential", "caller", changed(credential=None)),
    Fault("a wrong credential", "caller", changed(credential=WRONG_TOKEN)),
    Fault("a quota used up", "caller", met("quota")),
    Fault("keys that cannot be read", "caller", met("keys")),
)
COMPRESSED = Fault("a compressed body", "encoding", headed("Content-Encoding", "gzip"))
TOO_LARGE = Fault("a body that is too large", "size", changed(after=b" " * MAX_BODY))
NO_ROOM = Fault("no room for bodies", "room", met("room"))
BODIES = (COMPRESSED, TOO_LARGE, NO_ROOM)
UNTYPED = Fault("another content type", "type", headed("Content-Type", "text/plain"))
NO_JSON = Fault("no JSON", "before", changed(before=b"{"))
STOPPING = Fault("a server that stops", "stop", met("stop"))
GUEST = Fault("a guest with a link for reading", "caller", changed(credential="{link}"))
EARLY_GUEST = replace(GUEST, sooner=(TOO_LARGE.name,))
UNKNOWN_VERSION = Fault("an unknown version", "version", headed("A2A-Version", "9.9"))
OTHER_VERSION = Fault("another version", "version", headed("A2A-Version", "0.3"))

BINDINGS: Mapping[str, tuple[Sent, tuple[Fault, ...]]] = {
    "JSON-RPC": (
        Sent("POST", "/", envelope("SendMessage", {"message": MESSAGE}), V10),
        (
            *FROM_PAGES,
            *CALLERS,
            *BODIES,
            UNTYPED,
            NO_JSON,
            Fault("no call", "jsonrpc", in_body(jsonrpc="1.0")),
            UNKNOWN_VERSION,
            Fault("an unknown method", "method", in_body(method="None")),
            OTHER_VERSION,
            Fault("wrong params", "params", in_body(params={"message": 1})),
            Fault("no id", "id", without_id),
            STOPPING,
            Fault("an unknown task", "params", in_body(params=NO_TASK)),
            EARLY_GUEST,
        ),
    ),
    "HTTP+JSON": (
        Sent("POST", "/rest/message:send", {"message": MESSAGE}, V10),
        (
            *FROM_PAGES,
            *CALLERS,
            Fault("an encoded slash", "path", changed(path="/rest/message%2Fsend")),
            GUEST,
            *BODIES,
            UNTYPED,
            Fault("a query that is not UTF-8", "path", changed(path="/rest/message:send?a=%ff")),
            UNKNOWN_VERSION,
            OTHER_VERSION,
            NO_JSON,
            Fault("wrong params", "params", in_body(message=1)),
            STOPPING,
            Fault("an unknown task", "params", in_body(**NO_TASK)),
        ),
    ),
    "AG-UI": (
        Sent("POST", "/canvas/stream", RUN, {}),
        (
            *FROM_PAGES,
            *CALLERS,
            *BODIES,
            STOPPING,
            Fault("another method", "verb", changed(method="PATCH")),
            EARLY_GUEST,
            UNTYPED,
            NO_JSON,
            Fault("a run that is none", "run", in_body(messages=1)),
        ),
    ),
    "artifacts": (
        Sent("POST", f"/artifacts/{CONTEXT}/shares", {"link": True}, {}),
        (
            *FROM_PAGES,
            *CALLERS,
            *BODIES,
            STOPPING,
            Fault("an unknown path", "path", changed(path=f"/artifacts/{CONTEXT}/shares/a/b")),
            Fault("another method", "verb", changed(method="PATCH")),
            Fault("an unknown context", "path", changed(path="/artifacts/none/shares")),
            GUEST,
            UNTYPED,
            NO_JSON,
            Fault("wrong fields", "fields", in_body(link=1)),
        ),
    ),
}


def later(first: Fault, faults: Sequence[Fault]) -> list[Fault]:
    """The faults that an answer does not name if there is this one."""
    others = faults[faults.index(first) + 1 :]
    sooner = [fault for fault in faults if fault.name in first.sooner]
    return [each for each in (*others, *sooner) if each.kind != first.kind and first.name not in each.sooner]


def each_fault(table: Mapping[str, tuple[Any, tuple[Fault, ...]]]) -> list[Any]:
    return [
        pytest.param(name, fault, id=f"{name}, {fault.name}") for name, (_, faults) in table.items() for fault in faults
    ]


@dataclass(frozen=True)
class Here:
    served: Served
    stop: Any
    link: str

    @contextmanager
    def met(self, states: frozenset[str]) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for state in states:
                STATES[state](patch, self)
            yield

    async def answer(self, binding: str, *faults: Fault) -> Answer:
        sent = spoiled(BINDINGS[binding][0], faults)
        with self.met(sent.states):
            return await answer(self.served.http, sent, self.link)

    async def status(self, channel: grpc.aio.Channel, version: str, *faults: Fault) -> Answer:
        call = spoiled(SERVICES[version][0], faults)
        metadata = [*call.headers.items(), *bearer(call.credential, self.link).items()]
        with self.met(call.states), pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.stream_unary(call.path)(iter(call.messages), metadata=metadata, timeout=10)
        return refused.value.code(), refused.value.details()


def spoiled(request: Any, faults: Sequence[Fault]) -> Any:
    return reduce(lambda spoiled, fault: fault.spoil(spoiled), faults, request)


def bearer(credential: str | None, link: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {credential.format(link=link)}"} if credential else {}


def keys_away(patch: pytest.MonkeyPatch, here: Here) -> None:
    async def away(*_: object) -> None:
        raise Unavailable("connection refused")

    patch.setattr(Authenticator, "authenticate", away)


def quota_used(patch: pytest.MonkeyPatch, here: Here) -> None:
    async def used(*_: object) -> OverQuota:
        return OverQuota("Request limit reached.", 7)

    patch.setattr(Authenticator, "authenticate", used)


def no_room(patch: pytest.MonkeyPatch, here: Here) -> None:
    patch.setattr(BodyReservation, "fits", lambda *_: False)


STATES: Mapping[str, Callable[[pytest.MonkeyPatch, Here], None]] = {
    "keys": keys_away,
    "quota": quota_used,
    "room": no_room,
    "stop": lambda patch, here: patch.setattr(here.stop, "begun", True),
}


async def answer(http: httpx.AsyncClient, sent: Sent, link: str) -> Answer:
    headers = {"Content-Type": "application/json", **sent.headers, **bearer(sent.credential, link)}
    response = await http.request(sent.method, sent.path, content=sent.content, headers=headers)
    error = response.json()["error"]
    told = [response.headers.get(name) for name in ("WWW-Authenticate", "Retry-After", "Allow")]
    return response.status_code, error["code"], error["message"].replace(sent.path, "…"), *told


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def here() -> AsyncIterator[Here]:
    options: Json = {"api_keys": f"ann={ANN}", "database": "memory", "max_body_bytes": MAX_BODY}
    async with stoppable(**options) as (server, _, served):
        as_ann = {**bearer(ANN, ""), **V10}
        await served.http.post("/", json=envelope("SendMessage", {"message": MESSAGE}), headers=as_ann)
        shares = f"/artifacts/{CONTEXT}/shares"
        made = await served.http.post(shares, json={"link": True, "level": "read"}, headers=as_ann)
        app: Any = server.config.app
        yield Here(served, app.state.shutdown, made.json()["token"])


@pytest.mark.parametrize("binding", BINDINGS)
async def test_each_fault_has_an_answer_of_its_own(here: Here, binding: str) -> None:
    answers = {fault.name: await here.answer(binding, fault) for fault in BINDINGS[binding][1]}
    assert len(set(answers.values())) == len(answers), answers


@pytest.mark.parametrize(("binding", "first"), each_fault(BINDINGS))
async def test_of_two_faults_the_answer_names_the_first(here: Here, binding: str, first: Fault) -> None:
    seconds = later(first, BINDINGS[binding][1])
    answers = {second.name: await here.answer(binding, first, second) for second in seconds}
    assert answers == dict.fromkeys(answers, await here.answer(binding, first))


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_server_that_was_not_started_says_so_to_all_but_pages_of_others(binding: str) -> None:
    sent, faults = BINDINGS[binding]
    app = create_app(Settings(model="rehearsal", database="memory", api_keys=f"ann={ANN}", max_body_bytes=MAX_BODY))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        not_started = await answer(http, sent, "none")
        assert not_started[0] == 503
        for fault in faults:
            if fault.kind != "verb" and not fault.spoil(sent).states:
                same = await answer(http, fault.spoil(sent), "none") == not_started
                assert same == (fault not in FROM_PAGES), fault.name


# --------------------------------------------------------------------------------------------- gRPC


@dataclass(frozen=True)
class Called:
    """A call of gRPC, with messages as bytes."""

    path: str
    messages: tuple[bytes, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    credential: str | None = ANN
    states: frozenset[str] = field(default_factory=frozenset)


def padded(call: Any) -> Any:
    """With an unknown field that takes more than there may be."""
    return replace(call, messages=(*(each + b"\xfa\x7f\xff\x3f" + bytes(8191) for each in call.messages[:1]),))


def grpc_faults(service: str, no_task: bytes, empty: bytes) -> tuple[Fault, ...]:
    return (
        Fault("no credential", "caller", changed(credential=None)),
        Fault("a wrong credential", "caller", changed(credential=WRONG_TOKEN)),
        Fault("a quota used up", "caller", met("quota")),
        Fault("keys that cannot be read", "caller", met("keys")),
        Fault("no message", "message", changed(messages=())),
        Fault("a message that is too large", "message", padded),
        Fault("an unknown method", "path", changed(path=f"/{service}/Nothing")),
        Fault("an unknown version", "version", headed("a2a-version", "9.9")),
        Fault("no room for bodies", "room", met("room")),
        Fault("a guest with a link for reading", "caller", changed(credential="{link}")),
        Fault("bytes that are no message", "message", changed(messages=(b"\xff",))),
        Fault("a message without its fields", "message", changed(messages=(empty,))),
        Fault("an unknown task", "message", changed(messages=(no_task,))),
    )


def call_10(**fields: Any) -> bytes:
    message = pb.Message(message_id="m", role=pb.ROLE_USER, parts=[pb.Part(text="hi")], **fields)
    return pb.SendMessageRequest(message=message).SerializeToString()


def call_03(**fields: Any) -> bytes:
    message = pb03.Message(message_id="m", role=pb03.ROLE_USER, content=[pb03.Part(text="hi")], **fields)
    return pb03.SendMessageRequest(request=message).SerializeToString()


SERVICES: Mapping[str, tuple[Called, tuple[Fault, ...]]] = {
    name: (Called(f"/{service}/SendMessage", (valid,)), grpc_faults(service, no_task, empty))
    for name, service, valid, no_task, empty in (
        ("1.0", "lf.a2a.v1.A2AService", call_10(), call_10(task_id="none"), b""),
        ("0.3", "a2a.v1.A2AService", call_03(), call_03(task_id="none"), b""),
    )
}


@pytest.mark.parametrize("version", SERVICES)
async def test_each_fault_of_a_call_has_a_status_of_its_own(here: Here, version: str) -> None:
    async with grpc.aio.insecure_channel(here.served.grpc) as channel:
        found = {fault.name: await here.status(channel, version, fault) for fault in SERVICES[version][1]}
    assert len(set(found.values())) == len(found), found


@pytest.mark.parametrize(("version", "first"), each_fault(SERVICES))
async def test_of_two_faults_of_a_call_its_status_names_the_first(here: Here, version: str, first: Fault) -> None:
    seconds = later(first, SERVICES[version][1])
    async with grpc.aio.insecure_channel(here.served.grpc) as channel:
        found = {second.name: await here.status(channel, version, first, second) for second in seconds}
        assert found == dict.fromkeys(found, await here.status(channel, version, first))
