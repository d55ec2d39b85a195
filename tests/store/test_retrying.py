"""A store that waits for its database."""

import asyncio

import pytest

from a2a_canvas.store.errors import ArtifactNotFound, Unavailable
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.retrying import RetryingStore
from tests.store.artifact_builders import appending, by, replacing, result, text

REF = by("t1")
CALLS = {
    "get": lambda store: store.get(REF),
    "list": lambda store: store.list("c"),
    "versions": lambda store: store.versions(REF),
    "version": lambda store: store.version(REF, 1),
    "prepare": lambda store: store.prepare(REF),
    "apply": lambda store: store.apply(REF, appending("B")),
    "complete_call": lambda store: store.complete_call(REF),
    "close": lambda store: store.close(REF),
    "discard": lambda store: store.discard(REF),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


class Away(InMemoryArtifactStore):
    """A store whose database is away for the next `times` calls."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0
        result(self.apply(REF, replacing("A", last_chunk=True)))

    def __getattribute__(self, name: str) -> object:
        if name in CALLS and self.times:
            self.times -= 1
            raise Unavailable("it is away")
        return super().__getattribute__(name)


class Pauses:
    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> None:
        self.count += 1


class Lost(Exception):
    pass


@every_call
@pytest.mark.parametrize("times", [0, 1, 3])
async def test_a_call_is_tried_until_the_database_is_there(call, times) -> None:
    store, same, pauses = Away(), Away(), Pauses()
    store.times = times
    assert await call(RetryingStore(store, pauses)) == await call(same)
    assert pauses.count == times
    assert (await store.get(REF)).content == (await same.get(REF)).content


@every_call
def test_while_it_is_there_nothing_waits(call) -> None:
    result(call(RetryingStore(Away(), Pauses())))


async def test_what_else_goes_wrong_is_not_tried_again() -> None:
    pauses = Pauses()
    with pytest.raises(ArtifactNotFound):
        await RetryingStore(Away(), pauses).get(by("t1", "nope"))
    assert pauses.count == 0


async def test_a_cancel_ends_the_waiting_and_nothing_has_changed() -> None:
    store, waiting = Away(), asyncio.Event()
    store.times = 1000

    async def pause() -> None:
        waiting.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(RetryingStore(store, pause).apply(REF, appending("B")))
    await waiting.wait()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    store.times = 0
    assert (await store.get(REF)).parts == (text("A"),)


@every_call
async def test_for_a_task_that_is_somebody_elses_nothing_is_tried(call) -> None:
    class Untouched(Away):
        def __getattribute__(self, name: str) -> object:
            assert name not in CALLS or name == "apply", "it was asked"
            return super().__getattribute__(name)

    def lost() -> None:
        raise Lost

    store = Untouched()
    before = store._contexts["c"]["a"]
    with pytest.raises(Lost):
        await call(RetryingStore(store, Pauses(), lost))
    assert store._contexts["c"]["a"] is before


@every_call
async def test_a_task_that_is_lost_while_it_waits_is_tried_for_no_more(call) -> None:
    store, away = Away(), []
    store.times = 5

    def check() -> None:
        away.append(store.times)
        if len(away) == 3:
            raise Lost

    with pytest.raises(Lost):
        await call(RetryingStore(store, Pauses(), check))
    assert away == [5, 4, 3]
