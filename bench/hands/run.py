"""A run: everybody works for some time, servers are killed twice, and what is left is compared with what was told.

Rule 1: one server on SQLite, started again each time; on PostgreSQL two replicas, of which each is killed once, while
        its clients go to the other one.
Rule 2: at the end every client has byte for byte what a reader gets from every server: those that followed the context
        from the start and from the middle, one that begins at the end, and each transport what its tasks told it.
"""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from a2a_canvas.server.accounts.api_key import new_key
from bench.databases import Kind, databases, upgrade
from bench.hands.choices import AGENTS, PEOPLE, Planned, Words, choose
from bench.hands.clients import AGAIN, TRANSPORTS, Cluster, Follower, Hand, Poller, new_context, says_to_retry
from bench.hands.folds import ContextFold, differences, text_of
from bench.hands.ledger import Json, Ledger, Left, Operation, Step, Version, faults
from bench.hands.script import DOC, write_rules
from tests.server.faults.server_processes import ServerGroup, ServerProcess

KILLS = ((0.2, 0.35), (0.55, 0.7))
"""When a server is killed, between these shares of the time."""
STARTS = 4
"""How often a server is waited for, each time for `PATIENCE`."""
READERS = 8
"""Versions that are read at once."""
LINES_OF_ERROR = 40
_ERROR = re.compile(r"\S+ (ERROR|CRITICAL) |Traceback")


@dataclass(frozen=True, slots=True)
class Plan:
    """A run.

    Attributes:
        think: seconds between two operations of a person, on average.
    """

    database: Kind
    seconds: float
    people: int
    agents: int
    think: float
    seed: int


@dataclass(slots=True)
class Result:
    """How a run ended.

    Attributes:
        operations: by verb and state.
        at_work: operations without an answer when a server was killed.
        compared: clients that were compared with a reader.
    """

    operations: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    at_work: int = 0
    versions: int = 0
    annotations: int = 0
    compared: int = 0
    faults: list[str] = field(default_factory=list)


async def run(plan: Plan) -> Result:
    """One run on new servers."""
    with databases(plan.database) as new, tempfile.TemporaryDirectory() as folder:
        url = new() if plan.database == "sqlite" else await upgrade(new())
        keys = {name: new_key(name) for name in _names(plan)}
        given = ",".join(f"{name}={key}" for name, key in keys.items())
        group = ServerGroup(url, f"script:{write_rules(Path(folder))}", {"A2A_CANVAS_API_KEYS": given})
        try:
            return await _Run(plan, group, keys).play()
        finally:
            await group.end()


def _names(plan: Plan) -> list[str]:
    return [f"person{number}" for number in range(plan.people)] + [f"agent{number}" for number in range(plan.agents)]


def errors_in(log: Sequence[str]) -> list[str]:
    """The errors in the log of a server, each with the lines around it."""
    places = (place for place, line in enumerate(log) if _ERROR.match(line))
    return ["\n".join(log[max(place - 1, 0) : place + LINES_OF_ERROR]) for place in places]


