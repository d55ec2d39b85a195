"""Two servers on PostgreSQL: a task is cancelled at one of them, whoever runs it, and the model's answer is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.database_fixtures import postgresql_url
from tests.new_database import with_tables
from tests.server.faults.fake_messages_api import MODEL, START, behind, messages_api, speaks, writes
from tests.server.faults.fault_scripts import CANCELED, WORKING, Json
from tests.server.faults.observed_task import ObservedTask
from tests.server.faults.server_processes import PATIENCE, server_group

WRITTEN, SEEN = "As far as it has come.", "As far as it has come"
"""What the model has written; its last character waits for the piece that closes the version."""
INSIDE: list[tuple[list[Json], Callable[[ObservedTask], object]]] = [
    ([], lambda told: told.state == WORKING),
    ([START, *speaks("Let me")], lambda told: "text_delta" in told.kinds),
    ([START, *writes(WRITTEN)], lambda told: told.texts.get("doc") == SEEN),
]
"""What the model has said of an answer without an end, and what of that its watchers have seen."""


async def test_a_cancel_elsewhere_ends_the_models_answer_wherever_it_is(tmp_path: Path) -> None:
    url = await with_tables(postgresql_url())
    async with (
        messages_api() as api,
        server_group(url, tmp_path, MODEL, **behind(api)) as servers,
    ):
        owner, other = await servers.several(2)
        for says, seen in INSIDE:
            told = ObservedTask()
            async with owner.sends("Go on for ever.", told) as stream, asyncio.timeout(PATIENCE):
                call = await api.calls.get()
                await call.say(says)
                await stream.until(seen)
                canceled = await other.call("CancelTask", {"id": told.task_id})
                assert canceled["status"]["state"] == CANCELED
                await call.left.wait()
                assert (await stream.rest()).state == CANCELED
            told.begin(await owner.task(told.task_id))
        assert told.texts == {"doc": SEEN}
        (version,) = (await other.get(f"/artifacts/{told.context_id}/doc/versions"))["versions"]
        assert (version["number"], version["incomplete"]) == (1, True)
        assert api.calls.empty()
