"""What the agent's function sends to AG-UI clients, for one subscriber.

Rule 1: the function's state is the value of `agent` in ours: a snapshot replaces that value, a delta changes it.
Rule 2: a subscriber that joins late gets what it has missed (agent/agui_log.py, rule 4).
Rule 3: `test` operations are left out of deltas: they have been carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ag_ui import core

from a2a_canvas.server.agent.agui_log import AguiLog
from a2a_canvas.server.agent.events import AguiSent, TurnEvent
from a2a_canvas.server.protocols.agui.json_patch import Op, add, pointer
from a2a_canvas.server.protocols.agui.state import AGENT


class AgentEvents:
    """Projects the events of the function.

    Args:
        log: what it had sent when the subscriber joined.
        shown: is called with each activity that is shown or changes.
    """

    def __init__(self, log: AguiLog, shown: Callable[[core.ActivityMessage], None]) -> None:
        self._log = log
        self._shown = shown

    def begin(self) -> Iterator[core.BaseEvent]:
        """What the subscriber has missed, besides the state."""
        for event in self._log.view.late_events():
            yield from self._project(event)

    def project(self, event: TurnEvent) -> Iterator[core.BaseEvent]:
        self._log = self._log.fold(event)
        if isinstance(event, AguiSent):
            yield from self._project(event.event)

    def _project(self, event: Mapping[str, Any]) -> Iterator[core.BaseEvent]:
        match event["type"]:
            case "CUSTOM":
                yield core.CustomEvent(name=event["name"], value=event["value"])
            case "STATE_SNAPSHOT":
                yield core.StateDeltaEvent.model_validate({"delta": [add(event["snapshot"], AGENT)]})
            case "STATE_DELTA":
                if delta := [_below_agent(each) for each in _changing(event["delta"])]:
                    yield core.StateDeltaEvent.model_validate({"delta": delta})
            case "ACTIVITY_SNAPSHOT":
                self._record(event)
                yield core.ActivitySnapshotEvent.model_validate(event)
            case "ACTIVITY_DELTA":
                self._record(event)
                if patch := _changing(event["patch"]):
                    yield core.ActivityDeltaEvent.model_validate({**event, "patch": patch})

    def _record(self, event: Mapping[str, Any]) -> None:
        message_id = event["messageId"]
        if each := self._log.view.activities.get(message_id):
            self._shown(core.ActivityMessage(id=message_id, activity_type=each.kind, content=each.content.value))


def _changing(patch: list[Op]) -> list[Op]:
    return [operation for operation in patch if operation["op"] != "test"]


def _below_agent(operation: Op) -> Op:
    root = pointer(AGENT)
    return {**operation, **{name: root + operation[name] for name in ("path", "from") if name in operation}}
