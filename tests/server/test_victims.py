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
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import grpc
import grpc.aio
import pytest
from google.protobuf.json_format import ParseError

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.backend.migrations import upgrade
from a2a_canvas.store.sql.database import Database
from tests.database_fixtures import postgresql_url, sqlite_url
from tests.every_request import Asked, every_call, every_request, every_route, kinds, kinds_of, requests_of_settings
from tests.extreme_values import STRINGS, TIMES, VALUES, alterations, deep
from tests.loopback import serving_app
from tests.open_id_provider import Provider
from tests.property_examples import examples
from tests.server.app_server import serving
from tests.victims import FRIEND, RULES, VICTIM, Victim, fault, message_of

KEYS = {name: new_key(name) for name in (VICTIM, FRIEND, "bob")}
CREDENTIALS = {name: {"Authorization": f"Bearer {key}"} for name, key in KEYS.items()}
# Codes that the provider refuses slow down the sign-ins from an address.
CREDENTIALS["bob"]["X-Forwarded-For"] = "10.0.0.1"
DEEP = tuple(deep(100_000, closed=closed).encode() for closed in (True, False))
_WRITES = {"append": False, "last_chunk": True, "artifact": {"artifact_id": "report", "parts": [{"text": "Hello"}]}}
_SAYS: list[dict[str, Any]] = [{"tools": [{"name": "artifact_update", "input": _WRITES}]}, {"text": "Done."}]
SCRIPT = json.dumps({"rules": [*RULES, {"match": {"text": ""}, "rounds": _SAYS}]})
OF_A_KIND = examples(20)
"""Requests that bob sends of each in the table."""
AT_ONCE = 8


def test_the_table_has_a_request_of_every_kind() -> None:
    every = (*every_request(), *requests_of_settings(), *every_call())
    assert {kind for asked in every for kind in kinds_of(asked)} == kinds()


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


@pytest.fixture(params=[pytest.param("memory", marks=pytest.mark.slow), "sqlite", "postgresql"])
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

    victim: Victim
    bob: Victim


@asynccontextmanager
async def world(database: str, folder: Path, *, calls: bool) -> AsyncIterator[World]:
    keys = ",".join(f"{name}={key}" for name, key in KEYS.items())
    script = folder / "script.json"
    script.write_text(SCRIPT)
    settings: dict[str, Any] = {"grpc": calls, "database": database, "api_keys": keys, "push_allow": "127.0.0.1"}
    provider = Provider()
    async with (
        serving_app(provider.app) as issuer,
        serving(script, **settings, **every_route(folder, issuer)) as served,
        grpc.aio.insecure_channel(served.grpc) as opened,
    ):
        served.gate.open()
        channel = opened if calls else None
        victim = Victim(served.http, CREDENTIALS, provider=provider, channel=channel)
        bob = Victim(served.http, CREDENTIALS, "bob", VICTIM, provider=provider, channel=channel)
        await victim.begin()
        await bob.begin()
        yield World(victim, bob)


@pytest.mark.timeout(300)  # thousands of requests, on a busy machine
async def test_whatever_one_user_sends_the_requests_of_another_succeed(database: str, tmp_path: Path) -> None:
    async with world(database, tmp_path, calls=False) as w:
        assert await w.victim.round() == []
        chance = random.Random(1)
        for kind in (*every_request(), *requests_of_settings()):
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


def as_protobuf(call: Asked) -> bytes | None:
    """The message of a call as bytes; None for what is no message of its method."""
    try:
        json.dumps(call.body, ensure_ascii=False).encode()  # protobuf has no error for half of a surrogate pair
        return message_of(call).SerializeToString()
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


@pytest.mark.timeout(300)
async def test_whatever_one_user_sends_over_grpc_the_requests_of_another_succeed(database: str, tmp_path: Path) -> None:
    async with world(database, tmp_path, calls=True) as w:
        chance = random.Random(2)
        for kind in every_call():
            call = await w.bob.resolved(kind)
            altered = [*alterations(call.body, VALUES)]
            chance.shuffle(altered)
            messages = (as_protobuf(replace(call, body=body)) for body in altered)
            some = [*islice((data for data in messages if data is not None), OF_A_KIND)]
            some += hostile_bytes(as_protobuf(call) or b"", chance)
            for start in range(0, len(some), AT_ONCE):
                calls = [replace(call, body=data) for data in some[start : start + AT_ONCE]]
                for each, answer in zip(calls, await asyncio.gather(*map(w.bob.answer, calls)), strict=True):
                    assert not fault(answer, refused=True), (kind, each.body[:300], answer)
                assert await w.victim.next_fault() == ""
            answer = await w.victim.answer(await w.victim.resolved(kind))
            assert not fault(answer), (kind, answer)
        assert await w.victim.round() == []
