"""The streams of a credential end when it does: an API key is revoked, a token of an issuer expires.

Whoever has another credential goes on where the stream ended, and has every character once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from a2a.client import A2AClientError, ClientCallContext
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError

from a2a_canvas.server.accounts.api_key import hash_of
from a2a_canvas.server.assembly.engine import Clock as AppClock
from a2a_canvas.server.protocols.artifacts import change_stream
from a2a_canvas.server.protocols.identity import configuration
from a2a_canvas.server.protocols.identity.authenticator import ConfiguredKeys
from a2a_canvas.server.tasks.journal import cursors
from tests.fakes import API_KEYS, Clock
from tests.server.agui_client import PATH, Run
from tests.server.app_server import Served, Stream, asking, every_way, serving, text_of
from tests.server.protocols.identity.tokens import SigningKey
from tests.server.test_authentication import bearer, issuing

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY, OTHER_KEY, _ = API_KEYS
SLOW = "0123456789" * 10
every_kind = pytest.mark.parametrize("kind", ["key", "token"])


class RevocableKeys(ConfiguredKeys):
    def revoke(self, key: str) -> None:
        del self._keys[hash_of(key)]


@dataclass
class Credentials:
    """Those of ann's that end, and one that does not."""

    issuer: str
    signing: SigningKey
    keys: RevocableKeys
    clock: Clock
    lasting: str = OTHER_KEY

    def new(self, kind: str) -> str:
        return KEY if kind == "key" else self.signing.token(iss=self.issuer)

    def end(self, kind: str) -> None:
        if kind == "key":
            self.keys.revoke(KEY)
        else:
            self.clock.move(timedelta(hours=1))


@pytest_asyncio.fixture(loop_scope="module")
async def ending(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Served, Credentials]]:
    """A server whose streams look at once whether their credential is valid."""
    made: list[RevocableKeys] = []
    monkeypatch.setattr(configuration, "ConfiguredKeys", lambda keys: made.append(RevocableKeys(keys)) or made[0])
    monkeypatch.setattr(cursors, "CHECK_SECONDS", 0.01)
    clock, signing = Clock(), SigningKey("1")
    clock.time = datetime.now(UTC)
    async with (
        issuing(signing) as issuer,
        serving(
            clock=AppClock(now=clock),
            api_keys=f"ann={KEY},ann=sha256:{hash_of(OTHER_KEY)}",
            jwt_issuer=issuer,
            jwt_audience="canvas",
        ) as served,
    ):
        yield served, Credentials(issuer, signing, made[0], clock)


def calling(credential: str) -> ClientCallContext:
    return ClientCallContext(service_parameters=bearer(credential))


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    async with asyncio.timeout(10):
        yield


async def ended(stream: Stream) -> str:
    """Why a stream ended; empty if it does not say."""
    async with in_time():
        try:
            await stream.rest()
        except (A2AClientError, A2AError) as error:
            return str(error)
    return ""


@every_way
@every_kind
async def test_the_stream_ends_with_the_credential_and_goes_on_with_another(
    ending: tuple[Served, Credentials], way: tuple[str, str], kind: str
) -> None:
    served, credentials = ending
    mine = credentials.new(kind)
    stream = Stream(served.client(*way).send_message(asking("slowly report", context="c"), context=calling(mine)))
    served.gate.let(14)
    await stream.until_text(10)
    credentials.end(kind)

    # Nothing happens on it, and it ends.
    why = await ended(stream)
    assert "The credentials have expired or been revoked" in why
    assert stream.task.status.state == pb.TASK_STATE_WORKING
    assert len(text_of(stream.task)) < len(SLOW)

    request = pb.SubscribeToTaskRequest(id=stream.task.id)
    again = Stream(served.client(*way).subscribe(request, context=calling(credentials.lasting)))
    await again.next()
    served.gate.open()
    await again.rest()
    assert again.task.status.state == pb.TASK_STATE_COMPLETED
    assert text_of(again.task) == SLOW


async def test_the_stream_of_another_credential_goes_on(ending: tuple[Served, Credentials]) -> None:
    served, credentials = ending
    lasting = calling(credentials.lasting)
    stream = Stream(served.client().send_message(asking("slowly report"), context=lasting))
    served.gate.let(14)
    await stream.until_text(10)
    credentials.end("key")
    credentials.end("token")
    served.gate.open()
    await stream.rest()
    assert stream.task.status.state == pb.TASK_STATE_COMPLETED


@every_way
async def test_an_answer_without_a_stream_is_given_all_the_same(
    ending: tuple[Served, Credentials], way: tuple[str, str]
) -> None:
    served, credentials = ending
    asked = served.client(*way, streaming=False).send_message(
        asking("slowly report"), context=calling(credentials.new("token"))
    )
    answer = asyncio.ensure_future(anext(aiter(asked)))
    await served.gate.reached.wait()
    credentials.end("token")
    served.gate.open()
    assert text_of((await answer).task) == SLOW


