"""What a turn adds to the metrics, in memory and on SQLite; and nothing that a model or a user has made up."""

from __future__ import annotations

from a2a_canvas.server.agent.model import ModelError, Usage
from a2a_canvas.server.metrics import OTHER, Counter, Metrics
from a2a_canvas.server.tasks.runtime.admission import Admission
from tests.fakes import REFUSED, Hold, answer, ask, broken, stop, text, tool, write
from tests.metric_values import values
from tests.server.tasks.runtime.runtime_harness import HELLO, RuntimeHarness, on_every_backend

pytestmark = on_every_backend


def counted(counter: Counter) -> dict[str, float]:
    return {" ".join(labels): value for labels, value in values(counter).items()}


async def test_calls_and_tokens_are_counted_by_reason_and_direction() -> None:
    first = broken(*write("T1", "One", last_chunk=True), stop("tool_use", Usage(9, 20, 90, 1)))
    harness = RuntimeHarness(first, broken(text("Done"), stop(usage=Usage(200, 3))))
    await harness.settled("Write it")
    assert counted(harness.metrics.model_calls) == {"tool_use": 1, "end_turn": 1}
    assert counted(harness.metrics.tokens) == {"in": 300, "out": 23}
    assert counted(harness.metrics.turns) == {"completed": 1}


async def test_the_first_byte_of_an_artifact_is_measured_once_in_a_turn() -> None:
    pieces = (write("T1", "One"), write("T2", " two", append=True, last_chunk=True, at=1))
    harness = RuntimeHarness(answer(*pieces), HELLO)
    await harness.settled("Write it")
    assert values(harness.metrics.first_byte) == {(): 1}


async def test_a_turn_without_an_artifact_has_no_first_byte() -> None:
    harness = RuntimeHarness(HELLO)
    await harness.settled("Hi")
    assert values(harness.metrics.first_byte) == {(): 0}


async def test_errors_are_counted_by_provider_and_kind_and_each_attempt_counts() -> None:
    busy = ModelError("Try again", retryable=True, kind="overloaded")
    harness = RuntimeHarness([busy], [busy], HELLO)
    await harness.settled("Hi")
    assert counted(harness.metrics.model_errors) == {"messages-api overloaded": 2}
    assert counted(harness.metrics.model_calls) == {"error": 2, "end_turn": 1}


async def test_a_failed_and_a_paused_turn_are_counted_by_state() -> None:
    harness = RuntimeHarness([REFUSED], answer(ask("T1", "Which?")))
    await harness.settled("One", context="c1")
    await harness.settled("Two", context="c2")
    assert counted(harness.metrics.turns) == {"failed": 1, "input-required": 1}


async def test_tool_calls_are_counted_by_tool_and_outcome_and_no_invented_name_is_a_label() -> None:
    calls = answer(tool("T1", "artifact_read", {"artifact_id": "none"}), tool("T2", "Alice's secret", {}, at=1))
    harness = RuntimeHarness(calls, HELLO)
    await harness.settled("Hi")
    assert counted(harness.metrics.tool_calls) == {"artifact_read failed": 1, f"{OTHER} failed": 1}


async def test_running_and_waiting_turns_are_read_when_they_are_asked_for() -> None:
    hold = Hold()
    harness = RuntimeHarness([hold, *HELLO], HELLO, admission=Admission(1, 5))
    first = await harness.send("One", context="c1")
    await hold.reached.wait()
    second = await harness.send("Two", context="c2")
    assert await reading(harness.metrics) == (1, 1)
    hold.release.set()
    await first.wait_until_settled()
    await second.wait_until_settled()
    assert await reading(harness.metrics) == (0, 0)


async def reading(metrics: Metrics) -> tuple[float, float]:
    for refresh in metrics.refreshers:
        await refresh()
    return values(metrics.turns_running)[()], values(metrics.turns_waiting)[()]
