"""The push configs of a handler whose tasks are in memory."""

from __future__ import annotations

from collections.abc import Sequence

from a2a_canvas.server.accounts.access import Access
from a2a_canvas.server.protocols.a2a_v1.operations.push_operations import PushOperations
from a2a_canvas.server.push.outbox import InMemoryPush
from a2a_canvas.server.push.sending import TargetCheck
from a2a_canvas.server.push.targets import AllowedTargets
from a2a_canvas.server.tasks.journal.journal import InMemoryJournal
from tests.fakes import Clock


class FixedLookup:
    """A name server that answers with what it is given, one after the other; the last one stays.

    Attributes:
        asked: names that were looked up.
    """

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if not found:
            raise OSError("there is no such host")
        return found


def push_operations(
    configs: InMemoryPush | None = None, addresses: Sequence[str] = ("1.1.1.1",), adopter: str = ""
) -> PushOperations:
    """The operations on configs in memory.

    Args:
        addresses: of any host.
        adopter: the user who has the tasks of anonymous callers, too.
    """
    check = TargetCheck(AllowedTargets(), FixedLookup(addresses))
    access = Access(InMemoryJournal(Clock()), adopter=adopter)
    return PushOperations(configs or InMemoryPush(Clock()), check, access.is_owner)
