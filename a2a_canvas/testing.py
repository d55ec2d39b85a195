"""Test an agent without a provider: the model plays a script, everything else is as in `a2a-canvas serve`.

    from a2a_canvas.testing import agent

    with agent("my-agent", "my-agent/tests/script.yaml") as reef:
        answer = reef.send("write a poem")
        assert answer.tool_results == ("The poem has 8 words.",)

No port is opened, and nothing is stored. What a script may say is in docs/scripts.md.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from starlette.testclient import TestClient

from a2a_canvas.server.agent.model import ModelEvent, ModelRequest, ToolResult
from a2a_canvas.server.agent.models.script import ScriptedModel
from a2a_canvas.server.app import create_app
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.tools.functions.function_tool import ToolSource

__all__ = ["Answer", "TestedAgent", "agent"]

_URL = "http://127.0.0.1:8000"

_SERVER_SECONDS = 60
"""Seconds that an MCP server has to start: a machine that runs tests is busy."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a message led to.

    Attributes:
        state: that of the task: `completed`, `failed`, `rejected`; `input-required` if the agent asks.
        text: what the agent said at the end, or asks.
        artifacts: the texts of the artifacts that the task has changed, by id.
        tool_results: what the model read of the tools that it called, in order.
    """

    state: str
    text: str
    artifacts: Mapping[str, str]
    tool_results: tuple[str, ...]


class TestedAgent:
    """A conversation with an agent."""

    __test__ = False  # no class of tests, whatever its name

    def __init__(self, client: TestClient, model: _RecordedModel) -> None:
        self._client = client
        self._model = model
        self._context_id = str(uuid4())

    def send(self, text: str) -> Answer:
        """Say something, in the conversation; an answer if the agent asks."""
        seen = len(self._model.results)
        message = {
            "messageId": str(uuid4()),
            "contextId": self._context_id,
            "role": "ROLE_USER",
            "parts": [{"text": text}],
        }
        request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        answer = self._client.post("/", json=request, headers={"A2A-Version": "1.0"}).json()
        task = answer["result"]["task"]
        return Answer(
            state=task["status"]["state"].removeprefix("TASK_STATE_").lower().replace("_", "-"),
            text=_text(task["status"].get("message", {})),
            artifacts={each["artifactId"]: _text(each) for each in task.get("artifacts", ())},
            tool_results=tuple(self._model.results.values())[seen:],
        )


@contextmanager
def agent(folder: str | Path, script: str | Path, **settings: Any) -> Iterator[TestedAgent]:
    """The agent in `folder`, whose model plays `script`, while the block runs.

    Args:
        settings: more settings, such as `max_rounds=3`.

    Raises:
        Exception: the agent cannot be served; the message is that of `a2a-canvas serve`.
        RuntimeError: an MCP server is not there. `serve` would go on without it.
    """
    model = _RecordedModel(script)
    everybody = {"shared_token": None, "api_keys": (), "jwt_issuer": None}  # whatever the environment has
    given = {**everybody, "public_url": _URL, "database": "memory", "page": False, **settings}
    app = create_app(Settings(agent=Path(folder), **given), model)
    with TestClient(app, base_url=_URL) as client:
        assert client.portal
        client.portal.call(_await_servers, app.state.tool_sources)
        yield TestedAgent(client, model)


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

    def __init__(self, script: str | Path) -> None:
        super().__init__(script)
        self.results: dict[str, str] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        found = [each for message in request.messages for each in message.content if isinstance(each, ToolResult)]
        self.results |= {each.tool_use_id: each.content for each in found}
        async for event in super().stream(request):
            yield event


def _text(having_parts: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in having_parts.get("parts", ()))
