"""Whatever one user sends, in any value, the next requests of another succeed: in memory, on SQLite and PostgreSQL.

Bob gives the victim a context, and gets one. He sends requests of every kind with one value replaced by an extreme one
(`tests/extreme_values.py`): in the body, the query or a header. After every few of them the victim makes its next
request (`tests/victims.py`).
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import grpc
import grpc.aio
import pytest
from google.protobuf.json_format import ParseDict, ParseError

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.backend.migrations import upgrade
from a2a_canvas.server.protocols.guard.calls import REQUESTS
from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.every_request import Asked, every_request, kinds, kinds_of
from tests.extreme_values import STRINGS, TIMES, VALUES, alterations, deep
from tests.property_examples import examples
from tests.server.app_server import Served, serving
from tests.victims import FRIEND, RULES, VICTIM, Victim, fault

KEYS = {name: new_key() for name in (VICTIM, FRIEND, "bob")}
CREDENTIALS = {name: {"Authorization": f"Bearer {key}"} for name, key in KEYS.items()}
BACKENDS = ("memory", "sqlite", "postgresql")
DEEP = tuple(deep(100_000, closed=closed).encode() for closed in (True, False))
_WRITES = {"append": False, "last_chunk": True, "artifact": {"artifact_id": "report", "parts": [{"text": "Hello"}]}}
_SAYS: list[dict[str, Any]] = [{"tools": [{"name": "artifact_update", "input": _WRITES}]}, {"text": "Done."}]
SCRIPT = json.dumps({"rules": [*RULES, {"match": {"text": ""}, "rounds": _SAYS}]})
OF_A_KIND = examples(60)
"""Requests that bob sends of each in the table."""
AT_ONCE = 8


def test_the_table_has_a_request_of_every_kind() -> None:
    assert {kind for asked in every_request() for kind in kinds_of(asked)} == kinds()


MAX_URL = 65_000
"""Characters; httpx sends no more."""


def hostile(asked: Asked) -> Iterator[Asked]:
    """A request with one value of its body, its query or its headers replaced."""
    if asked.body is not None:
        yield from (replace(asked, body=body) for body in alterations(asked.body, VALUES))
    parts = urlsplit(asked.url)
    given = dict(parse_qsl(parts.query))
    for query in _altered(given):
        url = parts._replace(query=urlencode(query, errors="surrogatepass")).geturl()
        if len(url) <= MAX_URL:
            yield replace(asked, url=url)
    yield from (replace(asked, headers=headers) for headers in _altered(asked.headers) if _is_sendable(headers))


def _altered(given: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The same with another value for each name."""
    for name in given:
        yield from ({**given, name: value} for value in (*TIMES, *STRINGS))


def _is_sendable(headers: Mapping[str, str]) -> bool:
    """Whether httpx sends them."""
    return all(
        value.isascii() and value.isprintable() and value == value.strip() and len(value) < 10_000
        for value in headers.values()
    )


@pytest.fixture(params=BACKENDS)
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory"
    url = sqlite_url(tmp_path) if request.param == "sqlite" else postgresql_url()
    opened = Database(url)
    await upgrade(opened)
    await opened.close()
    return url


@dataclass(frozen=True)
class World:
    """A server with a victim and bob."""

    served: Served
    victim: Victim
    bob: Victim


@asynccontextmanager
async def world(database: str, folder: Path, *, grpc: bool) -> AsyncIterator[World]:
    keys = ",".join(f"{name}={key}" for name, key in KEYS.items())
    script = folder / "script.json"
    script.write_text(SCRIPT)
    async with serving(script, grpc=grpc, database=database, api_keys=keys, push_allow="127.0.0.1") as served:
        served.gate.open()
        victim, bob = Victim(served.http, CREDENTIALS), Victim(served.http, CREDENTIALS, "bob", VICTIM)
        await victim.begin()
        await bob.begin()
        yield World(served, victim, bob)


