"""Server-sent events, however they are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.agent.models.sse_decoder import EventStreamDecoder, ServerSentEvent

STREAM = ": a comment\nevent: one\ndata: {\ndata:  }\nid: 7\n\ndata:grüße 😀\n\nevent: none\n\nevent:two\ndata\n\n"
EVENTS = [ServerSentEvent("one", "{\n }"), ServerSentEvent("", "grüße 😀"), ServerSentEvent("two", "")]
line_ends = st.sampled_from(["\n", "\r\n", "\r"])


def decoded(*contents: bytes) -> list[ServerSentEvent]:
    decoder = EventStreamDecoder()
    return [event for content in contents for event in decoder.feed(content)]


@given(line_ends, st.data())
def test_the_events_are_the_same_however_the_lines_end_and_the_bytes_are_cut(end: str, data: st.DataObject) -> None:
    body = STREAM.replace("\n", end).encode() + b":\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=20)))
    assert decoded(*(body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True))) == EVENTS


@given(st.sampled_from(["\n", "\r\n"]))
def test_an_event_is_there_with_its_last_byte(end: str) -> None:
    decoder = EventStreamDecoder()
    *before, last = STREAM.replace("\n", end).encode()
    events = [len(decoder.feed(bytes([byte]))) for byte in before]
    assert (sum(events), decoder.feed(bytes([last]))) == (2, EVENTS[2:])


def test_what_follows_the_last_blank_line_is_no_event() -> None:
    assert decoded(b"data: 1\n\ndata: 2\n") == [ServerSentEvent("", "1")]
