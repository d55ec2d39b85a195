import asyncio
import itertools
import logging
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.tool_sources.mcp_servers import process as process_module
from a2a_canvas.server.tool_sources.mcp_servers.process import ENDS, LineSplitter, OverlongLine, ServerProcess, Throttle


@given(st.binary(max_size=60), st.lists(st.integers(0, 60)))
def test_lines_do_not_depend_on_how_they_arrive(data: bytes, cuts: list[int]) -> None:
    data = data.replace(b"\x00", b"\n")
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    splitter = LineSplitter(limit=1_000)
    chunks = [data[start:end] for start, end in itertools.pairwise(bounds)]
    assert [line for chunk in chunks for line in splitter.feed(chunk)] == data.split(b"\n")[:-1]


@pytest.mark.parametrize("chunk", [1, 7, 1_000, 10_000])
def test_of_a_line_that_is_too_long_both_ends_are_kept(chunk: int) -> None:
    line = b"begin" + b"x" * 5_000 + b"end"
    data = b"one\n" + line + b"\ntwo\n"
    splitter = LineSplitter(limit=1_000)
    lines = [each for at in range(0, len(data), chunk) for each in splitter.feed(data[at : at + chunk])]
    assert lines[0] == b"one"
    assert lines[2] == b"two"
    long = lines[1]
    assert isinstance(long, OverlongLine)
    assert (long.beginning, long.end, long.size) == (line[:ENDS], line[-ENDS:], len(line))


def test_a_throttle_counts_what_it_leaves_out() -> None:
    throttle = Throttle(2)
    assert [throttle.passes(now) for now in (1.0, 1.1, 1.2, 1.9, 2.0)] == [True, True, False, False, True]
    assert throttle.left_out == 2


async def started(code: str) -> ServerProcess:
    return await ServerProcess.start("test", (sys.executable, "-c", code), dict(os.environ), ".", 1_000)


async def test_a_program_is_spoken_to_in_lines() -> None:
    process = await started("for line in open(0): print(line.strip().upper(), flush=True)")
    await process.write(b"hello")
    assert await anext(process.lines()) == b"HELLO"
    assert await process.stop() == "was stopped"


async def test_a_program_that_does_not_want_to_end_is_killed_with_what_it_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_module, "GRACE", 0.1)
    code = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)"
    )
    process = await started(code)
    child = await anext(process.lines())
    assert isinstance(child, bytes)
    await process.stop()
    with pytest.raises(ProcessLookupError):
        while True:  # until the system has cleared it away
            os.kill(int(child), 0)
            await asyncio.sleep(0)


async def test_what_goes_to_stderr_is_logged_with_limits(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    process = await started("import sys; [print('x' * 2_000, file=sys.stderr) for _ in range(500)]")
    assert [line async for line in process.lines()] == []
    await process.stop()
    assert 1 <= len(caplog.messages) <= 100
    assert all(len(message) < 600 for message in caplog.messages)
