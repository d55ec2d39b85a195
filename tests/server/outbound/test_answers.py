from collections.abc import AsyncIterator

import pytest

from a2a_canvas.server.outbound.answers import COMPRESSED, AnswerMeter, is_compressed, is_stream, too_large


@pytest.mark.parametrize(
    ("encoding", "compressed"),
    [("", False), ("identity", False), (" Identity ", False), ("gzip", True), ("identity, br", True), ("x", True)],
)
def test_whatever_is_not_identity_counts_as_compressed(encoding: str, compressed: bool) -> None:
    assert is_compressed(encoding) is compressed


@pytest.mark.parametrize(
    ("method", "accept", "status", "content_type", "streams"),
    [
        ("POST", "text/event-stream", 200, "text/event-stream; charset=utf-8", True),
        ("GET", "application/json, text/event-stream", 200, "Text/Event-Stream", True),
        ("POST", "application/json", 200, "text/event-stream", False),
        ("POST", "text/event-stream", 200, "application/json", False),
        ("POST", "text/event-stream", 307, "text/event-stream", False),
        ("DELETE", "text/event-stream", 200, "text/event-stream", False),
    ],
)
def test_an_answer_is_a_stream_where_its_client_reads_one(
    method: str, accept: str, status: int, content_type: str, streams: bool
) -> None:
    assert is_stream(method, accept, status, content_type) is streams


def faults(meter: AnswerMeter, *chunks: bytes) -> list[str]:
    return [meter.fault(chunk) for chunk in chunks]


def test_a_body_may_have_as_many_bytes_as_its_limit() -> None:
    assert faults(AnswerMeter(4), b"ab", b"cd", b"e") == ["", "", too_large(4)]


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n"])
def test_each_event_of_a_stream_may_have_as_many(end: bytes) -> None:
    event = b"data: 1" + end
    meter = AnswerMeter(len(event), events=True)
    assert not any(faults(meter, *[event] * 3))
    assert not any(faults(meter, *[bytes((each,)) for each in event * 3]))  # cut anywhere
    assert faults(meter, b"data: 12345678901") == [too_large(len(event))]


async def test_a_compressed_body_is_not_read() -> None:
    read = []

    async def body() -> AsyncIterator[bytes]:
        read.append(1)
        yield b""

    with pytest.raises(ValueError, match=COMPRESSED):
        async for _ in AnswerMeter(refused=COMPRESSED).read(body(), ValueError):
            pass
    assert not read
