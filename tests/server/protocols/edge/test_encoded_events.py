"""The events that a server keeps encoded: the newest, up to a number of bytes."""

import pytest

from a2a_canvas.server.protocols.edge.encoded_events import OVERHEAD_BYTES, EncodedEvents


@pytest.mark.parametrize("size", [0, 10, 1000])
def test_the_newest_events_are_kept_up_to_a_number_of_bytes(size: int) -> None:
    room = 3
    encoded, made = EncodedEvents(room * (size + OVERHEAD_BYTES)), []

    def encode(key: int) -> bytes:
        return encoded.encode(key, lambda: made.append(key), lambda _: b"x" * size)

    for key in (1, 2, 3, 1, 2, 3, 4, 4, 2, 3, 1):
        assert encode(key) == b"x" * size
    assert made == [1, 2, 3, 4, 1]


def test_an_event_that_is_larger_than_all_the_room_is_not_kept() -> None:
    encoded, made = EncodedEvents(1000), []
    for _ in range(2):
        encoded.encode("large", lambda: made.append(1), lambda _: b"x" * 2000)
    encoded.encode("small", lambda: made.append(1), lambda _: b"")
    encoded.encode("small", lambda: made.append(1), lambda _: b"")
    assert len(made) == 3
