"""Where the versions of an artifact come from: when each was made, by whom, with which program, and what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.operation_forms import instruction_of
from a2a_canvas.server.protocols.edge.wire_times import timestamp
from a2a_canvas.server.tasks.contexts import Context
from a2a_canvas.server.wire import VIA
from a2a_canvas.store.annotations.annotation import Writer
from a2a_canvas.store.models import Version

Json = dict[str, Any]

MAX_REQUEST, MAX_VIA = 500, 100
"""Characters of a request, and of the name of a program, that are shown with a version."""


@dataclass(frozen=True, slots=True)
class VersionOrigins:
    """The origins of an artifact's versions, as far as they are known.

    Attributes:
        times: by the number of the version.
        messages: the first messages of tasks, by the ids of the tasks.
        suggested_by: whose suggestions they have accepted, by the number of the version.
    """

    times: Mapping[int, datetime] = field(default_factory=dict)
    messages: Mapping[str, UserMessage] = field(default_factory=dict)
    suggested_by: Mapping[int, Sequence[Writer]] = field(default_factory=dict)

    def describe(self, version: Version) -> Json:
        """`timestamp` as in A2A's JSON, `request`, the beginning of the text, and `by`, the user who sent it.

        `via` is the program that the user used. `suggestedBy` names the authors of suggestions. Each is left out if it
        is not known.
        """
        at, message = self.times.get(version.number), self.messages.get(version.task_id)
        text = instruction_of(message.parts) if message else ""
        known: Json = {"timestamp": at and timestamp(at), "request": text[:MAX_REQUEST]}
        known["by"] = message and message.sender
        via = message and message.metadata.get(VIA)
        known["via"] = isinstance(via, str) and via[:MAX_VIA]
        known["suggestedBy"] = [each.shown_name for each in self.suggested_by.get(version.number, ())]
        return {name: value for name, value in known.items() if value}


async def version_origins(
    context: Context, artifact_id: str, versions: Iterable[Version], suggested_by: Mapping[int, Sequence[Writer]]
) -> VersionOrigins:
    """The origins of versions of an artifact. Raises as the store's methods do."""
    times = await context.artifacts.version_times(artifact_id)
    messages = await context.first_messages({version.task_id for version in versions})
    return VersionOrigins(times, messages, suggested_by)
