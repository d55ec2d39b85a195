"""Scenario 15: what a start costs, in seconds of CPU of the process, user and system.

A server is measured from its start to the end of its first answer. The client's commands talk to such a server.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from statistics import median

import httpx

from bench.report import Check, Report
from bench.servers import MEMORY, ROOT, Command, running, shipped
from tests.free_port import free_port

FULL, QUICK = 9, 3
"""How often each start is measured."""

AT_ONCE, CLIENT, SERVE = 0.15, 0.7, 2.0
"""The targets."""


async def run(times: int) -> Report:
    """Start everything so many times."""
    table = Report("start", f"CPU seconds of a start, {times} times", ("start", "p50 s", "max s"))
    with tempfile.TemporaryDirectory() as folder:
        memory, sqlite = (shipped("rehearsal", url) for url in (MEMORY, f"sqlite:///{folder}/canvas.db"))
        async with running(memory) as server:
            url = ["--url", f"http://127.0.0.1:{server.port}"]
            for name, target, arguments in (
                ("version", AT_ONCE, ["--version"]),
                ("help", AT_ONCE, ["--help"]),
                ("send", CLIENT, ["send", "Write a haiku.", "--context", "c", *url]),
                ("artifacts", CLIENT, ["artifacts", "--context", "c", *url]),
            ):
                add(table, name, [await asyncio.to_thread(command_cpu, arguments) for _ in range(times)], target)
        await server_cpu(sqlite)  # creates the file
        grpc = shipped("rehearsal", MEMORY, "--grpc-port", str(free_port()))
        for name, command, most in (("memory", memory, SERVE), ("sqlite", sqlite, SERVE), ("grpc", grpc, None)):
            add(table, f"serve-{name}", [await server_cpu(command) for _ in range(times)], most)
    return table


def add(table: Report, name: str, seconds: Sequence[float], target: float | None) -> None:
    table.rows.append((name, median(seconds), max(seconds)))
    if target is not None:
        table.checks.append(Check(name, median(seconds), "at most", target, "s"))


async def server_cpu(command: Command) -> float:
    """Of a server, until it has answered its first request."""
    async with running(command) as server, httpx.AsyncClient(trust_env=False) as http:
        (await http.get(f"http://127.0.0.1:{server.port}/healthz")).raise_for_status()
        return server.cpu()


def command_cpu(arguments: Sequence[str]) -> float:
    """Of a command, until it has ended.

    Raises:
        RuntimeError: it failed.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "a2a_canvas", *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"a2a-canvas {' '.join(arguments)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
