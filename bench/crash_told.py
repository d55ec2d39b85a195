"""What the client of one task was told, over all its streams, and what of that must be there ever after. Pure.

Rule 1: whoever was told of a message, a status, the result of a call, a closed version or an end can rely on it.
Rule 2: text that is being written may be lost, and with it the newest generations, until somebody takes the task over
        and raises the epoch. So what is shown must at any time be what the script makes it, up to
        some point that is not before the last result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from a2a_canvas.server.wire import CANVAS, TURN
from bench.client import ClientError, texts
from bench.crash_plays import Play, reached, repeated

FaultKind = Literal["missing", "working", "twice", "text", "broken"]
"""Something acknowledged is not there; a task does not end; a call or an operation was made twice; a text is not what
the script makes it; anything else that ought not to happen."""

PAUSED = "TASK_STATE_INPUT_REQUIRED"
ENDS = tuple(f"TASK_STATE_{name}" for name in ("COMPLETED", "FAILED", "CANCELED", "REJECTED"))


@dataclass(frozen=True, slots=True)
class Fault:
    kind: FaultKind
    what: str


class Told:
    """The fold of all events of a task.

    Attributes:
        state: the newest that was told; may be set to nothing by who makes a paused task go on.
        reply: the text of the newest status.
        messages: by id, those that stand in the history.
        shown: the text of each artifact.
        versions: the text of each closed version, by artifact and number.
        results: the ids of the calls that had a result.
        epochs: how many owners it had.
    """

    def __init__(self, play: Play) -> None:
        self.task_id = ""
        self.state = ""
        self.reply = ""
        self.messages: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        self.versions: dict[tuple[str, int], str] = {}
        self.results: set[str] = set()
        self.epochs: set[int] = set()
        self.faults: list[Fault] = []
        self._play = play
        self._order = self._lasting = (0, 0)
        self._kept: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many things were told that must last."""
        return len(self.messages) + len(self.versions) + len(self.results) + (self.state in ENDS)

    def take(self, answer: dict[str, Any]) -> None:
        """One event, with both extensions active.

        Raises:
            ClientError: it is none.
        """
        match answer.get("result"):
            case {"task": task}:
                self._begin(task)
            case {"artifactUpdate": event}:
                self._in_order(event)
                self._change(event)
            case {
                "statusUpdate": {"metadata": {"urn:a2a-canvas:turn:v1": {"event_type": kind, "data": data}}} as event
            }:
                self._in_order(event)
                self._turn(kind, data)
            case {"statusUpdate": {"metadata": {"urn:a2a-canvas:turn:v1": told}, "status": status} as event}:
                self._in_order(event)
                self._status(status, label="label" in told)
            case {"statusUpdate": _}:
                pass  # of an edit that is being written
            case _:
                raise ClientError(f"not an event: {answer}")

    def fault(self, kind: FaultKind, what: str) -> None:
        self.faults.append(Fault(kind, f"task {self.task_id} ({self._play.says}): {what}"))

    # ---------------------------------------------------------------------- snapshots

    def _begin(self, task: dict[str, Any]) -> None:
        """The task as it stands, maybe after a crash: everything that was told must be there."""
        self.task_id = task["id"]
        before, self._order = self._order, self._lasting
        self._in_order(task)
        state = task["status"]["state"]
        if self.state in (*ENDS, PAUSED) and state != self.state:
            self.fault("missing", f"was {self.state} at {before} and is {state} at {self._order}")
        history = dict(_messages(task))
        for gone in self.messages.keys() - history.keys():
            self.fault("missing", f"the message {self.messages[gone]!r}")
        self.messages |= history
        self.state, self.reply = state, _said(task["status"].get("message", {}))
        self.shown = {artifact["artifactId"]: "".join(texts(artifact)) for artifact in task.get("artifacts", ())}
        for artifact, kept in self._kept.items():
            if (self._reached(artifact) or 0) < kept:
                self.fault("missing", f"what a completed call wrote to {artifact}: {self.shown.get(artifact)!r}")
        for artifact in self.shown:
            self._check(artifact)

    # ------------------------------------------------------------------------- events

    def _change(self, event: dict[str, Any]) -> None:
        artifact, new = event["artifact"]["artifactId"], "".join(texts(event["artifact"]))
        self.shown[artifact] = self.shown[artifact] + new if event.get("append") else new
        self._check(artifact)
        if event.get("lastChunk"):
            self._lasting = self._order
            version = artifact, int(event["metadata"][CANVAS]["artifactVersion"])
            if self.versions.setdefault(version, self.shown[artifact]) != self.shown[artifact]:
                self.fault("text", f"version {version} was told with two texts")

    def _turn(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "tool_execution_error":
            self.fault("broken", f"a call failed: {data['error']}")
        if kind != "tool_result":
            return
        self._lasting = self._order
        self.results.add(data["tool_use_id"])
        if len(self.results) == self._play.calls + 1:
            self.fault("twice", f"{len(self.results)} calls had a result: {data['content']}")
        for artifact in self.shown:
            self._kept[artifact] = self._reached(artifact) or 0

    def _status(self, status: dict[str, Any], *, label: bool) -> None:
        message = status.get("message", {})
        self.state, self.reply = status["state"], _said(message)
        if message and not label:
            self._lasting = self._order
            self.messages[message["messageId"]] = self.reply

    def _in_order(self, event: dict[str, Any]) -> None:
        told = event["metadata"][TURN]
        order = int(told["epoch"]), int(told["generation"])
        self.epochs.add(order[0])
        if order < self._order:
            self.fault("missing", f"went back from {self._order} to {order}")
        self._order = order

    # -------------------------------------------------------------------------- texts

    def _reached(self, artifact: str) -> int | None:
        return reached(self._play.states[artifact], self.shown.get(artifact, ""))

    def _check(self, artifact: str) -> None:
        if self._reached(artifact) is None and self.shown[artifact] != self._play.before:
            twice = repeated(self.shown[artifact])
            self.fault("twice" if twice else "text", f"{artifact} is {self.shown[artifact]!r}")


def _messages(task: dict[str, Any]) -> Iterator[tuple[str, str]]:
    return ((message["messageId"], _said(message)) for message in task.get("history", ()))


def _said(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message.get("parts", ()))
