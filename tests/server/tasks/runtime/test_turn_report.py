"""What the log says of each task that has ended, or pauses: one line, of figures, and without the words of others."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from a2a_canvas.server.accounts.access import ANONYMOUS
from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.model import Usage
from a2a_canvas.server.log_output import LineFormatter
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.models import text_part
from tests.fakes import REFUSED, Hold, answer, ask, broken, decline, stop, text, tool, write
from tests.server.tasks.runtime.runtime_harness import HELLO, RuntimeHarness, on_every_backend

pytestmark = on_every_backend

Reports = Callable[[], list[dict[str, Any]]]

FIGURES = {"rounds": 1, "tokens_in": 0, "tokens_out": 0}


@pytest.fixture
def reports(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Reports:
    """The fields of the reports so far; each has its task and how long it took."""
    monkeypatch.setattr(caplog.handler, "formatter", LineFormatter("json"))  # the handler is that of all tests
    caplog.set_level(logging.INFO)

    def read() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in caplog.text.splitlines()]
        found = [line for line in lines if line["logger"].endswith(".turn_report")]
        assert all(line["level"] == "info" and line["task"] and line["seconds"] >= 0 for line in found)
        left_out = ("time", "level", "logger", "task", "seconds")
        return [{name: value for name, value in line.items() if name not in left_out} for line in found]

    return read


def told(message: str, state: str, **fields: Any) -> dict[str, Any]:
    return {"message": message, "context": "c", "state": state} | FIGURES | fields


async def test_an_end_has_the_sums_of_all_calls_and_the_newest_version_of_each_artifact(reports: Reports) -> None:
    writing = (write("T1", "One"), write("T2", " two", append=True, last_chunk=True, at=1))
    first = broken(*writing, stop("tool_use", Usage(9, 20, 90, 1)))
    harness = RuntimeHarness(first, broken(text("Done"), stop(usage=Usage(200, 3))))
    await harness.settled("Write it")
    assert reports() == [
        told("Task completed", "completed", rounds=2, tokens_in=300, tokens_out=23, artifacts={"doc": 1})
    ]


async def test_a_failure_has_its_reason(reports: Reports) -> None:
    await RuntimeHarness([REFUSED]).settled("Hi")
    assert reports() == [told("Task failed", "failed", reason=REFUSED.reason)]


async def test_a_pause_is_told_and_then_the_end_with_what_came_after_the_answer(reports: Reports) -> None:
    harness = RuntimeHarness(answer(ask("T1", "Is it about Ann?")), HELLO)
    asking = await harness.settled("Write")
    await harness.settled("Yes", task=asking.task_id)
    assert reports() == [
        told("Task waits for an answer", "input-required"),
        told("Task completed", "completed"),
    ]


async def test_a_task_is_canceled_while_it_works_or_while_it_waits(reports: Reports) -> None:
    hold = Hold()
    harness = RuntimeHarness(answer(text("Hel"), hold), answer(ask("T1", "Why?")))
    working = await harness.send("Hi")
    await hold.reached.wait()
    await harness.runtime.cancel(working.snapshot.task_id, ANONYMOUS)
    asking = await harness.settled("Ho")
    await harness.runtime.cancel(asking.task_id, ANONYMOUS)
    assert [(line["message"], line["rounds"]) for line in reports()] == [
        ("Task canceled", 1),
        ("Task waits for an answer", 1),
        ("Task canceled", 0),
    ]


async def test_a_refusal_by_the_model_is_told_without_its_words(reports: Reports) -> None:
    await RuntimeHarness(answer(decline("T1", "I know nothing of Ann."))).settled("Hi")
    assert reports() == [told("Task rejected", "rejected")]


async def test_a_refusal_by_the_server_has_its_reason(reports: Reports) -> None:
    harness = RuntimeHarness(answer(write("T1", "One", last_chunk=True)), HELLO)
    await harness.settled("Write")
    undo = UserMessage("m-undo", (text_part("Undo that"),), {CANVAS: {"op": "undo", "artifactId": "doc"}})
    await (await harness.runtime.send(Incoming(undo, "", "c", ""), ANONYMOUS)).wait_until_settled()
    [_, refused] = reports()
    assert refused == told(
        "Task rejected",
        "rejected",
        rounds=0,
        reason="There is nothing to undo: version 1 of artifact 'doc' is the first.",
    )


async def test_what_a_tool_said_is_left_out_of_a_reason(reports: Reports) -> None:
    wrong = [answer(tool(f"T{number}", "artifact_read", {"artifact_id": "Ann's diary"})) for number in range(9)]
    await RuntimeHarness(*wrong).settled("Read it")
    [line] = reports()
    assert line["reason"] == "Stopped after 5 tool errors in a row. The last one: …"
