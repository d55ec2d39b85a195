"""The limit of open files, and how many connections there may be within it."""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import resource
import sys
from typing import Any

import pytest

from a2a_canvas.server.commands import open_files
from a2a_canvas.server.commands.open_files import (
    CALLS,
    NOT_ACCEPTED,
    OWN_FILES,
    QUIET_SECONDS,
    connections_within,
    needed_files,
    raise_file_limit,
    throttle_accept_errors,
)
from a2a_canvas.server.settings.settings import Settings
from tests.free_port import free_port

POSTGRESQL = "postgresql://db.example.com/canvas"


def settings(**given: Any) -> Settings:
    return Settings(**{"model": "rehearsal", "database": "memory", "max_connections": 900, **given})


@pytest.mark.parametrize(
    ("limit", "given", "connections"),
    [
        (1_000_000, {}, 900),
        (OWN_FILES + 900, {}, 900),
        (OWN_FILES + 899, {}, 899),
        (OWN_FILES + CALLS + 28, {"grpc_port": 50051}, 28),
        (1_000_000, {"workers": 4, "max_connections": 901, "database": POSTGRESQL}, 226),
        (OWN_FILES, {}, 1),
        (10, {}, 1),
    ],
)
def test_as_many_connections_as_the_limit_leaves_room_for(limit: int, given: Any, connections: int) -> None:
    assert connections_within(limit, settings(**given)) == connections


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "connections"),
    [
        (4096, 8192, None, 900),
        (256, 8192, 1000, 900),
        (256, resource.RLIM_INFINITY, 1000, 900),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None, 900),
        (256, 400, 400, 300),
        (128, 128, None, 28),
    ],
)
def test_the_limit_is_raised_as_far_as_it_is_needed_and_may_be(
    soft: int,
    hard: int,
    raised: int | None,
    connections: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda of: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda of, limits: asked.append((of, limits)))
    assert needed_files(settings()) == 1000
    assert raise_file_limit(settings()) == connections
    assert asked == ([(resource.RLIMIT_NOFILE, (raised, hard))] if raised else [])
    warned = f"the server accepts {connections} connections. Start it after ulimit -n 1000."
    assert (warned in caplog.text) is (connections < 900)


def test_connections_that_cannot_be_accepted_are_one_record_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    handle, loop = throttle_accept_errors(lambda: now[0]), asyncio.new_event_loop()
    try:
        with caplog.at_level(logging.ERROR):
            for now[0] in (0.0, 0.1, QUIET_SECONDS - 1, QUIET_SECONDS, QUIET_SECONDS + 1):
                error = OSError(errno.EMFILE, "Too many open files")
                handle(loop, {"message": NOT_ACCEPTED, "exception": error})
            assert [record.exc_info for record in caplog.records] == [None, None]
            handle(loop, {"message": "something else"})
    finally:
        loop.close()
    assert [record.name for record in caplog.records] == [open_files.__name__] * 2 + ["asyncio"]


@pytest.mark.process
async def test_with_few_files_the_connection_beyond_them_is_answered() -> None:
    port = free_port()
    limit = OWN_FILES + 5
    serve = f"{sys.executable} -m a2a_canvas serve --port {port} --model rehearsal --database memory"
    process = await asyncio.create_subprocess_shell(
        f"ulimit -n {limit}; exec {serve}", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    writers = []
    try:
        assert process.stdout
        said = b""
        while b"Next, open" not in said:
            said += await process.stdout.readline()
        assert re.search(rb"the server accepts 5 connections", said)
        answers = []
        for _ in range(7):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writers.append(writer)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answers.append((await reader.readline()).split()[1])
        assert answers == [b"200"] * 5 + [b"503"] * 2
    finally:
        for writer in writers:
            writer.close()
        process.kill()
        await process.communicate()
