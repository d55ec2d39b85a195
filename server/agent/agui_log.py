"""What an agent's function has sent to AG-UI clients, folded: what a client that joins late must be sent. Pure.

Rule 1: the function may send CUSTOM, ACTIVITY and STATE events; the server sends all others, from what the function
        says and does.
Rule 2: STATE events are about a state of the function's own. A delta needs a snapshot before it, and must fit.
Rule 3: what no step has recorded is remembered by digests, in order: a rerun that sends the same again shows nothing.
Rule 4: a client that joins late gets the state, and the newest activities and CUSTOM events: `MAX_KEPT` of each, with
        `MAX_STATE` characters in all of each. CUSTOM events from before an answer of the user are not sent again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from a2a_canvas.server.agent.events import AguiSent, ToolStep, Transcript, TranscriptAppended, TurnEvent
from a2a_canvas.store.text.rope import Rope
from a2a_canvas.tools.json_patching import PatchError, apply_patch
from a2a_canvas.tools.part_inputs import require_portable
from a2a_canvas.tools.tool import to_json

MAX_EVENT_BYTES = 64 * 1024
MAX_STATE = 256 * 1024
"""Characters of JSON."""
MAX_KEPT = 100
MAX_NAME = 256

FIELDS: Mapping[str, Mapping[str, type]] = {
    "CUSTOM": {"name": str, "value": object},
    "STATE_SNAPSHOT": {"snapshot": object},
    "STATE_DELTA": {"delta": list},
    "ACTIVITY_SNAPSHOT": {"messageId": str, "activityType": str, "content": dict},
    "ACTIVITY_DELTA": {"messageId": str, "activityType": str, "patch": list},
}
OWN_NAMES = frozenset(
    (
        *("message_start", "message_delta", "text_block_start", "text_delta", "thinking", "content_block_stop"),
        *("tool_use_start", "tool_use_input_delta", "tool_use_input_complete", "tool_result", "tool_execution_error"),
        *("llm_call_completed", "final_message_start", "assistant", "completed", "stream_end", "rejected"),
        *("annotations", "operation_result"),
        *(f"artifact_partial_update_{phase}" for phase in ("start", "chunk", "complete", "suggested", "abort")),
    )
)
"""The names of the server's own CUSTOM events."""
_INSTEAD = {
    "RUN_FINISHED": "return from the function",
    "RUN_ERROR": "raise an exception, or use turn.decline",
    "RUN": "the server sends them itself",
    "TEXT": "use turn.stream or turn.say",
    "MESSAGES": "use turn.say",
    "TOOL": "use turn.tool",
    "REASONING": "use turn.think",
    "THINKING": "use turn.think",
    "STEP": "use turn.progress",
    "SUBAGENT": "use turn.progress",
}
_JSON_TYPES = {str: "a string", list: "a list", dict: "an object"}
_DIGEST = 8
"""Characters of a digest."""


class AguiEventError(ValueError):
    """An event cannot be sent; `str()` is a sentence that says what to do."""


# ---------------------------------------------------------------------- one event


def checked_event(event: Any) -> dict[str, Any]:
    """An event, given as JSON or as a model of `ag-ui-protocol`, with the fields that AG-UI has for it.

    Raises:
        AguiEventError: the function must not send it (rule 1), or it is malformed or too large.
    """
    given = event.model_dump(mode="json", by_alias=True) if hasattr(event, "model_dump") else event
    if not isinstance(given, Mapping):
        raise AguiEventError(f"agui takes an AG-UI event, as a dict or a model, not {type(event).__name__}.")
    kind = str(getattr(given.get("type"), "value", given.get("type")))
    if kind not in FIELDS:
        raise AguiEventError(_instead(kind))
    checked = {"type": kind, **{name: _field(given, kind, name, of) for name, of in FIELDS[kind].items()}}
    if kind == "ACTIVITY_SNAPSHOT" and given.get("replace") is False:
        checked["replace"] = False
    if kind == "CUSTOM" and checked["name"] in OWN_NAMES:
        raise AguiEventError(f"{checked['name']!r} is the name of an event of the server. Choose another name.")
    return _portable(checked)


def _instead(kind: str) -> str:
    instead = _INSTEAD.get(kind) or _INSTEAD.get(kind.partition("_")[0])
    if instead:
        return f"agui does not take {kind} events: {instead}."
    return f"agui does not take {kind[:50]} events. It takes {', '.join(FIELDS)}."