async def test_whatever_one_user_sends_the_requests_of_another_succeed(database: str, tmp_path: Path) -> None:
    async with world(database, tmp_path, grpc=False) as w:
        assert await w.victim.round() == []
        chance = random.Random(1)
        for kind in every_request():
            attacks = [*hostile(await w.bob.resolved(kind))]
            deep = [replace(kind, body=body) for body in DEEP if kind.body is not None]
            some = [*deep, *chance.sample(attacks, min(OF_A_KIND, len(attacks)))]
            for start in range(0, len(some), AT_ONCE):
                asked = some[start : start + AT_ONCE]
                answers = await asyncio.gather(*map(w.bob.answer, asked))
                for each, answer in zip(asked, answers, strict=True):
                    assert not fault(answer, refused=True), (each, answer)
                assert await w.victim.next_fault() == ""
        assert await w.victim.round() == []


# ---------------------------------------------------------------------------------- gRPC


STREAMS = ("SendStreamingMessage", "SubscribeToTask")


async def call(channel: grpc.aio.Channel, who: str, method: str, request: bytes) -> grpc.aio.AioRpcError | bytes:
    """The answer; of a stream its first message."""
    path, options = (
        f"/lf.a2a.v1.A2AService/{method}",
        {"metadata": [("authorization", f"Bearer {KEYS[who]}")], "timeout": 60},
    )
    try:
        if method not in STREAMS:
            return bytes(await channel.unary_unary(path, None, None)(request, **options))
        stream = channel.unary_stream(path, None, None)(request, **options)
        try:
            return await stream.read()  # type: ignore[no-any-return]
        finally:
            stream.cancel()
    except grpc.aio.AioRpcError as error:
        return error


def as_protobuf(method: str, params: Any) -> bytes | None:
    """The params as bytes; None for what is no message of the method."""
    try:
        json.dumps(params, ensure_ascii=False).encode()  # no half of a surrogate pair, for which protobuf has no error
        return bytes(ParseDict(params, REQUESTS[method](), ignore_unknown_fields=True).SerializeToString())
    except (ParseError, ValueError, TypeError, AttributeError, RecursionError):
        return None


def hostile_bytes(whole: bytes, chance: random.Random) -> Iterator[bytes]:
    """What is no message, or one that is cut off, nested too deep, or has other bytes in it."""
    yield b"\xff" * 1000
    nested = b""
    for _ in range(10_000):
        nested = b"\x0a" + encoded_length(len(nested)) + nested
    yield nested
    for _ in range(OF_A_KIND // 4):
        at = chance.randrange(len(whole) or 1)
        yield whole[:at]
        yield whole[:at] + chance.randbytes(2) + whole[at + 1 :]


def encoded_length(size: int) -> bytes:
    return bytes([size]) if size < 128 else bytes([size & 127 | 128]) + encoded_length(size >> 7)


def grpc_fault(answer: grpc.aio.AioRpcError | bytes) -> str:
    code = answer.code() if isinstance(answer, grpc.aio.AioRpcError) else grpc.StatusCode.OK
    mine = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.DEADLINE_EXCEEDED)  # fmt: skip
    return str(answer) if code in mine else ""


async def test_whatever_one_user_sends_over_grpc_the_requests_of_another_succeed(database: str, tmp_path: Path) -> None:
    async with world(database, tmp_path, grpc=True) as w, grpc.aio.insecure_channel(w.served.grpc) as channel:
        chance = random.Random(2)
        for kind in every_request():
            if kind.url != "/" or kind.method != "POST" or (method := kind.body["method"]) not in REQUESTS:
                continue
            params = (await w.bob.resolved(kind)).body["params"]
            messages = [data for each in alterations(params, VALUES) if (data := as_protobuf(method, each)) is not None]
            some = chance.sample(messages, min(OF_A_KIND, len(messages)))
            some += hostile_bytes(as_protobuf(method, params) or b"", chance)
            for start in range(0, len(some), AT_ONCE):
                calls = [call(channel, "bob", method, data) for data in some[start : start + AT_ONCE]]
                for data, answer in zip(some[start : start + AT_ONCE], await asyncio.gather(*calls), strict=True):
                    assert not grpc_fault(answer), (kind, data[:300], answer)
                assert await w.victim.next_fault() == ""
            request = as_protobuf(method, (await w.victim.resolved(kind)).body["params"])
            assert request is not None
            assert isinstance(answer := await call(channel, VICTIM, method, request), bytes), (kind, answer)
        assert await w.victim.round() == []
