"""`serve --workers`: several processes behind one address, which look like one server, whichever of them dies."""

from __future__ import annotations

import copy
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from a2a_canvas.server.commands.workers.worker_place import VARIABLE
from tests.database_fixtures import postgresql_url
from tests.new_database import with_tables
from tests.server.faults.fault_scripts import WRITE
from tests.server.faults.observed_task import ObservedTask
from tests.server.faults.outcome_checks import assert_written
from tests.server.faults.server_processes import (
    PATIENCE,
    ROOT,
    ServerGroup,
    ServerProcess,
    eventually,
    message,
    server_group,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

TWO = ("--workers", "2", "--max-turns", "1")
"""Two workers with a turn each."""
COMPLETED_TURNS = 'turns_total{state="completed"}'
RESTARTED = "was killed by SIGKILL. It is started again in"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerGroup]:
    """On one database."""
    url = await with_tables(postgresql_url())
    async with server_group(url, tmp_path_factory.mktemp("script")) as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(servers: ServerGroup) -> ServerProcess:
    """A server of two workers, which both serve."""
    started = await servers.start(*TWO)
    await both_serve(started)
    return started


def workers_of(server: ServerProcess) -> list[int]:
    """The ids of its processes."""
    pid = server.process.pid
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def both_serve(server: ServerProcess, times: int = 2) -> None:
    """Come back when two workers serve, and `times - 2` before them have."""

    async def have_served() -> bool:
        return sum(" serves (process " in line for line in server.log) == times

    await eventually(have_served)


def fresh(server: ServerProcess) -> ServerProcess:
    """The same server for a client without a connection to it."""
    same = copy.copy(server)
    same.http = httpx.AsyncClient(base_url=server.http.base_url, trust_env=False, timeout=PATIENCE)
    server._opened.push_async_callback(same.http.aclose)
    return same


async def connected(server: ServerProcess, worker: int) -> ServerProcess:
    """The server for a client with one connection, which this worker has."""
    while True:
        client = fresh(server)
        response = await client.http.get("/healthz")
        if owner(server, response.extensions["network_stream"].get_extra_info("client_addr")[1]) == worker:
            return client
        await client.http.aclose()


