"""How the code of a tool runs: for a limited time, in a thread, and never in the way of others."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import pytest

from a2a_canvas.tools.functions import running
from a2a_canvas.tools.functions.running import CallTimeout, in_thread, run_within


async def test_a_function_in_a_thread_returns_and_raises_as_usual() -> None:
    def fails() -> None:
        raise ZeroDivisionError("no")

    assert await in_thread(lambda: threading.current_thread().daemon) is True
    with pytest.raises(ZeroDivisionError):
        await in_thread(fails)


async def test_a_function_that_ends_its_thread_is_a_failure() -> None:
    with pytest.raises(RuntimeError, match="SystemExit"):
        await in_thread(lambda: (_ for _ in ()).throw(SystemExit(1)))


async def test_a_thread_that_never_ends_keeps_nobody() -> None:
    release = threading.Event()
    with pytest.raises(CallTimeout):
        await run_within("stuck", in_thread(release.wait), 0.01)
    assert await in_thread(lambda: "another") == "another"
    release.set()


async def test_a_call_that_ignores_its_cancellation_is_left_to_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(running, "GRACE", 0.01)
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(CallTimeout):
        await run_within("The tool stubborn", stubborn(), 0.01)
    assert "The tool stubborn was cancelled and has not ended" in caplog.text
    release.set()


async def test_a_cancelled_turn_waits_for_the_end_of_its_call() -> None:
    ended = []

    async def call() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    turn = asyncio.create_task(run_within("call", call(), 60))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert ended == [True]


async def test_sys_exit_fails_the_call_and_not_the_server() -> None:
    async def leave() -> None:
        sys.exit(3)

    with pytest.raises(RuntimeError, match=r"The tool leave has called sys.exit\(3\)"):
        await run_within("The tool leave", leave(), 60)


async def test_a_tool_that_blocks_the_event_loop_is_named_in_the_log_with_its_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(running, "BLOCKED", 0.02)

    async def blocks() -> None:
        while "The tool blocks blocks the event loop" not in caplog.text:
            time.sleep(0.001)  # noqa: ASYNC251

    await run_within("The tool blocks", blocks(), 60)
    assert "test_running.py" in caplog.text
