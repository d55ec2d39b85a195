"""What a client was told of a task, over all its streams, whichever server they came from.

Rule 1: order is (epoch, generation): within a stream it only grows.
Rule 2: what a client relies on once it was told: messages, results of calls, closed versions, the state of a task that
        has ended or waits. Text on its way is none of that: it may go back to where the last call left it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx

from tests.server.faults.fault_scripts import PAUSED, WORKING, Json

TURN, CANVAS = "urn:a2a-canvas:turn:v1", "urn:a2a-canvas:canvas:v1"
EXTENSIONS = f"{TURN}, {CANVAS}"
INTERNAL_ERROR = -32603


def envelope(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


class Refused(Exception):
    """The answer, or the last event of a stream, is an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(json.dumps(error))
        self.code = error["code"]
        self.retryable = any(info.get("metadata", {}).get("retryable") for info in error.get("data", ()))


class Told:
    """The fold of all events.

    Attributes:
        messages: by id, those that stand in the history.
        texts: of each artifact, as it is shown.
        versions: the text of each closed version, by artifact and number.
        results: the ids of the calls that had a result.
        order: of the newest event.
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
        self.order = (0, 0)
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
                self.order = _order(task)
                self.begin(task)
                return
            case {"artifactUpdate": event}:
                self._change(event)
            case {
                "statusUpdate": {"metadata": {"urn:a2a-canvas:turn:v1": {"event_type": kind, "data": data}}} as event
            }:
                self._turn(kind, data)
            case {"statusUpdate": event}:
                self._status(event)
            case _:
                raise AssertionError(f"not an event: {result}")
        assert _order(event) >= self.order, (vars(self), event)
        self.order = _order(event)

    def begin(self, task: Json) -> None:
        """The task as it stands: everything that was told must be there."""
        history = {message["messageId"]: said(message) for message in task.get("history", ())}
        assert self.messages.items() <= history.items(), (vars(self), task)
        state = task["status"]["state"]
        assert not self.settled or state == self.state or self.state == PAUSED, (vars(self), task)
        self.task_id, self.context_id, self.state = task["id"], task["contextId"], state
        self.messages, self.reply = history, said(task["status"].get("message", {}))
        self.texts = {artifact["artifactId"]: said(artifact) for artifact in task.get("artifacts", ())}
        for artifact, text in self.versions.items():
            assert self.texts[artifact[0]] == text, vars(self)

    def _change(self, event: Json) -> None:
        artifact, new = event["artifact"]["artifactId"], said(event["artifact"])
        self.texts[artifact] = self.texts[artifact] + new if event.get("append") else new
        if event.get("lastChunk"):
            version = artifact, int(event["metadata"][CANVAS]["artifactVersion"])
            assert self.versions.setdefault(version, self.texts[artifact]) == self.texts[artifact]

    def _turn(self, kind: str, data: Json) -> None:
        assert kind != "tool_execution_error", data
        self.kinds.add(kind)
        if kind == "tool_result":
            self.results.add(data["tool_use_id"])

    def _status(self, event: Json) -> None:
        status, told = event["status"], event["metadata"].get(TURN, {})
        message = status.get("message", {})
        self.state, self.reply = status["state"], said(message)
        if message and "label" not in told:
            self.messages[message["messageId"]] = self.reply


def _order(event: Json) -> tuple[int, int]:
    told = event["metadata"][TURN]
    return int(told["epoch"]), int(told["generation"])


def said(message: Json) -> str:
    """The text of all parts."""
    return "".join(part.get("text", "") for part in message.get("parts", ()))


class Stream:
    """A stream of events, read step by step."""

    def __init__(self, response: httpx.Response, told: Told) -> None:
        self.told = told
        self._events = _results(response)

    async def next(self) -> Json:
        """One event.

        Raises:
            StopAsyncIteration: the answer is complete.
            Refused: it is an error.
            httpx.TransportError: the connection broke.
        """
        result = await anext(self._events)
        self.told.take(result)
        return result

    async def until(self, holds: Callable[[Told], Any]) -> None:
        """Read on until something was told."""
        while not holds(self.told):
            await self.next()

    async def rest(self) -> Told:
        """Read to the end of the answer."""
        try:
            while True:
                await self.next()
        except StopAsyncIteration:
            return self.told


async def _results(response: httpx.Response) -> AsyncIterator[Json]:
    if "text/event-stream" not in response.headers["content-type"]:
        answers: AsyncIterator[Any] = _once(json.loads(await response.aread()))
    else:
        answers = (json.loads(line[5:]) async for line in response.aiter_lines() if line.startswith("data:"))
    async for answer in answers:
        if error := answer.get("error"):
            raise Refused(error)
        yield answer["result"]


async def _once(answer: Json) -> AsyncIterator[Json]:
    yield answer
