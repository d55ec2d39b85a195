"""Test an agent without a provider: the model plays a script, everything else is as in `a2a-canvas serve`.

    from a2a_canvas.testing import agent

    with agent("my-agent", "my-agent/tests/script.yaml") as reef:
        answer = reef.send("write a poem")
        assert answer.tool_results == ("The poem has 8 words.",)

No port is opened, and nothing is stored. What a script may say is in docs/scripts.md.
"""

from __future__ import annotations

import json
from asyncio import gather
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from mimetypes import guess_type
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from starlette.testclient import TestClient

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.agent.events import ToolFailed, ToolSucceeded, TurnEvent
from a2a_canvas.server.agent.loops.agent_function import AgentFunction, agent_function
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.model import ModelEvent, ModelRequest, NoModel, ToolResult
from a2a_canvas.server.agent.models.script import ScriptedModel
from a2a_canvas.server.app import create_app
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.server.tool_sources.agent_loop import load_loop
from a2a_canvas.store.ids import new_id
from a2a_canvas.tools.functions.function_tool import ToolSource

__all__ = ["Answer", "TestedAgent", "agent"]

_URL = "http://127.0.0.1:8000"
_CANVAS = "urn:a2a-canvas:canvas:v1"
_STATE = "TASK_STATE_"

_SERVER_SECONDS = 60
"""Seconds that an MCP server has to start: a machine that runs tests is busy."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a message led to.

    Attributes:
        state: that of the task: `completed`, `failed`, `rejected`, `canceled`; `input-required` if the agent asks;
            `submitted` or `working` after `begin`.
        text: what the agent said at the end, or asks.
        artifacts: the texts of the artifacts that the task has changed, by id.
        tool_results: the results of the tools that the agent called, in order, as clients see them; of those that a
            script called, what the model read.
        statuses: what clients saw the agent do until then, in order.
        files: the contents of the files that the task has made or changed, by name.
        task_id: the id of the task.
    """

    state: str
    text: str
    artifacts: Mapping[str, str]
    tool_results: tuple[str, ...]
    statuses: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    task_id: str = ""