def _field(event: Mapping[str, Any], kind: str, name: str, of: type) -> Any:
    if name not in event or not isinstance(event[name], of):
        raise AguiEventError(f"{kind} needs {name}{', ' + _JSON_TYPES[of] if of in _JSON_TYPES else ''}.")
    if of is str and len(event[name]) > MAX_NAME:
        raise AguiEventError(f"{name} of {kind} may have {MAX_NAME} characters.")
    return event[name]


def _portable(event: dict[str, Any]) -> dict[str, Any]:
    """A copy, which the function can no longer change."""
    try:
        text = to_json(require_portable(event))
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise AguiEventError(f"{event['type']} is not JSON: {error}.") from None
    if (size := len(text.encode())) > MAX_EVENT_BYTES:
        raise AguiEventError(
            f"{event['type']} has {size:,} bytes of JSON; an event may have {MAX_EVENT_BYTES:,}. Send a smaller one."
        )
    copied: dict[str, Any] = json.loads(text)
    return copied


# ---------------------------------------------------------------- what clients have


@dataclass(frozen=True, slots=True)
class SizedValue:
    """A JSON value.

    Attributes:
        size: characters of its JSON, or more.
    """

    value: Any
    size: int

    @classmethod
    def measure(cls, value: Any) -> SizedValue:
        return cls(value, len(to_json(value)))

    def patch(self, operations: list[Any]) -> SizedValue:
        """The value after a JSON Patch.

        Raises:
            AguiEventError: it does not fit, or the value becomes too large.
        """
        try:
            value = apply_patch(self.value, operations)
        except PatchError as error:
            raise AguiEventError(f"The delta does not fit: {error}. Send a snapshot.") from None
        size = self.size + len(to_json(operations))
        copies = any(each["op"] == "copy" for each in operations)
        after = SizedValue.measure(value) if copies or size > MAX_STATE else SizedValue(value, size)
        if after.size > MAX_STATE:
            raise AguiEventError(f"The value would have more than {MAX_STATE:,} characters of JSON. Send less.")
        return after


@dataclass(frozen=True, slots=True)
class AguiActivity:
    """An activity message."""

    kind: str
    content: SizedValue


@dataclass(frozen=True, slots=True)
class AguiView:
    """What a client has (rule 4).

    Attributes:
        state: None before there is a snapshot.
        activities: by message id, oldest first.
        customs: values by name, oldest first.
    """

    state: SizedValue | None = None
    activities: Mapping[str, AguiActivity] = field(default_factory=dict)
    customs: tuple[tuple[str, SizedValue], ...] = ()

    def after(self, event: Mapping[str, Any]) -> AguiView:
        """The view after a checked event.

        Raises:
            AguiEventError: it is a delta that does not fit.
        """
        match event["type"]:
            case "STATE_SNAPSHOT":
                return replace(self, state=SizedValue.measure(event["snapshot"]))
            case "STATE_DELTA":
                if self.state is None:
                    raise AguiEventError("STATE_DELTA needs a STATE_SNAPSHOT before it. Send the snapshot first.")
                return replace(self, state=self.state.patch(event["delta"]))
            case "CUSTOM":
                customs = (*self.customs, (event["name"], SizedValue.measure(event["value"])))
                return replace(self, customs=customs[_count_dropped([value.size for _, value in customs]) :])
            case _:
                return self._after_activity(event)

    def _after_activity(self, event: Mapping[str, Any]) -> AguiView:
        message_id = event["messageId"]
        known = self.activities.get(message_id)
        match event:
            case {"type": "ACTIVITY_SNAPSHOT"}:
                content = SizedValue.measure(event["content"])
                if known and event.get("replace") is False:
                    return self
            case _ if known is None:
                raise AguiEventError(f"There is no activity {message_id!r}. Send its ACTIVITY_SNAPSHOT first.")
            case _:
                content = known.content.patch(event["patch"])
                if not isinstance(content.value, dict):
                    raise AguiEventError("The content of an activity is an object. Send another delta.")
        activities = {**self.activities, message_id: AguiActivity(event["activityType"], content)}
        dropped = _count_dropped([each.content.size for each in activities.values()])
        return replace(self, activities=dict([*activities.items()][dropped:]))

    def events_from(self, shown: AguiView) -> list[dict[str, Any]]:
        """Events that give a client which has `shown` the state and the activities of this view."""
        events: list[dict[str, Any]] = []
        if self.state and (shown.state is None or shown.state.value != self.state.value):
            events.append({"type": "STATE_SNAPSHOT", "snapshot": self.state.value})
        for message_id, each in self.activities.items():
            known = shown.activities.get(message_id)
            if known is None or (known.kind, known.content.value) != (each.kind, each.content.value):
                events.append(_activity_snapshot(message_id, each))
        return events

    def late_events(self) -> list[dict[str, Any]]:
        """The events that a client which joins late has missed, besides the state."""
        activities = [_activity_snapshot(*each) for each in self.activities.items()]
        return activities + [{"type": "CUSTOM", "name": name, "value": each.value} for name, each in self.customs]


