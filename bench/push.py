"""`--only push`: turns while 1,000 receivers of push notifications hang, compared with turns while there are none.

Two servers on SQLite do the same work in alternating rounds. Both have the tasks of a user; on one of them each task
has a receiver that hangs, and all the notifications are due. Time is that of a server's best round, so that what else
the machine does counts little; CPU is that of all rounds, so that it has the attempts that end now and then. The
receivers accept connections and never answer, so they take no CPU themselves.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.wire import VERSION_HEADER
from bench.client import HOST, ClientError, Watcher, check_pieces, exchange, send, watch
from bench.databases import databases
from bench.pace import Order
from bench.report import Check, Report, quantile, ratio
from bench.servers import SHIPPED_FRAME_MS, Server, ours, running, script

KEY = new_key("ann")
"""Of the user whose receivers hang; the turns are those of callers without credentials."""
OPTIONS = ("--push-allow", HOST, "--api-keys", f"hangs={KEY}", "--allow-anonymous")
BEGUN_AT_ONCE = 20
WITHIN = 60
"""Seconds that a notification may take before the run fails."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done.

    Attributes:
        receivers: that hang, each of a task and with an address of its own.
        rounds: for each server.
        turns: of a round, all at once, with `order` each.
        notified: turns of a round, one after the other, whose notifications go to a receiver that answers.
    """

    receivers: int
    rounds: int
    turns: int
    order: Order
    notified: int


FULL = Plan(1000, 20, 20, Order(400), 2)
QUICK = Plan(200, 5, 20, Order(400), 2)


@dataclass(slots=True)
class Result:
    """What the rounds on one server took, in seconds.

    Attributes:
        seconds: until all turns of a round had ended; `cpu` the server's CPU until then.
        delays: of notifications, behind the same status in the stream.
    """

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)


async def run(plan: Plan) -> Report:
    """Alternating rounds."""
    with script() as path, hanging(plan.receivers) as addresses, databases("sqlite") as new:
        servers = [running(ours(SHIPPED_FRAME_MS, path, new(), *OPTIONS)) for _ in range(2)]
        async with receiving() as receiver, servers[0] as alone, servers[1] as crowded:
            for server in (alone, crowded):
                await _turns(server, plan)
            await asyncio.gather(_begin_tasks(alone, [""] * len(addresses)), _begin_tasks(crowded, addresses))
            results = {"none": Result(), f"{plan.receivers:,}": Result()}
            pairs = [*zip((alone, crowded), results.values(), strict=True)]
            for _ in range(plan.rounds):
                for server, result in pairs:
                    await _round(server, plan, receiver, result)
                pairs.reverse()
    return report(plan, results)


async def _round(server: Server, plan: Plan, receiver: Receiver, result: Result) -> None:
    begun, cpu = time.monotonic(), server.cpu()
    await _turns(server, plan)
    result.seconds.append(time.monotonic() - begun)
    result.cpu.append(server.cpu() - cpu)
    for _ in range(plan.notified):
        result.delays.append(await _delay(server, receiver))


async def _turns(server: Server, plan: Plan) -> None:
    for watcher in await asyncio.gather(*(watch(server.port, send(plan.order), Watcher()) for _ in range(plan.turns))):
        check_pieces(watcher, plan.order.count)


async def _delay(server: Server, receiver: Receiver) -> float:
    """Seconds from the end of a stream until the notification of it."""
    watcher = await watch(server.port, _with_config(receiver.url), Watcher())
    ended = time.monotonic()
    return max(0.0, await receiver.completed(watcher.task_id) - ended)


def report(plan: Plan, results: dict[str, Result]) -> Report:
    """The table and the targets."""
    table = Report(
        "push",
        f"{plan.turns} turns of {plan.order.count} deltas at once, {plan.rounds} rounds",
        ("receivers that hang", "best round s", "CPU of all s", "notification p50 ms", "max ms"),
    )
    for name, result in results.items():
        delays = [seconds * 1e3 for seconds in result.delays]
        table.rows.append((name, min(result.seconds), sum(result.cpu), quantile(delays, 0.5), max(delays)))
    alone, crowded = results.values()
    table.checks += [
        Check("time of turns", ratio(min(crowded.seconds), min(alone.seconds)), "at most", 1.1, "x"),
        Check("CPU of turns", ratio(sum(crowded.cpu), sum(alone.cpu)), "at most", 1.1, "x"),
        Check("notification of another user", max(crowded.delays) * 1e3, "at most", 1000, "ms"),
    ]
    return table


# ----------------------------------------------------------------------- receivers


@contextmanager
def hanging(number: int) -> Iterator[list[str]]:
    """Addresses at which the kernel accepts connections and nobody reads."""
    sockets: list[socket.socket] = []
    try:
        for _ in range(number):
            sockets.append(socket.create_server((HOST, 0), backlog=16))
        yield [f"http://{HOST}:{each.getsockname()[1]}/hook" for each in sockets]
    finally:
        for each in sockets:
            each.close()


class Receiver:
    """Answers each notification, and remembers when each task was completed.

    Attributes:
        url: where it listens.
    """

    def __init__(self) -> None:
        self.url = ""
        self._completed: dict[str, float] = {}
        self._news = asyncio.Condition()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].partition("\r\n")[0])
        update = json.loads(await reader.readexactly(length)).get("statusUpdate", {})
        if update.get("status", {}).get("state") == "TASK_STATE_COMPLETED":
            async with self._news:
                self._completed[update["taskId"]] = time.monotonic()
                self._news.notify_all()
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    async def completed(self, task_id: str) -> float:
        """When a task was completed.

        Raises:
            ClientError: nobody says so.
        """
        try:
            async with asyncio.timeout(WITHIN), self._news:
                await self._news.wait_for(lambda: task_id in self._completed)
        except TimeoutError:
            raise ClientError(f"no notification within {WITHIN} s") from None
        return self._completed[task_id]


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver that answers."""
    receiver = Receiver()
    async with await asyncio.start_server(receiver.handle, HOST, 0) as listening:
        receiver.url = f"http://{HOST}:{listening.sockets[0].getsockname()[1]}/hook"
        yield receiver


async def _begin_tasks(server: Server, addresses: list[str]) -> None:
    """A task for each address, whose notifications go there; none if it is empty."""
    turn = asyncio.Semaphore(BEGUN_AT_ONCE)

    async def one(url: str) -> None:
        async with turn:
            answer = await exchange(server.port, _with_config(url, method="SendMessage", key=KEY))
        if "result" not in answer:
            raise ClientError(f"not begun: {answer}")

    await asyncio.gather(*(one(url) for url in addresses))


def _with_config(url: str, method: str = "SendStreamingMessage", key: str = "") -> bytes:
    """A message that brings its push config."""
    params = {
        "message": {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": str(Order(1))}]},
        "configuration": {"taskPushNotificationConfig": {"url": url}} if url else {},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    credential = f"Authorization: Bearer {key}\r\n" if key else ""
    head = (
        f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"{VERSION_HEADER}: 1.0\r\nConnection: close\r\n{credential}\r\n"
    )
    return head.encode() + body
