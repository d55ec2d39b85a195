"""What clients were told of a task, over all its streams, whichever server they came from. Pure.

Rule 1: order is (epoch, generation): within a stream it only grows.
Rule 2: what a client can rely on once it was told: messages, results of calls, closed versions, the state of a task
        that has ended or waits. Text that is being written may be lost, and with it the newest generations.
"""

from __future__ import annotations

from typing import Any, Literal

from tests.server.faults.fault_scripts import WORKING, Json

TURN, CANVAS = "urn:a2a-canvas:turn:v1", "urn:a2a-canvas:canvas:v1"

FaultKind = Literal["missing", "working", "twice", "text", "broken"]
"""Something acknowledged is not there; a task does not end; a call or an operation was made twice; a text is not what
the script makes it; anything else that ought not to happen."""


class ObservedTask:
    """The fold of all events. A violation of a rule is an `AssertionError`.

    Attributes:
        state: the newest; a test that answers a paused task may set it to nothing.
        reply: the text of the newest status.
        messages: by id, those that stand in the history.
        texts: of each artifact, as it is shown.
        versions: the text of each closed version, by artifact and number.
        results: the ids of the calls that had a result.
        order: of the newest event.
        epochs: of all events.
        kinds: of all turn events.
    """

    def __init__(self) -> None:
        self.task_id = ""
        self.context_id = ""
        self.state = ""
        self.reply = ""
        self.messages: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.versions: dict[tuple[str, int], str] = {}
        self.results: set[str] = set()
        self.order = self._durable = (0, 0)
        self.epochs: set[int] = set()
        self.kinds: set[str] = set()

    @property
    def epoch(self) -> int:
        return self.order[0]

    @property
    def settled(self) -> bool:
        return self.state not in ("", WORKING, "TASK_STATE_SUBMITTED")

    def take(self, result: Json) -> None:
        """One event, with both extensions active."""
        match result:
            case {"task": task}:
                self.begin(task)
            case {"artifactUpdate": event}:
                self._advance(event)
                self._change(event)
            case {
                "statusUpdate": {"metadata": {"urn:a2a-canvas:turn:v1": {"event_type": kind, "data": data}}} as event
            }:
                self._advance(event)
                self._turn(kind, data)
            case {"statusUpdate": {"metadata": {"urn:a2a-canvas:turn:v1": told}, "status": status} as event}:
                self._advance(event)
                self._status(status, label="label" in told)
            case {"statusUpdate": _}:
                pass  # of an edit that is being written
            case _:
                raise ValueError(f"not an event: {result}")

    def begin(self, task: Json) -> None:
        """A snapshot, maybe after a crash: everything that was told must be there."""
        self.task_id, self.context_id = task["id"], task["contextId"]
        before, self.order = self.order, self._durable
        self._advance(task)
        state = task["status"]["state"]
        if self.settled and state != self.state:
            self.fault("missing", f"was {self.state} at {before} and is {state} at {self.order}")
        history = {message["messageId"]: said(message) for message in task.get("history", ())}
        for gone in self.messages.keys() - history.keys():
            self.fault("missing", f"the message {self.messages[gone]!r}")
        self.messages |= history
        self.state, self.reply = state, said(task["status"].get("message", {}))
        self.texts = {artifact["artifactId"]: said(artifact) for artifact in task.get("artifacts", ())}
        self.check_snapshot()

    def fault(self, kind: FaultKind, what: str) -> None:
        """Something is not as it ought to be."""
        raise AssertionError(f"{kind}: {what}; {vars(self)}")

    def check_snapshot(self) -> None:
        """The texts of a snapshot; each artifact of these scripts has one version."""
        for (artifact, _), text in self.versions.items():
            if self.texts.get(artifact) != text:
                self.fault("missing", f"the closed version of {artifact}")

    def check_text(self, artifact: str) -> None:
        """A text has changed."""

    def check_result(self, content: Any) -> None:
        """A call has had its result."""

    def _change(self, event: Json) -> None:
        artifact, new = event["artifact"]["artifactId"], said(event["artifact"])
        self.texts[artifact] = self.texts[artifact] + new if event.get("append") else new
        self.check_text(artifact)
        if event.get("lastChunk"):
            self._durable = self.order
            version = artifact, int(event["metadata"][CANVAS]["artifactVersion"])
            if self.versions.setdefault(version, self.texts[artifact]) != self.texts[artifact]:
                self.fault("text", f"version {version} was told with two texts")

    def _turn(self, kind: str, data: Json) -> None:
        self.kinds.add(kind)
        if kind == "tool_execution_error":
            self.fault("broken", f"a call failed: {data['error']}")
        if kind == "tool_result":
            self._durable = self.order
            self.results.add(data["tool_use_id"])
            self.check_result(data["content"])

    def _status(self, status: Json, *, label: bool) -> None:
        message = status.get("message", {})
        self.state, self.reply = status["state"], said(message)
        if message and not label:
            self._durable = self.order
            self.messages[message["messageId"]] = self.reply

    def _advance(self, event: Json) -> None:
        told = event["metadata"][TURN]
        order = int(told["epoch"]), int(told["generation"])
        self.epochs.add(order[0])
        if order < self.order:
            self.fault("missing", f"went back from {self.order} to {order}")
        self.order = order


def said(message: Json) -> str:
    """The text of all parts."""
    return "".join(part.get("text", "") for part in message.get("parts", ()))
