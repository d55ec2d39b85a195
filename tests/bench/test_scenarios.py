"""Every scenario of the benchmarks in its shortest form, from its servers to its report, so that none can rot."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import pytest

from bench import (
    accept_all,
    broker,
    cached_readers,
    cpu,
    crash,
    crowd_durable,
    durable,
    edits,
    failover,
    first_byte,
    framework_cost,
    framework_kills,
    idle_streams,
    joiners,
    many_tasks,
    mcp_hosts,
    model_pace,
    page,
    presence,
    provider,
    push,
    queued,
    replicas,
    sleeper,
    start,
    subscribers,
    takeover,
    versions,
    workers,
)
from bench.__main__ import SCENARIOS
from bench.crowd import Crowd
from bench.pace import Order
from bench.report import Report
from bench.servers import SHIPPED_FRAME_MS, ours, running, script, theirs
from tests.nginx_program import need_nginx
from tests.postgresql_pair import need_faketime
from tests.server.canvas.browser.browser_harness import chromium
from tests.server.faults.failover_harness import FAULTS

FEW = Crowd(3, Order(30, 50))
AGENTS = ("function", "langgraph")
"""A function, and one of the frameworks: to import each takes seconds. `make bench` has all of them."""


@dataclass(frozen=True, slots=True)
class Shortest:
    """A scenario with as little as it can measure.

    Attributes:
        rows: of its table; None for any number.
        exact: checks that do not depend on the machine: they must hold.
    """

    run: Callable[[], Awaitable[Report]]
    rows: int | None = None
    exact: tuple[str, ...] = ()


async def _cpu(report: Callable[[cpu.Costs], Report], plan: cpu.Plan) -> Report:
    with script() as path:
        async with running(ours(cpu.FRAME_MS, path)) as mine, running(theirs) as other:
            return report(await cpu.measure(mine, other, plan))


async def _cached_readers() -> Report:
    need_nginx()
    return await cached_readers.run(cached_readers.Plan((3, 12), 2, 1))


async def _page() -> Report:
    chromium()
    return await page.run(page.Plan(seconds=1, paints=1, size=20_000))


async def _failover() -> Report:
    need_faketime()
    return await failover.run(failover.Plan(rounds=1, turns=5), seed=1)


SHORTEST: Mapping[str, Shortest] = {
    "start": Shortest(lambda: start.run(1), 7),
    "every-delta": Shortest(lambda: _cpu(cpu.every_delta, cpu.Plan({1: 1, 1000: 1, 4000: 1}, {1000: 1}, 1)), 3),
    "frames": Shortest(lambda: _cpu(cpu.frames, cpu.Plan({4000: 1}, {4000: 1}, 1))),
    "provider": Shortest(lambda: provider.run(provider.Plan(Crowd(2, Order(20, 200)), 1)), 5),
    "model-pace": Shortest(lambda: model_pace.run(FEW, (SHIPPED_FRAME_MS,)), 2),
    "sleeper": Shortest(lambda: sleeper.run([sleeper.Case(SHIPPED_FRAME_MS, Order(3000), 1)])),
    "joiners": Shortest(
        lambda: joiners.run(joiners.Plan(8, Order(30, 100)), (SHIPPED_FRAME_MS,)), 2, ("exact, ours, 25 ms",)
    ),
    "subscribers": Shortest(lambda: subscribers.run(subscribers.Plan(20, Order(40, 50))), 1, ("exact",)),
    "idle-streams": Shortest(lambda: idle_streams.run(idle_streams.Plan(5, 0.1)), 1),
    "cached-readers": Shortest(_cached_readers, 2, ("exact", "faults", "reached")),
    "many-tasks": Shortest(lambda: many_tasks.run(many_tasks.Plan(10, 100, 1, ("sqlite",))), 5),
    "mcp-hosts": Shortest(lambda: mcp_hosts.run(mcp_hosts.Plan(3, 0.01)), 1),
    "first-byte": Shortest(lambda: first_byte.run(first_byte.Plan.of(2, turns=2))),
    "page": Shortest(_page, len(page.CASES)),
    "edits": Shortest(lambda: edits.run(edits.Plan(1, (20,))), 2 * len(edits.WATCHES)),
    "versions": Shortest(lambda: versions.run(versions.Plan(versions=40, size=1000, edit=20)), 2),
    "accept-all": Shortest(lambda: accept_all.run(accept_all.Plan(3, 1, ("memory", "sqlite"))), 2),
    "durable": Shortest(lambda: durable.run(durable.Plan((20, 60), 20, 1), ("sqlite",))),
    "crowd-durable": Shortest(lambda: crowd_durable.run(FEW), 1),
    "queued": Shortest(lambda: queued.run(FEW, ("sqlite",)), 1),
    "presence": Shortest(lambda: presence.run(presence.Plan(4, 2, 1.0, 1)), 1),
    "push": Shortest(lambda: push.run(push.Plan(receivers=3, rounds=1, turns=2, order=Order(20), notified=1)), 2),
    "replicas": Shortest(lambda: replicas.run(joiners.Plan(6, Order(60, 50))), 1, ("exact",)),
    "broker": Shortest(
        lambda: broker.run(broker.Extent(1, joiners.Plan(6, Order(60, 50)), 2, 3, 1.0, Order(40, 20))),
        6,
        ("exact", "exact, killed"),
    ),
    "takeover": Shortest(
        lambda: takeover.run(takeover.Plan(2, Order(50, 2, endless=True), (1,))),
        1,
        ("leases lost, 1", "resumed once, 1"),
    ),
    "crash": Shortest(lambda: crash.run({"sqlite": 1}, seed=1), 1),
    "workers": Shortest(lambda: workers.run(workers.Plan(0.2, 1, turns=2, attempts=1))),
    "failover": Shortest(_failover, 1, ("rounds", "at work", *FAULTS)),
    "framework-cost": Shortest(lambda: framework_cost.run(framework_cost.Plan(40, 1, 1), AGENTS[1:]), len(AGENTS)),
    "framework-kills": Shortest(
        lambda: framework_kills.run(2, AGENTS),
        len(AGENTS),
        tuple(map(framework_kills.fault, AGENTS)),
    ),
}


def test_every_scenario_has_a_shortest_form() -> None:
    assert SHORTEST.keys() == SCENARIOS.keys()


@pytest.mark.parametrize("name", SHORTEST)
async def test_a_scenario_runs_and_reports(name: str) -> None:
    shortest = SHORTEST[name]
    report = await shortest.run()
    assert report.name == name
    assert len(report.rows) == (shortest.rows or len(report.rows)) > 0
    checks = {check.name: check for check in report.checks}
    assert [each for each in shortest.exact if not checks[each].holds] == [], report