@every_kind
async def test_a_run_of_ag_ui_ends_and_is_joined_by_sending_it_again(
    ending: tuple[Served, Credentials], kind: str
) -> None:
    served, credentials = ending
    message = {"id": "m", "role": "user", "content": "slowly report"}
    body = {"threadId": "t", "runId": "r", "messages": [message]}

    async def run(credential: str, then: Callable[[], None]) -> Run:
        async with served.http.stream("POST", PATH, json=body, headers=bearer(credential)) as response:
            run = Run(response)
            await run.until("STATE_SNAPSHOT")
            then()
            async with in_time():
                return await run.rest()

    first = await run(credentials.new(kind), lambda: credentials.end(kind))
    assert first.outcome == "unavailable"
    assert "reconnect with valid credentials" in first.end["message"]
    second = await run(credentials.lasting, served.gate.open)
    assert second.outcome == "success"
    assert second.text("report") == SLOW


@pytest.mark.parametrize("live", ["long-poll", "sse"])
@every_kind
async def test_readers_of_an_artifact_who_wait_are_let_go(
    ending: tuple[Served, Credentials], kind: str, live: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, wait = asyncio.Event(), change_stream._Waiting.wait

    def mark_and_wait(self: change_stream._Waiting, until: float) -> Awaitable[bool]:
        waits.set()
        return wait(self, until)

    monkeypatch.setattr(change_stream._Waiting, "wait", mark_and_wait)
    served, credentials = ending
    lasting, path = credentials.lasting, f"/artifacts/{live}-{kind}/report/stream"
    served.gate.open()
    asked = asking("write report", context=f"{live}-{kind}")
    await Stream(served.client().send_message(asked, context=calling(lasting))).rest()
    offset = (await served.http.get(f"{path}?offset=now", headers=bearer(lasting))).headers["Stream-Next-Offset"]
    mine = bearer(credentials.new(kind))
    reading = asyncio.ensure_future(served.http.get(f"{path}?offset={offset}&live={live}", headers=mine))
    async with in_time():
        await waits.wait()
        credentials.end(kind)
        answer = await reading
    assert answer.status_code == (401 if live == "long-poll" else 200)
    assert "streamClosed" not in answer.text


@pytest.mark.parametrize("by", ["header", "signed address"])
@every_kind
async def test_the_events_of_a_context_go_on_at_the_last_id(
    ending: tuple[Served, Credentials], kind: str, by: str
) -> None:
    served, credentials = ending
    lasting = bearer(credentials.lasting)
    asked = asking("slowly report", context="c", now=True)
    [_] = [
        each async for each in served.client(streaming=False).send_message(asked, context=calling(credentials.lasting))
    ]
    served.gate.let(11)
    path, headers = "/artifacts/c/events", bearer(credentials.new(kind))
    address = await signed(served, path, headers) if by == "signed address" else path
    seen = Seen()
    async with events(served, address, {} if by == "signed address" else headers) as changes:
        await seen.read(changes, until=10)
        # The address itself is over by now; what it has opened is not.
        credentials.clock.move(timedelta(seconds=61))
        served.gate.let(2)
        await seen.read(changes, until=40)
        credentials.end(kind)
        async with in_time():
            await seen.read(changes)
    assert len(seen.text) < len(SLOW)
    served.gate.open()
    async with events(served, path, lasting | {"Last-Event-ID": seen.last}) as changes:
        await seen.read(changes, until=len(SLOW))
    assert seen.text == SLOW


class Seen:
    """A document, as a client folds it, and the id of the last event."""

    def __init__(self) -> None:
        self.text = self.last = ""

    async def read(self, changes: AsyncIterator[tuple[str, dict[str, Any]]], until: int | None = None) -> None:
        """Read on to the end of the stream, or until there are so many characters."""
        while until is None or len(self.text) < until:
            try:
                self.last, update = await anext(changes)
            except StopAsyncIteration:
                return
            new = "".join(part.get("text", "") for part in update["artifact"]["parts"])
            self.text = self.text + new if update.get("append") else new


@every_kind
async def test_a_signed_address_opens_nothing_when_its_credential_has_ended(
    ending: tuple[Served, Credentials], kind: str
) -> None:
    served, credentials = ending
    if kind == "token":
        soon = datetime.now(UTC).timestamp() - 30  # the clocks may differ by a minute
        mine = credentials.signing.token(iss=credentials.issuer, exp=soon)
    else:
        mine = credentials.new(kind)
    address = await signed(served, "/artifacts", bearer(mine))
    assert (await served.http.get(address)).status_code == 200
    if kind == "token":
        credentials.clock.move(timedelta(seconds=31))
    else:
        credentials.end(kind)
    assert (await served.http.get(address)).status_code == 401


async def signed(served: Served, path: str, headers: dict[str, str]) -> str:
    answer = await served.http.post("/auth/signed-urls", json={"path": path}, headers=headers)
    url: str = answer.json()["url"]
    return url


@asynccontextmanager
async def events(
    served: Served, address: str, headers: dict[str, str]
) -> AsyncIterator[AsyncIterator[tuple[str, dict[str, Any]]]]:
    """The changes of a context, with their ids."""
    async with served.http.stream("GET", address, headers=headers) as response:
        assert response.status_code == 200
        async with aclosing(_changes(response.aiter_lines())) as changes:
            yield changes


async def _changes(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    last = ""
    async for line in lines:
        if line.startswith("id: "):
            last = line.removeprefix("id: ")
        elif line.startswith("data: ") and "artifactUpdate" in line:
            yield last, json.loads(line.removeprefix("data: "))["artifactUpdate"]
