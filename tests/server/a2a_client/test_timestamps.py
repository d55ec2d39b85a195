"""Time stamps without a zone, as fasta2a writes them, are read; nothing else of an answer is altered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import pairwise

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.a2a_client.timestamps import add_zones, add_zones_to_answer
from tests.loopback import serving_app
from tests.server.client.client_harness import Script, typed

NAIVE = "2026-11-22T09:45:07.123456"
WORKING = {"state": "TASK_STATE_WORKING", "timestamp": NAIVE}
DONE = {"state": "TASK_STATE_COMPLETED", "timestamp": NAIVE}
IDS = {"taskId": "t1", "contextId": "c1"}
PART = {"data": {"timestamp": NAIVE}}
ARTIFACT = {"artifactId": "r1", "name": "report", "parts": [{"text": f'{{"timestamp":"{NAIVE}"}}'}, PART]}


@pytest.mark.parametrize(
    ("streaming", "answer"),
    [
        (False, {"result": {"task": {"id": "t1", "contextId": "c1", "status": DONE, "artifacts": [ARTIFACT]}}}),
        (
            True,
            [
                {"result": {"task": {"id": "t1", "contextId": "c1", "status": WORKING}}},
                {"result": {"artifactUpdate": {**IDS, "artifact": ARTIFACT}}},
                {"result": {"statusUpdate": {**IDS, "status": DONE}}},
            ],
        ),
    ],
)
async def test_a_task_with_such_time_stamps_is_shown_as_any_other(streaming: bool, answer: object) -> None:
    async with serving_app(Script([answer], streaming=streaming).app) as url:
        got = await typed("send", "go", "--json", "--url", url)
    assert (got.code, got.err) == (0, "")
    *_, last = map(json.loads, got.out.splitlines())
    status = (last.get("task") or last["statusUpdate"])["status"]
    assert status == {"state": "TASK_STATE_COMPLETED", "timestamp": f"{NAIVE}Z"}
    assert f'"data": {{"timestamp": "{NAIVE}"}}' in got.out


@pytest.mark.parametrize(
    ("stamp", "read"),
    [
        ("2026-11-22T09:45:07", "2026-11-22T09:45:07Z"),
        (NAIVE, f"{NAIVE}Z"),
        ("2026-11-22T09:45:07Z", "2026-11-22T09:45:07Z"),
        ("2026-11-22T09:45:07+01:00", "2026-11-22T09:45:07+01:00"),
        ("-", "-"),
    ],
)
def test_a_time_stamp_without_a_zone_is_of_utc(stamp: str, read: str) -> None:
    status = {"state": "working", "message": {"parts": []}, "timestamp": stamp}
    assert json.loads(add_zones(json.dumps({"result": {"status": status}}).encode())) == {
        "result": {"status": status | {"timestamp": read}}
    }


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"state": "solid", "timestamp": NAIVE, "colour": "red"}).encode(),
        json.dumps({"timestamp": NAIVE}).encode(),
        b'{"timestamp": "' + NAIVE.encode() + b'", broken',
        b"\xff\x00",
        b"",
    ],
)
def test_everything_else_stays_as_it_is(text: bytes) -> None:
    try:
        before = json.loads(text)
    except ValueError:
        assert add_zones(text) == text
    else:
        assert json.loads(add_zones(text)) == before


class Pieces(httpx.AsyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


async def read(method: str, pieces: list[bytes], media_type: str = "text/event-stream", path: str = "") -> bytes:
    """What a client of httpx reads of an answer that comes in these pieces."""
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers={"content-type": media_type}, stream=Pieces(pieces))
    )
    async with httpx.AsyncClient(transport=transport, event_hooks={"response": [add_zones_to_answer]}) as http:
        return (await http.request(method, f"http://h/{path}")).content


EVENT = b": ping\r\n\r\ndata: " + json.dumps({"status": WORKING}).encode() + b"\r\n\r\n"


@given(st.lists(st.integers(0, len(EVENT)), max_size=6))
async def test_however_an_event_stream_is_cut_it_is_mended_line_by_line(places: list[int]) -> None:
    bounds = [0, *sorted(places), len(EVENT)]
    pieces = [EVENT[start:end] for start, end in pairwise(bounds)]
    ping, _, data, *_ = (await read("POST", pieces)).split(b"\n")
    assert ping == b": ping\r"
    assert json.loads(data.removeprefix(b"data: ")) == {"status": WORKING | {"timestamp": f"{NAIVE}Z"}}


async def test_what_is_read_by_get_is_the_users_content() -> None:
    text = json.dumps(DONE).encode()
    assert await read("GET", [text], "application/json") == text


async def test_a_task_that_is_read_by_get_is_not() -> None:
    text = json.dumps({"id": "t1", "status": DONE}).encode()
    assert b'000Z"' in (await read("GET", [text.replace(b"123456", b"000")], "application/json", "v1/tasks/t1"))
    assert await read("GET", [text], "application/json", "artifacts/c1/tasks") == text