class TestedAgent:
    """A conversation of one user with an agent.

    Attributes:
        http: a client of the application, with the user's key: `it.http.get("/artifacts")`.
        context_id: the id of the conversation.
    """

    __test__ = False  # no class of tests, whatever its name

    def __init__(
        self, client: TestClient, results: Mapping[str, str], keys: Mapping[str, str], context_id: str
    ) -> None:
        self.http = client
        self.context_id = context_id
        self._results = results
        self._keys = keys

    def send(self, text: str, files: Mapping[str, bytes] | None = None) -> Answer:
        """Say something, in the conversation; an answer if the agent asks. `files` are sent with it, by name."""
        return self._send([{"text": text}, *map(_file_part, (files or {}).items())])

    def begin(self, text: str) -> Answer:
        """Say something and do not wait for the end: `cancel` ends it."""
        return self._send([{"text": text}], configuration={"returnImmediately": True})

    def cancel(self, begun: Answer) -> Answer:
        """Cancel the task that `begin` has begun."""
        return self._answer(self._call("CancelTask", {"id": begun.task_id}))

    def edit(self, artifact_id: str, instruction: str, passage: str) -> Answer:
        """Ask for a change of a passage, as a user does who selects it.

        Raises:
            ValueError: the artifact does not contain the passage exactly once.
        """
        text = self.versions(artifact_id)[-1]
        if (found := text.count(passage)) != 1:
            raise ValueError(f"{artifact_id} contains the passage {found} times; it must be there once.")
        start = text.index(passage)
        place = {"start": start, "end": start + len(passage), "unit": "codepoint", "text": passage}
        return self._send([{"text": instruction}], op="edit", artifactId=artifact_id, selection=place)

    def undo(self, artifact_id: str) -> Answer:
        """Make the version before the current one current."""
        return self._send([{"text": "undo"}], op="undo", artifactId=artifact_id)

    def versions(self, artifact_id: str) -> tuple[str, ...]:
        """The texts of an artifact's versions, up to the current one, oldest first."""
        path = f"/artifacts/{self.context_id}/{artifact_id}/versions"
        listed = self.http.get(path).raise_for_status().json()["versions"]
        current = next(each["number"] for each in listed if each.get("current"))
        numbers = sorted(each["number"] for each in listed if each["number"] <= current)
        return tuple(_text(self.http.get(f"{path}/{each}").raise_for_status().json()) for each in numbers)

    def as_user(self, name: str, context_id: str = "") -> TestedAgent:
        """A conversation of another of `users`: a new one, or one that is shared with that user."""
        client = TestClient(self.http.app, base_url=_URL, headers=_credentials(self._keys[name]))
        client.portal = self.http.portal  # the same event loop
        return TestedAgent(client, self._results, self._keys, context_id or new_id())

    def _send(
        self, parts: Sequence[Mapping[str, Any]], configuration: Mapping[str, Any] | None = None, **operation: Any
    ) -> Answer:
        seen = len(self._results)
        message: dict[str, Any] = {
            "messageId": new_id(),
            "contextId": self.context_id,
            "role": "ROLE_USER",
            "parts": parts,
        }
        if operation:
            message["metadata"] = {_CANVAS: operation}
        if configuration:
            task = self._call("SendMessage", {"message": message, "configuration": configuration})["task"]
            return self._answer(task)
        events = self._events({"message": message})
        task_id = next(each["task"]["id"] for each in events if "task" in each)
        statuses = (each["statusUpdate"]["status"] for each in events if "statusUpdate" in each)
        labels = (_text(each.get("message", {})) for each in statuses if each["state"] == f"{_STATE}WORKING")
        answer = self._answer(self._call("GetTask", {"id": task_id}), tuple(self._results.values())[seen:])
        return replace(answer, statuses=tuple(filter(None, labels)))

    def _answer(self, task: Mapping[str, Any], tool_results: tuple[str, ...] = ()) -> Answer:
        artifacts = task.get("artifacts", ())
        parts = [part for each in artifacts for part in each.get("parts", ()) if "raw" in part]
        return Answer(
            state=task["status"]["state"].removeprefix(_STATE).lower().replace("_", "-"),
            text=_text(task["status"].get("message", {})),
            artifacts={each["artifactId"]: _text(each) for each in artifacts},
            tool_results=tool_results,
            files={part.get("filename", ""): b64decode(part["raw"]) for part in parts},
            task_id=task["id"],
        )

    def _events(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        answer = self._post("SendStreamingMessage", params)
        if "text/event-stream" not in answer.headers["content-type"]:
            raise RuntimeError(f"The server refused the message: {answer.json()['error']['message']}")
        lines = (line for line in answer.text.splitlines() if line.startswith("data:"))
        return [_result(json.loads(line.removeprefix("data:"))) for line in lines]

    def _call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return _result(self._post(method, params).json())

    def _post(self, method: str, params: Mapping[str, Any]) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.http.post("/", json=request, headers={"A2A-Version": "1.0"})


@contextmanager
def agent(
    folder: str | Path | None = None,
    script: str | Path | None = None,
    *,
    loop: Any = None,
    users: Sequence[str] = (),
    **settings: Any,
) -> Iterator[TestedAgent]:
    """The agent in `folder`, whose model plays `script`, while the block runs.

    Args:
        script: without one, the rehearsal model answers. With a loop of its own there is then no model, as in `serve`:
            edits need a function of the loop, or `model="rehearsal"`.
        loop: an agent's own loop, as `create_app` takes it; that of the folder if it is None.
        users: names of users, each of whom has a key; the conversation is the first one's. Without names, everybody
            is the same user.
        settings: more settings, such as `max_rounds=3`.

    Raises:
        Exception: the agent cannot be served; the message is that of `a2a-canvas serve`.
        RuntimeError: an MCP server is not there. `serve` would go on without it.
    """
    results: dict[str, str] = {}
    model = _RecordedModel(script, results) if script else None
    keys = {name: new_key(name) for name in users}
    everybody: dict[str, Any] = {
        "shared_token": None,
        "api_keys": (),
        "jwt_issuer": None,
    }  # whatever the environment has
    if keys:
        everybody["api_keys"] = ",".join(f"{name}={key}" for name, key in keys.items())
    given = {**everybody, "public_url": _URL, "database": "memory", "page": False, **settings}
    named = {} if model else {"model": "rehearsal"}
    chosen = Settings(agent=Path(folder) if folder else None, **{**named, **given})
    own = load_loop(chosen) if loop is None else agent_function(loop)
    llm = NoModel() if own and not model and "model" not in settings else model
    app = create_app(chosen, llm, loop=_recorded(own, results) if own else None)
    headers = _credentials(keys[users[0]]) if keys else {}
    with TestClient(app, base_url=_URL, headers=headers) as client:
        assert client.portal
        client.portal.call(_await_servers, app.state.tool_sources)
        yield TestedAgent(client, results, keys, new_id())


def _recorded(loop: AgentFunction, results: dict[str, str]) -> AgentFunction:
    """A loop that adds the results of its calls to `results` when clients see them."""

    async def run(turn: Turn) -> None:
        emit = turn.output.emit

        async def record(event: TurnEvent) -> None:
            match event:
                case ToolSucceeded(tool_use_id=call, content=result) | ToolFailed(tool_use_id=call, error=result):
                    results[call] = result
            await emit(event)

        turn.output.emit = record
        await loop.run(turn)

    return replace(loop, run=run)


def _credentials(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _file_part(file: tuple[str, bytes]) -> dict[str, str]:
    name, content = file
    media_type = guess_type(name)[0] or "application/octet-stream"
    return {"raw": b64encode(content).decode(), "filename": name, "mediaType": media_type}


def _result(answer: Mapping[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise RuntimeError(f"The server refused the request: {answer['error']['message']}")
    result: dict[str, Any] = answer["result"]
    return result


async def _await_servers(sources: Sequence[ToolSource]) -> None:
    servers = [source for source in sources if isinstance(source, _Server)]
    for server, reason in zip(
        servers, await gather(*(each.wait_first_try(_SERVER_SECONDS) for each in servers)), strict=True
    ):
        if reason:
            raise RuntimeError(f"The {server.name} is not there: {reason}.")


@runtime_checkable
class _Server(Protocol):
    """A tool source that is a program or service of its own, which may be slow to start."""

    name: str

    async def wait_first_try(self, within: float) -> str: ...


class _RecordedModel(ScriptedModel):
    """A scripted model that remembers the results of its calls."""

    def __init__(self, script: str | Path, results: dict[str, str]) -> None:
        super().__init__(script)
        self._results = results

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        found = [each for message in request.messages for each in message.content if isinstance(each, ToolResult)]
        self._results |= {each.tool_use_id: each.content for each in found}
        async for event in super().stream(request):
            yield event


def _text(having_parts: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in having_parts.get("parts", ()))
