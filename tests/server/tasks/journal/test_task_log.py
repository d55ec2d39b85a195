"""The log of a task in memory, whose lease is lost and acquired again."""

from __future__ import annotations

from datetime import UTC, datetime

from a2a_canvas.server.agent.events import BlockPosition, BlockStopped, ToolInputAdded
from a2a_canvas.server.tasks.journal.task_log import TaskLog
from a2a_canvas.server.tasks.record import TaskRecord

NOW = datetime(2026, 5, 1, tzinfo=UTC)
PLACE = BlockPosition(0, 1, 0)


def test_the_next_input_begins_without_what_was_unfinished_when_the_lease_was_lost() -> None:
    record = TaskRecord("t", "c", "", NOW)
    log = TaskLog(record)
    log.add(ToolInputAdded(PLACE, "T1", '{"text": "half'), NOW)
    log.adopt(record)
    for piece in ('{"text": ', '"whole"}'):
        log.add(ToolInputAdded(PLACE, "T2", piece), NOW)
    log.add(BlockStopped(PLACE), NOW)
    stored = [entry.event for entry in log.take_batch().entries]
    assert stored == [ToolInputAdded(PLACE, "T2", '{"text": "whole"}'), BlockStopped(PLACE)]
