"""A process that shares its tasks with no other."""

from a2a_canvas.server.tasks.journal.journal import Journal
from a2a_canvas.server.tasks.runtime.ownership import LocalOwnership
from tests.fakes import said


async def test_no_message_is_accepted_for_another_replica_because_there_is_none() -> None:
    ownership = LocalOwnership(Journal.__new__(Journal))
    assert not await ownership.post("t", said("m", "Go"), "key")
