"""Who is present: each stream gets all changes joined, once a second; nobody's flood delays others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.tasks.presence.presence_changes import PresenceChange
from a2a_canvas.server.tasks.presence.present_people import MAX_PEOPLE, MAX_WINDOWS, PresentPeople
from a2a_canvas.server.tasks.presence.roster import CursorPlace, PresentPerson, Roster
from tests.server.tasks.presence.timers import FakeTimers


def at(start: int, end: int | None = None) -> CursorPlace:
    return CursorPlace("doc", 1, start, start if end is None else end)


class Stream:
    """A stream of a context, and all that it was told."""

    def __init__(self, rosters: AsyncGenerator[Roster, None]) -> None:
        self.told: list[Roster] = []
        self._reading = asyncio.create_task(self._read(rosters))

    async def _read(self, rosters: AsyncGenerator[Roster, None]) -> None:
        async with aclosing(rosters):
            async for roster in rosters:
                self.told.append(roster)

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait((self._reading,))

    @property
    def names(self) -> list[str]:
        return [person.account for person in self.told[-1].people]

    def cursors(self, account: str) -> dict[str, CursorPlace]:
        return next(dict(person.cursors) for person in self.told[-1].people if person.account == account)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class World:
    """The people of one replica, on a clock that tests move."""

    def __init__(self) -> None:
        self.timers = FakeTimers()
        self.people = PresentPeople(self.timers.call_later)
        self.opened: list[Stream] = []

    async def open(self, account: str, context: str = "c") -> Stream:
        stream = Stream(self.people.watch(context, account))
        self.opened.append(stream)
        await settle()
        return stream

    async def passes(self, seconds: float = 1.0) -> None:
        self.timers.move(seconds)
        await settle()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        made = World()
        yield made
        for stream in made.opened:
            stack.push_async_callback(stream.close)


async def test_who_comes_is_told_who_is_there_and_the_others_that_somebody_came(world) -> None:
    ada = await world.open("ada")
    await world.passes(0)
    assert ada.told == [Roster((PresentPerson("ada"),))]
    bob = await world.open("bob")
    assert bob.told == []
    await world.passes()
    assert ada.told[1:] == bob.told == [Roster((PresentPerson("ada"), PresentPerson("bob")))]


async def test_a_second_window_of_a_person_is_told_at_once_and_nobody_else_anything(world) -> None:
    ada = await world.open("ada")
    await world.passes(0)
    again = await world.open("ada")
    await world.passes(5)
    assert again.told == ada.told == [Roster((PresentPerson("ada"),))]


async def test_who_leaves_is_gone_with_the_cursors_when_the_last_stream_ends(world) -> None:
    ada, bob, again = await world.open("ada"), await world.open("bob"), await world.open("bob")
    world.people.move("c", "bob", "w", at(3))
    await world.passes()
    await bob.close()
    await world.passes(5)
    assert ada.cursors("bob") == {"w": at(3)}
    await again.close()
    await world.passes()
    assert ada.names == ["ada"]
    await world.open("bob")
    await world.passes()
    assert ada.cursors("bob") == {}


async def test_moves_of_a_second_are_one_event_with_the_newest_place_of_each_window(world) -> None:
    ada = await world.open("ada")
    await world.open("bob")
    await world.passes()
    told = len(ada.told)
    for place in range(500):
        world.people.move("c", "bob", "w", at(place))
        world.people.move("c", "ada", "w", at(place, place + 2))
        await world.passes(0.001)
    await world.passes(0.6)
    assert len(ada.told) - told == 2  # the first at once, the others after a second
    assert ada.cursors("bob") == {"w": at(499)}
    assert ada.cursors("ada") == {"w": at(499, 501)}


async def test_without_a_change_nothing_is_told_and_nothing_runs(world) -> None:
    ada = await world.open("ada")
    world.people.move("c", "ada", "w", at(1))
    await world.passes(5)
    told = len(ada.told)
    world.people.move("c", "ada", "w", at(1))
    await world.passes(60)
    assert len(ada.told) == told
    assert world.timers.waiting == 0


async def test_a_withdrawn_cursor_is_gone_and_its_person_stays(world) -> None:
    ada = await world.open("ada")
    for place in (at(1), None):
        world.people.move("c", "ada", "w", place)
        await world.passes()
    assert ada.told[-1] == Roster((PresentPerson("ada"),))


async def test_a_flood_of_windows_pushes_out_only_the_flooders_own_cursors(world) -> None:
    ada = await world.open("ada")
    await world.open("bob")
    world.people.move("c", "ada", "w", at(1))
    for number in range(MAX_WINDOWS * 3):
        world.people.move("c", "bob", f"w{number}", at(number))
    await world.passes()
    assert ada.cursors("ada") == {"w": at(1)}
    assert ada.cursors("bob") == {f"w{number}": at(number) for number in range(MAX_WINDOWS * 2, MAX_WINDOWS * 3)}


async def test_a_crowd_is_counted_and_those_with_cursors_are_named_first(world) -> None:
    ada = await world.open("ada")
    for number in range(MAX_PEOPLE + 9):
        await world.open(f"user {number:03}")
    world.people.move("c", "user 108", "w", at(1))
    await world.passes()
    assert (len(ada.told[-1].people), ada.told[-1].more) == (MAX_PEOPLE, 10)
    assert "user 108" in ada.names


async def test_one_who_has_no_stream_leaves_no_cursor_behind(world) -> None:
    world.people.move("c", "bob", "w", at(1))
    ada = await world.open("ada")
    world.people.move("c", "bob", "w", at(1))
    await world.passes()
    await world.open("bob")
    await world.passes()
    assert ada.cursors("bob") == {}


async def test_contexts_know_nothing_of_each_other(world) -> None:
    ada, bob = await world.open("ada"), await world.open("bob", "other")
    world.people.move("other", "bob", "w", at(1))
    await world.passes()
    assert (ada.names, bob.names) == (["ada"], ["bob"])


async def test_agents_are_seen_where_they_work_also_by_those_who_come_later(world) -> None:
    world.people.show_agent("c", "task", at(4, 9))
    ada = await world.open("ada")
    await world.passes()
    assert ada.told[-1].agents == (("task", at(4, 9)),)
    world.people.show_agent("c", "task", None)
    world.people.show_agent("c", "task", None)
    await world.passes()
    assert ada.told[-1].agents == ()


# ---------------------------------------------------------------------------- several replicas


class Wire:
    """The way from one replica to all others."""

    def __init__(self, name: str, all_of_them: dict[str, PresentPeople]) -> None:
        self._name, self._all = name, all_of_them

    def tell(self, change: PresenceChange) -> None:
        for name, people in self._all.items():
            if name != self._name:
                people.receive(self._name, change)


def replicas(*names: str) -> dict[str, World]:
    worlds = {name: World() for name in names}
    people = {name: world.people for name, world in worlds.items()}
    for name, world in worlds.items():
        world.people.exchange = Wire(name, people)
    return worlds


async def pass_on_all(worlds: dict[str, World], seconds: float = 1.0) -> None:
    for world in worlds.values():
        await world.passes(seconds)


async def test_people_on_other_replicas_are_present_with_cursors_that_are_sent_to_any() -> None:
    worlds = replicas("a", "b", "c")
    ada = await worlds["a"].open("ada")
    await worlds["b"].open("bob")
    worlds["c"].people.move("c", "bob", "w", at(7))  # a replica without a stream
    worlds["c"].people.show_agent("c", "task", at(1))
    await pass_on_all(worlds)
    late = await worlds["c"].open("eve")
    await pass_on_all(worlds)
    assert ada.names == late.names == ["ada", "bob", "eve"]
    assert ada.cursors("bob") == late.cursors("bob") == {"w": at(7)}
    assert ada.told[-1].agents == late.told[-1].agents == (("task", at(1)),)
    worlds["a"].people.forget("b")
    await pass_on_all(worlds)
    assert (ada.names, late.names) == (["ada", "eve"], ["ada", "bob", "eve"])
    worlds["a"].people.ask_all()
    await pass_on_all(worlds)
    assert (ada.names, ada.cursors("bob")) == (["ada", "bob", "eve"], {"w": at(7)})
    for world in worlds.values():
        for stream in world.opened:
            await stream.close()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.sampled_from("ab"), st.sampled_from(["ada", "bob", "eve"])),
        st.tuples(st.just("close"), st.sampled_from("ab"), st.integers(0, 5)),
        st.tuples(st.just("move"), st.sampled_from("ab"), st.sampled_from(["ada", "bob", "eve"]), st.integers(0, 3)),
        st.tuples(st.just("agent"), st.sampled_from("ab"), st.sampled_from([None, at(1), at(2)])),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.4, 1.0])),
    ),
    max_size=30,
)


@given(steps)
def test_whatever_happens_all_streams_know_the_same_in_the_end(done: list[tuple[object, ...]]) -> None:
    asyncio.run(_know_the_same(done))


async def _know_the_same(done: list[tuple[object, ...]]) -> None:
    worlds = replicas("a", "b")
    present: dict[Stream, str] = {}
    cursors: dict[str, CursorPlace] = {}
    agents: dict[str, CursorPlace | None] = {}
    for step in done:
        match step:
            case "open", str(name), str(account):
                present[await worlds[name].open(account)] = account
            case "close", str(), int(which) if present:
                stream = [*present][which % len(present)]
                await stream.close()
                gone = present.pop(stream)
                if gone not in present.values():
                    cursors.pop(gone, None)
            case "move", str(name), str(account), int(place):
                worlds[name].people.move("c", account, "w", at(place))
                if account in present.values():
                    cursors[account] = at(place)
            case "agent", str(name), place if place is None or isinstance(place, CursorPlace):
                worlds[name].people.show_agent("c", name, place)
                agents[name] = place
            case "wait", float(seconds):
                await pass_on_all(worlds, seconds)
    await pass_on_all(worlds, 2)
    accounts = sorted({*present.values()})
    expected = Roster(
        tuple(PresentPerson(account, (("w", cursors[account]),) if account in cursors else ()) for account in accounts),
        0,
        tuple(sorted((name, place) for name, place in agents.items() if place)),
    )
    assert [stream.told[-1] for stream in present] == [expected] * len(present)
    for stream in present:
        await stream.close()
    await pass_on_all(worlds, 2)
    assert all(world.timers.waiting == 0 for world in worlds.values())