def _activity_snapshot(message_id: str, activity: AguiActivity) -> dict[str, Any]:
    of = {"messageId": message_id, "activityType": activity.kind}
    return {"type": "ACTIVITY_SNAPSHOT", **of, "content": activity.content.value}


def _count_dropped(sizes: list[int]) -> int:
    """How many of the oldest are not kept (rule 4); the newest one always is."""
    total, kept = 0, 0
    for size in reversed(sizes[-MAX_KEPT:]):
        total += size
        if kept and total > MAX_STATE:
            break
        kept += 1
    return len(sizes) - kept


# ---------------------------------------------------------------------- all events


@dataclass(frozen=True, slots=True)
class AguiLog:
    """What a task has sent.

    Attributes:
        view: what clients have.
        recorded: what they had when something was last recorded; None if nothing was sent since.
        unrecorded: digests of the events since then, by step (rule 3).
    """

    view: AguiView = field(default_factory=AguiView)
    recorded: AguiView | None = None
    unrecorded: Mapping[str, Rope] = field(default_factory=dict)

    def fold(self, event: TurnEvent) -> AguiLog:
        """The log after an event of the turn."""
        match event:
            case AguiSent():
                return self._after(event)
            case TranscriptAppended(items=items) if self.unrecorded:
                return self._record(items)
            case _:
                return self

    def forget_customs(self) -> AguiLog:
        """The log when the user has answered (rule 4)."""
        return replace(self, view=replace(self.view, customs=())) if self.view.customs else self

    def digests(self, step: str) -> list[str]:
        """Those of the unrecorded events of a step."""
        text = str(self.unrecorded.get(step, ""))
        return [text[start : start + _DIGEST] for start in range(0, len(text), _DIGEST)]

    def count(self, step: str) -> int:
        """The number of unrecorded events of a step."""
        return len(self.unrecorded.get(step, "")) // _DIGEST

    def _after(self, sent: AguiSent) -> AguiLog:
        try:
            view = self.view.after(sent.event)
        except AguiEventError:  # sent by another version of this server
            return self
        recorded = self.recorded or self.view
        if sent.number is None:
            return AguiLog(view, recorded, self.unrecorded)
        before = self.unrecorded.get(sent.step, Rope())
        if sent.number * _DIGEST < len(before):
            before = Rope(str(before)[: sent.number * _DIGEST])
        return AguiLog(view, recorded, {**self.unrecorded, sent.step: before + Rope(digest_of(sent.event))})

    def _record(self, items: Transcript) -> AguiLog:
        steps = [item for item in items if isinstance(item, ToolStep) and not item.tool_use_id]
        ended = {each.name if each.kind == "kept" else "" for each in steps if each.kind in _RECORDS or _is_shown(each)}
        left = {step: digests for step, digests in self.unrecorded.items() if step and step not in ended}
        if not ended or len(left) == len(self.unrecorded):
            return self
        return AguiLog(self.view, self.view if left else None, left)


_RECORDS = ("called", "kept", "asked", "authentication")


def _is_shown(step: ToolStep) -> bool:
    """Whether a step records what was shown before the result of a call; not the end of a round."""
    return step.kind == "shown" and not step.name


NO_LOG = AguiLog()


def digest_of(event: Mapping[str, Any]) -> str:
    """A short digest of an event."""
    return hashlib.sha256(to_json(event).encode()).hexdigest()[:_DIGEST]
