"""The artifacts of a conversation, read from an a2a-canvas server: `GET /artifacts/…`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import TransportProtocol
from google.protobuf.json_format import ParseDict, ParseError

from a2a_canvas.server.client.connection import CONNECT, SendError
from a2a_canvas.server.protocols.artifacts.paths import CurrentArtifact, Resource, build_path
from a2a_canvas.store.models import JsonValue

_TIMEOUT = httpx.Timeout(CONNECT, read=60)


class NotServed(SendError):
    """The server has no answer; the text is its own sentence, if it is one of ours.

    Args:
        status: of the HTTP answer.
    """

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


def address(card: pb.AgentCard, url: str) -> str:
    """Where an agent's artifacts are: where its JSON-RPC is, because that is where messages go, too; else at `url`."""
    of = (each.url for each in card.supported_interfaces if each.protocol_binding == TransportProtocol.JSONRPC)
    return next(of, url).rstrip("/")


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Reads from the server at `base`.

    All methods raise `SendError` if there is no answer, or none of an a2a-canvas server.
    """

    http: httpx.AsyncClient
    base: str

    async def read(self, resource: Resource, **query: JsonValue) -> dict[str, Any]:
        """What the server says of a resource."""
        body = await self._get(resource, {"Accept": "application/json"}, query)
        try:
            said = json.loads(body)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            raise _not_ours(self.base, "what it says is not JSON")
        return said

    async def raw(self, resource: Resource) -> bytes:
        """The bare content of an artifact or of a version."""
        return await self._get(resource, {"Accept": "*/*"}, {"raw": "1"})

    async def current(self, context: str, artifact: str) -> int:
        """The number of an artifact's current version."""
        said = await self.read(CurrentArtifact(context, artifact))
        return int(said.get("version", 0))

    async def _get(self, resource: Resource, headers: dict[str, str], query: dict[str, Any]) -> bytes:
        url = f"{self.base}/artifacts/{build_path(resource)}"
        try:
            answer = await self.http.get(url, params=query, headers=headers, timeout=_TIMEOUT, follow_redirects=True)
        except httpx.TimeoutException as error:
            raise SendError(f"No answer from {self.base} in time") from error
        except httpx.RequestError as error:
            raise SendError(f"The agent's card leads to {self.base}, where no server answers") from error
        if answer.status_code != httpx.codes.OK:
            raise _refused(answer, self.base)
        return answer.content


def text_of(said: dict[str, Any]) -> str:
    """The text of an artifact or a version; an artifact has at most one."""
    return "".join(part.text for part in wire_of(said).parts if part.HasField("text"))


def wire_of(said: dict[str, Any]) -> pb.Artifact:
    """An artifact or a version as A2A has it."""
    try:
        return ParseDict(said, pb.Artifact(), ignore_unknown_fields=True)
    except ParseError as error:
        raise SendError(f"The server's answer cannot be used: {error}") from error


def _refused(answer: httpx.Response, base: str) -> SendError:
    try:
        return NotServed(str(answer.json()["error"]["message"]), answer.status_code)
    except (ValueError, KeyError, TypeError):
        return _not_ours(base, f"HTTP {answer.status_code}")


def _not_ours(base: str, why: str) -> SendError:
    return SendError(f"The server at {base} has no artifacts to read: it is no a2a-canvas server ({why})")
