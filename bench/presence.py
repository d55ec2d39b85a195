"""`--only presence`: what it costs that people move their cursors in a context with many open streams.

Fifty users have a stream of one context open. In turns nobody moves, and ten move once a second; measured is the CPU of
the server in each, and checked that every stream gets the places of all ten.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import median
from uuid import uuid4

from a2a_canvas.server.accounts.api_key import new_key
from bench.client import HOST, ClientError, exchange
from bench.report import Check, Report
from bench.servers import SHIPPED_FRAME_MS, Server, ours, running, script

MAX_CORES = 0.1


@dataclass(frozen=True, slots=True)
class Plan:
    """How many have a stream, how many of them move, and how long each of the two is measured, how often."""

    people: int
    movers: int
    seconds: float
    rounds: int


FULL = Plan(50, 10, 20.0, 3)
QUICK = Plan(50, 10, 5.0, 1)


@dataclass(frozen=True, slots=True)
class Result:
    """Cores that the server used while nobody moved and while some did, in each round."""

    idle: Sequence[float]
    moving: Sequence[float]

    @property
    def more(self) -> float:
        return median(moving - idle for idle, moving in zip(self.idle, self.moving, strict=True))


async def run(plan: Plan) -> Report:
    """One server in memory."""
    keys = [new_key("ann") for _ in range(plan.people)]
    given = ",".join(f"user{number}={key}" for number, key in enumerate(keys))
    with script() as path:
        async with running(ours(SHIPPED_FRAME_MS, path, "memory", "--api-keys", given)) as server:
            return report(plan, await measure(server, plan, keys))


async def measure(server: Server, plan: Plan, keys: Sequence[str]) -> Result:
    """Both, round by round.

    Raises:
        ClientError: a stream did not get the places of all who moved.
    """
    context = await _shared_context(server.port, keys)
    idle: list[float] = []
    moving: list[float] = []
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(_Stream(server.port, context, key)) for key in keys]
        for place in range(plan.rounds):
            await asyncio.sleep(2)  # what came before has been told
            idle.append(await _cores(server, plan.seconds, []))
            moving.append(await _cores(server, plan.seconds, [*_moves(plan, context, keys, place)]))
            await asyncio.sleep(2)
            if any(each.places != plan.movers for each in streams):
                raise ClientError("a stream has not the places of all who moved")
    return Result(idle, moving)


async def _shared_context(port: int, keys: Sequence[str]) -> str:
    context = str(uuid4())
    message = {"messageId": str(uuid4()), "contextId": context, "role": "ROLE_USER", "parts": [{"text": "write 5"}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    await exchange(port, _request("POST", "/", keys[0], call))
    for number in range(1, len(keys)):
        shared = {"user": f"user{number}", "level": "read"}
        await exchange(port, _request("POST", f"/artifacts/{context}/shares", keys[0], shared))
    return context


def _request(method: str, path: str, key: str, content: object = None, *, close: bool = True) -> bytes:
    body = b"" if content is None else json.dumps(content).encode()
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nA2A-Version: 1.0\r\n" if body else ""
    end = "Connection: close\r\n" if close else ""
    return f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {key}\r\n{kind}{end}\r\n".encode() + body


class _Stream:
    """An event stream that is read all the time.

    Attributes:
        places: cursors in the last event about presence.
    """

    def __init__(self, port: int, context: str, key: str) -> None:
        self._port, self._asked = port, _request("GET", f"/artifacts/{context}/events", key)
        self.places = -1

    async def __aenter__(self) -> _Stream:
        self._reader, self._writer = await asyncio.open_connection(HOST, self._port, limit=2**20)
        self._writer.write(self._asked)
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reading.cancel()
        self._writer.close()

    async def _read(self) -> None:
        named = False
        async for line in self._reader:
            if named and line.startswith(b"data: "):
                self.places = sum(len(each["cursors"]) for each in json.loads(line[6:])["people"])
            named = line.startswith(b"event: presence")


def _moves(plan: Plan, context: str, keys: Sequence[str], place: int) -> Iterator[tuple[str, str, int]]:
    return ((context, key, place) for key in keys[: plan.movers])


async def _cores(server: Server, seconds: float, moves: Sequence[tuple[str, str, int]]) -> float:
    """The cores that the server uses while each of these moves once a second."""
    clock = asyncio.get_running_loop().time
    before, begun = server.cpu(), clock()
    await asyncio.gather(asyncio.sleep(seconds), *(_move(server.port, seconds, *each) for each in moves))
    return (server.cpu() - before) / (clock() - begun)


async def _move(port: int, seconds: float, context: str, key: str, place: int) -> None:
    """Move once a second, over one connection.

    Raises:
        ClientError: a move was refused.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    reader, writer = await asyncio.open_connection(HOST, port)
    number = 0
    while clock() < until:
        number += 1
        at = {"window": "1", "artifactId": "text", "version": 1, "start": place, "end": place + number}
        writer.write(_request("POST", f"/artifacts/{context}/presence", key, at, close=False))
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 204 " not in answer.partition(b"\r\n")[0]:
            raise ClientError(f"a move was refused: {answer!r}")
        await asyncio.sleep(1)
    writer.close()


def report(plan: Plan, result: Result) -> Report:
    """The table and the target."""
    title = f"{plan.people} streams of a context; {plan.movers} of their users move once a second"
    table = Report("presence", title, ("round", "nobody moves: cores", f"{plan.movers} move: cores"))
    for number, (idle, moving) in enumerate(zip(result.idle, result.moving, strict=True), 1):
        table.rows.append((number, idle, moving))
    table.checks.append(Check("more cores", result.more, "at most", MAX_CORES))
    return table
