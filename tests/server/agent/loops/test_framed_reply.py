"""Pieces of a reply that come within one frame are one event, in their order."""

import asyncio

import pytest

from a2a_canvas.server.agent.blocks import Progress
from a2a_canvas.server.agent.events import TextAdded, ThinkingAdded, ToolInputAdded
from a2a_canvas.server.agent.loops.framed_reply import FramedReply
from a2a_canvas.server.agent.models.wrappers import UNJOINED_CHARACTERS
from a2a_canvas.server.agent.turn.call import TurnOutput
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.tools.tool import Workspace
from tests.fakes import EventRecorder, ids

LONG = 3600.0
"""Seconds: a frame that does not end by itself."""


class Shown(FramedReply):
    """A reply, and what clients have seen of it."""

    def __init__(self, frame: float) -> None:
        self.told = EventRecorder()
        store = EventedArtifactStore(InMemoryArtifactStore(), self.told)
        workspace = Workspace(store, "context", "task")
        super().__init__(Progress(), workspace, TurnOutput(self.told, ids()), lambda: "", frame)

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.told.of(TextAdded)]

    @property
    def inputs(self) -> list[str]:
        return [event.partial_json for event in self.told.of(ToolInputAdded)]


async def test_the_first_piece_is_shown_at_once_and_the_next_ones_together() -> None:
    reply = Shown(LONG)
    for piece in ("one ", "two ", "three"):
        await reply.add("text", piece)
    assert reply.texts == ["one "]
    await reply.end_round()
    assert reply.texts == ["one ", "two three"]


async def test_the_end_of_a_frame_shows_what_has_come() -> None:
    reply = Shown(0.001)
    await reply.add("text", "one ")
    await reply.add("text", "two ")
    while len(reply.texts) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert reply.texts == ["one ", "two "]


async def test_what_comes_between_two_pieces_keeps_its_place() -> None:
    reply = Shown(LONG)
    for piece in ("a", "b"):
        await reply.add("text", piece)
    await reply.add("thinking", "hm")
    for piece in ("c", "d"):
        await reply.add("text", piece)
    await reply.begin_call("c1", "search")
    kinds = [type(event) for event in reply.told.events if isinstance(event, TextAdded | ThinkingAdded)]
    assert "".join(reply.texts).replace("\n", "") == "abcd"
    assert kinds.index(ThinkingAdded) == 2


async def test_the_start_of_an_input_is_not_joined() -> None:
    reply = Shown(LONG)
    fed: list[str] = []

    async def feed(piece: str) -> None:
        fed.append(piece)

    await reply.begin_call("c1", "artifact_update")
    text = '{"text": "' + "x" * 2 * UNJOINED_CHARACTERS
    pieces = [text[at : at + 64] for at in range(0, len(text), 64)]
    for piece in pieces:
        await reply.add_input("c1", piece, feed)
    assert reply.inputs == pieces[: UNJOINED_CHARACTERS // 64]
    await reply.add_input("c1", '"}', feed)
    await reply.end_call("c1")
    assert "".join(reply.inputs) == "".join(fed) == text + '"}'
    assert len(reply.inputs) == UNJOINED_CHARACTERS // 64 + 1
    assert fed == reply.inputs


async def test_a_failure_at_the_end_of_a_frame_is_raised_by_what_comes_next() -> None:
    reply = Shown(0.001)

    async def fail(piece: str) -> None:
        if "bad" in piece:
            raise ValueError(piece)

    await reply.begin_call("c1", "artifact_update")
    await reply.add_input("c1", "x" * UNJOINED_CHARACTERS, fail)
    await reply.add_input("c1", "bad", fail)
    while "bad" not in "".join(reply.inputs):  # noqa: ASYNC110
        await asyncio.sleep(0)
    with pytest.raises(ValueError, match="bad"):
        await reply.end_call("c1")


async def test_what_was_not_shown_goes_with_a_round_that_is_aborted() -> None:
    reply = Shown(LONG)
    for piece in ("one ", "two "):
        await reply.add("text", piece)
    await reply.abort()
    await reply.add("text", "again")
    await reply.end_round()
    assert reply.texts == ["one ", "again"]


async def test_without_a_frame_nothing_is_joined() -> None:
    reply = Shown(0)
    for piece in ("one ", "two "):
        await reply.add("text", piece)
    assert reply.texts == ["one ", "two "]


async def test_pieces_of_two_calls_that_stream_at_the_same_time_stay_apart() -> None:
    reply = Shown(LONG)
    waits, go_on = asyncio.Event(), asyncio.Event()

    async def feed(piece: str) -> None:
        if "wait" in piece:
            waits.set()
            await go_on.wait()

    for call_id in ("c1", "c2"):
        await reply.begin_call(call_id, "artifact_update")
    start = "x" * UNJOINED_CHARACTERS
    await reply.add_input("c1", start, feed)
    await reply.add_input("c1", "wait", feed)
    other = asyncio.create_task(reply.add_input("c2", "second", feed))
    await waits.wait()
    await reply.add_input("c1", "first", feed)
    go_on.set()
    await other
    await reply.flush()
    written = {
        call_id: "".join(each.partial_json for each in reply.told.of(ToolInputAdded) if each.tool_use_id == call_id)
        for call_id in ("c1", "c2")
    }
    assert written == {"c1": f"{start}waitfirst", "c2": "second"}