class _Run:
    def __init__(self, plan: Plan, group: ServerGroup, keys: dict[str, str]) -> None:
        self._plan, self._group, self._keys = plan, group, keys
        self._context, self._ledger, self._words = new_context(), Ledger(), Words()
        self._result = Result()
        self._over = asyncio.Event()
        self._followers: list[Follower] = []
        self._streams: list[asyncio.Task[None]] = []
        self._hands: list[Hand] = []

    async def play(self) -> Result:
        count = 1 if self._plan.database == "sqlite" else 2
        self._cluster = Cluster([await self._start() for _ in range(count)])
        await self._begin()
        self._poller = Poller(self._cluster, self._context, next(iter(self._keys.values())))
        async with asyncio.TaskGroup() as following:
            self._following = following
            streams = [self._follow(key, place) for place, key in enumerate(self._keys.values())]
            await self._work(streams)
            await self._judge()
            for stream in self._streams:
                stream.cancel()
        return self._result

    async def _start(self) -> ServerProcess:
        """A server that serves; among so many clients it starts slowly."""
        server = await self._group.begin()
        for _ in range(STARTS):
            with suppress(TimeoutError):
                await server.says(" listens on ")
                return server
        raise RuntimeError("\n".join(server.log))

    async def _begin(self) -> None:
        """The first version, and a share for everybody."""
        owner, *others = self._keys
        hand = self._hand(owner, 0)
        lines = [self._words.new(4) for _ in range(15)]
        first, text = [word for line in lines for word in line], "".join(f"{' '.join(line)}\n" for line in lines)
        operation = Operation("overwrite", owner, [Step(frozenset(first))])
        metadata = {"op": "put", "artifactId": DOC, "text": text, "name": f"{DOC}.md"}
        await hand.carry_out(Planned(operation, "begin", metadata))
        server = await self._cluster.server(0)
        for name in others:
            body = {"user": name, "level": "edit"}
            (await server.http.post(f"{self._path}/shares", json=body, headers=self._reading)).raise_for_status()

    @property
    def _path(self) -> str:
        return f"/artifacts/{self._context}"

    @property
    def _reading(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {next(iter(self._keys.values()))}"}

    def _hand(self, name: str, place: int) -> Hand:
        hand = Hand(self._cluster, self._ledger, self._context, self._keys[name], place)
        self._hands.append(hand)
        return hand

    def _follow(self, key: str, place: int) -> Follower:
        follower = Follower(self._cluster, self._context, key, place)
        self._followers.append(follower)
        self._streams.append(self._following.create_task(follower.run()))
        return follower

    # --------------------------------------------------------------------------- work

    async def _work(self, streams: Sequence[Follower]) -> None:
        async with asyncio.TaskGroup() as working:
            for place, (name, follower) in enumerate(zip(self._keys, streams, strict=True)):
                working.create_task(self._somebody(name, place, follower.fold))
            working.create_task(self._poll())
            await self._kill_twice()
            self._over.set()

    async def _somebody(self, name: str, place: int, view: ContextFold) -> None:
        moments = random.Random(f"{self._plan.seed}/{name}")
        hand = self._hand(name, place)
        verbs = AGENTS if name.startswith("agent") else PEOPLE
        while not await self._is_over(moments.expovariate(1 / self._plan.think)):
            if view.base[0]:
                await hand.carry_out(choose(moments, name, view, self._words, verbs))

    async def _is_over(self, seconds: float) -> bool:
        """Whether the time is over within some seconds."""
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _poll(self) -> None:
        moments = random.Random(f"{self._plan.seed}/poll")
        while not await self._is_over(moments.expovariate(1 / self._plan.think)):
            await self._poller.poll()

    async def _kill_twice(self) -> None:
        moments = random.Random(f"{self._plan.seed}/kills")
        clock = asyncio.get_running_loop().time
        begun = clock()
        for number, (first, last) in enumerate(KILLS):
            until = begun + moments.uniform(first, last) * self._plan.seconds
            await asyncio.sleep(until - clock())
            await self._kill(number)
            self._follow(next(iter(self._keys.values())), number)
        await asyncio.sleep(begun + self._plan.seconds - clock())

    async def _kill(self, number: int) -> None:
        place = number % len(self._cluster.servers)
        server = self._cluster.servers[place]
        assert server
        await self._cluster.set(place, None)
        await server.kill()
        self._result.kills += 1
        self._result.at_work += sum(not each.state for each in self._ledger.operations)
        await self._cluster.set(place, await self._start())

    # -------------------------------------------------------------------------- judge

    async def _judge(self) -> None:
        result, moments = self._result, random.Random(f"{self._plan.seed}/end")
        late = self._follow(next(iter(self._keys.values())), 1)
        for place in range(len(TRANSPORTS)):
            hand = self._hand(next(iter(self._keys)), place)
            await late.until_equal(lambda fold: fold.closed)
            await hand.carry_out(choose(moments, "person0", late.fold, self._words, {"type": 1}))
        lefts = [await self._left(server) for server in self._cluster.servers if server]
        left = lefts[0]
        result.faults += ["two servers have different texts" for other in lefts if other != left]
        result.faults += faults(self._ledger.operations, left)
        equal = (each.until_equal(lambda fold: not [*differences(fold, left, whole=True)]) for each in self._followers)
        await asyncio.gather(*equal)
        for number, follower in enumerate(self._followers):
            self._compare(f"follower {number}", follower.fold, left, follower.faults, whole=True)
        await self._poller.poll()
        self._compare("GET with ETags", self._poller.fold, left, (), whole=True)
        for hand in self._hands:
            self._compare(hand.transport, hand.fold, left, hand.faults, whole=False)
        for server in self._group.servers:
            result.faults += [f"the server said: {each}" for each in errors_in(server.log)]
        result.operations.update(f"{each.verb} {each.state}" for each in self._ledger.operations)
        result.versions, result.annotations = len(left.versions), len(left.annotations)

    def _compare(self, who: str, fold: ContextFold, left: Left, found: Sequence[str], *, whole: bool) -> None:
        self._result.compared += 1
        self._result.faults += [f"{who}: {each}" for each in (*found, *differences(fold, left, whole=whole))]

    async def _left(self, server: ServerProcess) -> Left:
        async def get(path: str) -> Json:
            answer = await server.http.get(self._path + path, headers=self._reading)
            while says_to_retry(answer.headers):  # thousands of reads at once
                await asyncio.sleep(AGAIN)
                answer = await server.http.get(self._path + path, headers=self._reading)
            found: Json = answer.raise_for_status().json()
            return found

        document = await get(f"/{DOC}")
        listed = (await get(f"/{DOC}/versions"))["versions"]
        reading = asyncio.Semaphore(READERS)

        async def version(each: Json) -> Version:
            async with reading:
                text = text_of(await get(f"/{DOC}/versions/{each['number']}"))
            return Version(each["number"], each["parent"], each["taskId"], text)

        versions = await asyncio.gather(*map(version, listed))
        annotations = (await get(f"/{DOC}/annotations"))["first"]["items"]
        left = Left(versions, document["version"], [item["canvas"] for item in annotations])
        if document["open"] or text_of(document) != versions[document["version"] - 1].text:
            self._result.faults.append(f"the document is not its current version: {document}")
        return left
