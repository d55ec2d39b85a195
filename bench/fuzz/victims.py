"""A user of the server under attack: whatever the others send, its next request succeeds.

Rule 1: after each hostile request the victim makes one of its own, of the next kind. All kinds have their turn.
Rule 2: others know the victim's name, and share with it. The answer must be a success, and not an error of JSON-RPC.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

import httpx

from a2a_canvas.server.wire import CANVAS

VICTIM = "vic"
PLACE = "place-of-the-victim"
HOOK = {"url": "http://127.0.0.1:1/", "id": "hook"}


class Victim:
    """The victim on one server.

    Args:
        headers: its credential.
    """

    def __init__(self, http: httpx.AsyncClient, headers: Mapping[str, str]) -> None:
        self._http = http
        self._headers = {**headers, "A2A-Version": "1.0"}
        self._numbers = count()
        self._task = ""
        self.slowest = 0.0

    async def begin(self) -> None:
        """Begin what its later requests are about."""
        put = {CANVAS: {"op": "put", "artifactId": "mine", "name": "mine.md", "text": "All of it"}}
        answer = await self._send("POST", "/", rpc("SendMessage", {"message": self._message(put)}))
        self._task = answer.json()["result"]["task"]["id"]

    async def next_fault(self) -> str:
        """Make the next request; what is wrong with its answer, or nothing."""
        number = next(self._numbers)
        requests = self._requests()
        method, path, body = requests[number % len(requests)]
        try:
            answer = await self._send(method, path, body)
        except httpx.HTTPError as error:
            return f"the victim's {method} {path}: {type(error).__name__}"
        self.slowest = max(self.slowest, answer.elapsed.total_seconds())
        wrong = answer.status_code >= 400 or ('"error"' in answer.text and "jsonrpc" in answer.text)
        return f"the victim's {method} {path} {body}: {answer.status_code} {answer.text[:400]}" if wrong else ""

    def _requests(self) -> list[tuple[str, str, Any]]:
        place, task = f"/artifacts/{PLACE}", self._task
        put = {CANVAS: {"op": "put", "artifactId": "mine", "text": "More of it"}}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("SendMessage", {"message": self._message({})}),
            ("SendMessage", {"message": self._message(put)}),
            ("GetTask", {"id": task}),
            ("ListTasks", {"includeArtifacts": True, "historyLength": 2, "pageSize": 5}),
            ("ListTasks", {"contextId": PLACE, "pageSize": 5}),
            ("CreateTaskPushNotificationConfig", {"taskId": task, **HOOK}),
            ("ListTaskPushNotificationConfigs", {"taskId": task}),
            ("DeleteTaskPushNotificationConfig", {"taskId": task, "id": "hook"}),
        ]
        return [
            *(("POST", "/", rpc(method, params)) for method, params in calls),
            *(("GET", path, None) for path in ("/artifacts", "/artifacts?query=more", place, f"{place}/mine")),
            *(("GET", path, None) for path in (f"{place}/shares", f"{place}/mine/versions", "/auth/session")),
            ("POST", "/auth/signed-urls", {"path": f"{place}/events"}),
            ("PATCH", place, {"name": "Mine"}),
            ("GET", "/rest/tasks?pageSize=2", None),
        ]

    def _message(self, metadata: dict[str, Any]) -> dict[str, Any]:
        said = {"messageId": f"v{next(self._numbers)}-{id(self)}", "contextId": PLACE, "role": "ROLE_USER"}
        return said | {"parts": [{"text": "hi victim"}], "metadata": metadata}

    async def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        content = None if body is None else json.dumps(body)
        headers = self._headers | {"Content-Type": "application/json"}
        return await self._http.request(method, path, content=content, headers=headers)


def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