def owner(server: ServerProcess, client_port: int) -> int:
    """The worker that has the connection of a client."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = f":{server.port:04X}", f":{client_port:04X}"
    [inode] = [line[9] for line in lines if line[1].endswith(ends[0]) and line[2].endswith(ends[1])]
    return next(pid for pid in workers_of(server) if f"socket:[{inode}]" in open_files(pid))


def open_files(pid: int) -> set[str]:
    found = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(each.readlink()))
    return found


async def write(server: ServerProcess) -> str:
    """A turn of some seconds; its task."""
    said = {"message": message(WRITE), "configuration": {"returnImmediately": True}}
    task_id: str = (await server.call("SendMessage", said))["task"]["id"]
    return task_id


async def assert_whole(server: ServerProcess, task_id: str) -> None:
    """The task ends, and has everything once."""
    told = ObservedTask()

    async def has_ended() -> bool:
        told.begin(await server.task(task_id))
        return told.settled

    await eventually(has_ended)
    await assert_written(told, server)


# ------------------------------------------------------------------------------ as one


async def test_the_banner_is_said_once_and_the_log_names_the_workers(server: ServerProcess) -> None:
    for worker in workers_of(server):
        client = await connected(server, worker)
        await assert_whole(client, await write(client))
    assert len([line for line in server.log if " listens on " in line]) == 1
    ended = [line for line in server.log if "Task completed" in line]
    assert {number for number in (1, 2) for line in ended if f" worker={number} " in line} == {1, 2}


async def test_watchers_at_every_worker_have_the_exact_text(server: ServerProcess) -> None:
    task_id = await write(fresh(server))
    async with AsyncExitStack() as stack:
        streams = []
        for worker in workers_of(server) * 3:
            told = ObservedTask()
            told.task_id = task_id
            client = await connected(server, worker)
            streams.append(await stack.enter_async_context(client.joins(told)))
        for stream in streams:
            await assert_written(await stream.rest(), fresh(server))


async def test_one_connection_does_not_fill_one_worker(server: ServerProcess) -> None:
    """Each worker runs one turn at a time."""
    client = await connected(server, workers_of(server)[0])
    tasks = [await write(client) for _ in range(2)]

    async def run_both() -> bool:
        return await client.metric("turns_running") == 2

    await eventually(run_both)
    for task_id in tasks:
        await assert_whole(client, task_id)


async def test_the_metrics_of_each_worker_are_those_of_all(server: ServerProcess) -> None:
    seen = {await (await connected(server, worker)).metric(COMPLETED_TURNS) for worker in workers_of(server)}
    assert len(seen) == 1
    assert seen.pop() >= 2


async def test_a_killed_worker_comes_back_and_its_turn_goes_on(server: ServerProcess) -> None:
    counted = await server.metric(COMPLETED_TURNS)
    first, second = workers_of(server)
    task_id = await write(await connected(server, first))
    told = ObservedTask()
    told.task_id = task_id
    async with (await connected(server, second)).joins(told) as stream:
        await stream.until(lambda seen: seen.results)
        os.kill(first, signal.SIGKILL)
        await assert_written(await stream.rest(), fresh(server))
    await server.says(RESTARTED)
    await both_serve(server, times=3)
    assert first not in workers_of(server)
    assert await fresh(server).metric(COMPLETED_TURNS) == counted + 1


async def test_sigterm_hands_over_and_loses_nothing(servers: ServerGroup, server: ServerProcess) -> None:
    client = fresh(server)
    tasks = [await write(client) for _ in range(3)]
    server.signal(signal.SIGTERM)
    assert await server.ended() == 0
    assert sum("The server is stopping" in line for line in server.log) == 1
    after = await servers.start(*TWO)
    for task_id in tasks:
        await assert_whole(after, task_id)


# ------------------------------------------------------------------------- the processes


async def test_ports_are_taken_once_and_no_worker_outlives_its_parent(servers: ServerGroup) -> None:
    (server,) = await servers.several(1)
    await both_serve(server)
    again = await servers.begin(*TWO, port=server.port)
    assert (await again.ended(), len(again.log)) == (1, 2)
    assert f"Cannot listen on 127.0.0.1:{server.port}: Address already in use." in again.log[0]
    grpc_port = server.grpc.partition(":")[2]
    again = await servers.begin(*TWO, "--grpc-port", grpc_port)
    assert (await again.ended(), len(again.log)) == (1, 2)
    assert f"Cannot listen on 127.0.0.1:{grpc_port}: Address already in use." in again.log[0]

    workers = workers_of(server)
    for pid in workers:
        os.kill(pid, signal.SIGINT)  # as Ctrl+C does, besides that of the parent
    assert (await fresh(server).get("/healthz"))["status"] == "ok"
    os.kill(workers[0], signal.SIGSTOP)  # as one that hangs, until it resumes
    server.process.kill()
    os.kill(workers[0], signal.SIGCONT)

    async def all_gone() -> bool:
        return not any(os.path.exists(f"/proc/{pid}") for pid in workers)  # noqa: ASYNC240 - /proc does not block

    await eventually(all_gone)


async def test_a_worker_that_dies_three_times_at_the_start_ends_the_server(
    servers: ServerGroup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A program that it has started outlives it for a moment.
    dies = (
        f"import os, subprocess\nif {VARIABLE!r} in os.environ:\n    os.write(2, b'out of order\\n')\n"
        "    subprocess.Popen(['sleep', '5'], stdout=subprocess.DEVNULL)\n    os._exit(7)\n"
    )
    (tmp_path / "sitecustomize.py").write_text(dies)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    server = await servers.begin(*TWO)
    assert await server.ended() == 7
    assert server.log.count("out of order") == 3
    assert server.log[-2].endswith(
        "The first worker ended with exit code 7 (out of order). The server ends, because it has not served yet."
    )


async def test_an_agent_that_cannot_be_loaded_is_one_line(servers: ServerGroup, tmp_path: Path) -> None:
    tools = tmp_path / "tools.py"
    tools.write_text("def (:\n")
    server = await servers.begin(*TWO, "--tools", str(tools))
    assert (await server.ended(), len(server.log)) == (2, 2)
    assert str(tools) in server.log[0]
