"""What is left of a task of `plays.py` when it has ended, however often it was interrupted."""

from __future__ import annotations

from tests.server.faults.fault_scripts import CALLS, COMPLETED, SO_FAR, TEXTS, WRITE, WRITTEN
from tests.server.faults.observed_task import ObservedTask, said
from tests.server.faults.server_processes import ServerProcess


async def assert_written(told: ObservedTask, server: ServerProcess) -> None:
    """`WRITE` was carried out once, and what one client was told is what the server has."""
    assert (told.state, told.reply, told.texts) == (COMPLETED, WRITTEN, TEXTS), vars(told)
    assert list(told.messages.values()) == [WRITE, SO_FAR, WRITTEN], vars(told)
    assert len(told.results) <= CALLS, vars(told)
    told.begin(await server.task(told.task_id))
    assert told.texts == TEXTS, vars(told)
    for artifact, text in TEXTS.items():
        path = f"/artifacts/{told.context_id}/{artifact}"
        (version,) = (await server.get(f"{path}/versions"))["versions"]
        assert (version["number"], version["incomplete"]) == (1, False), version
        assert said(await server.get(f"{path}/versions/1")) == said(await server.get(path)) == text
        assert told.versions.get((artifact, 1), text) == text, vars(told)
