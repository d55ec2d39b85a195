"""What a replica counts of itself: its commits, what it has written, and the renewals of its lease."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes import answer, write
from tests.metric_values import values
from tests.server.tasks.runtime.runtime_harness import HELLO
from tests.server.tasks.sql.replica_harness import Replica, replicas


async def until(replica: Replica, reached: Callable[[], bool]) -> None:
    while not reached():
        await replica.backend.ready()


async def test_commits_are_measured_and_what_is_written_is_counted() -> None:
    async with replicas() as several:
        replica = await several.start(answer(write("T1", "One two three", last_chunk=True)), HELLO)
        await (await replica.send("Write")).wait_until_settled()
        for refresh in replica.metrics.refreshers:
            await refresh()
    assert values(replica.metrics.commits)[()] > 0
    assert values(replica.metrics.written_bytes)[()] > 100
    assert values(replica.metrics.commit_failures)[()] == 0


async def test_renewals_of_the_lease_are_counted_and_its_loss() -> None:
    async with replicas() as several:
        replica = await several.start()
        renewals = replica.metrics.lease_renewals
        await until(replica, lambda: values(renewals).get(("renewed",), 0) > 1)
        await replica._expire()
        await until(replica, lambda: ("lost",) in values(renewals))
    assert values(renewals)["lost",] == 1
