"""The artifacts of a conversation on an a2a-canvas server: read by `GET /artifacts/…`, changed by operations over A2A.

Rule 1: an operation is sent only to a server whose card lists `urn:a2a-canvas:canvas:v1`. Any other agent would read
        it as a request in words.
Rule 2: the version that an operation made is read from its own task: another user may have made the current one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import httpx
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import ParseDict, ParseError

from a2a_canvas.server.client.conversation.connection import CONNECT_SECONDS, Session, error_sentence
from a2a_canvas.server.client.conversation.errors import CannotBeDone, ClientError, describe_unreachable
from a2a_canvas.server.client.conversation.exchange import Take, converse, new_message
from a2a_canvas.server.client.conversation.invocation import Invocation, suggest_last_server
from a2a_canvas.server.client.conversation.names import UnknownName, format_names, resolve
from a2a_canvas.server.client.conversation.state_file import last_context, last_server
from a2a_canvas.server.client.screen.display import fit, one_line, short
from a2a_canvas.server.client.screen.fold import ENDED_BADLY, SeenTask, extension_data
from a2a_canvas.server.wire import CANVAS, TURN, artifact_path, context_path

_TITLE = 40
"""Cells of a conversation's title in a message."""
_TIMEOUT = httpx.Timeout(CONNECT_SECONDS, read=60)
_PAGE = 100
"""Artifacts on a page of a search."""


class NotServed(ClientError):
    """The server refused a read, with its own sentence as the text. `status`: of the HTTP answer."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class OperationFailed(ClientError):
    """An operation failed and changed nothing.

    Attributes:
        version: the current version, if a concurrent change made the operation impossible; else 0.
        busy: a task is writing the artifact.
    """

    def __init__(self, sentence: str, version: int, busy: bool) -> None:
        super().__init__(sentence)
        self.version, self.busy = version, busy


@dataclass(frozen=True, slots=True)
class OperationResult:
    """What an operation has done.

    Attributes:
        said: the server's sentence.
        version: the version that it made current (rule 2); 0 for none.
        data: all that the server says of the outcome.
    """

    said: str
    version: int
    data: dict[str, Any]


class NoSuchArtifact(UnknownName):
    """The conversation has no such artifact."""


@asynccontextmanager
async def open_canvas(
    invocation: Invocation, typed: str | None, *, may_begin: bool = False
) -> AsyncIterator[CanvasSession]:
    """The artifacts of a conversation: the one typed, else the last one.

    Args:
        may_begin: the first operation may start a new conversation.

    Raises:
        CannotBeDone: it is not clear which conversation is meant.
    """
    context = typed or last_context(invocation.url)
    async with invocation.connect() as session:
        canvas = CanvasSession(invocation, session, context)
        if not context and not may_begin:
            how = f"To list them: {invocation.line('contexts')}"
            raise CannotBeDone("Which conversation? Use --context ID", how, *suggest_last_server(last_server()))
        if context and not typed:
            invocation.note(f"Conversation {context}, the last one")
        await canvas.look(may_begin=may_begin)
        try:
            yield canvas
        except NoSuchArtifact as error:
            raise _artifact_not_found(error, await session.list_contexts(), canvas, is_last=not typed) from None


@dataclass
class CanvasSession:
    """The artifacts of one conversation.

    Attributes:
        context: its id; empty until the first operation begins it.
        artifacts: what `GET /artifacts/{context}` says of each artifact.
        agents_suggest: whether agents suggest instead of change.
    """

    invocation: Invocation
    session: Session
    context: str
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    agents_suggest: bool = False

    @property
    def base(self) -> str:
        """The base address of the artifacts."""
        return self.session.base

    # ------------------------------------------------------------------------ reading

    def find(self, typed: str | None) -> str:
        """The id of the artifact that the user typed; without one, of the only artifact.

        Raises:
            NoSuchArtifact: there is none of that name.
            CannotBeDone: there is none, or there are several.
        """
        known = {str(each["artifactId"]): str(each.get("name", "")) for each in self.artifacts}
        if typed is None and len(known) != 1:
            several = f"Which artifact? Type one of: {format_names([*known], known)}"
            raise CannotBeDone(several if known else "The conversation has no artifacts yet")
        if typed is None:
            return next(iter(known))
        try:
            return resolve(typed, known, "artifact")
        except UnknownName as error:
            raise NoSuchArtifact(error.typed, "artifact", error.others) from None

    def has(self, typed: str) -> bool:
        """Whether an artifact has exactly this id or name."""
        return any(typed in (each["artifactId"], each.get("name")) for each in self.artifacts)

    def version(self, artifact: str) -> int:
        """The artifact's current version when it was last read; 0 if there is none."""
        return int(self._entry(artifact).get("version", 0))

    def file_name(self, artifact: str) -> str:
        """A file name for the artifact. Its own name comes from the server: it names no folder and no hidden file."""
        return one_line(PurePath(self.title(artifact)).name).lstrip(".-") or "artifact"

    def title(self, artifact: str) -> str:
        """Its name, else its id."""
        return str(self._entry(artifact).get("name") or artifact)

    def _entry(self, artifact: str) -> dict[str, Any]:
        return next((each for each in self.artifacts if each["artifactId"] == artifact), {})

    async def read(self, artifact: str, *below: str, **query: str | int) -> dict[str, Any]:
        """The artifact, or the resource below it: `versions`, `versions/3`, `versions/3/diff`."""
        return await self._json(resource_path(self.context, artifact, *below), query)

    async def read_complete(self, artifact: str, *below: str) -> dict[str, Any]:
        """The same, unless a task is writing the artifact."""
        seen = await self.read(artifact, *below)
        if seen.get("open"):
            raise ClientError(f"{artifact} is being written. Try again when that task has ended")
        return seen

    async def raw(self, artifact: str, *below: str) -> bytes:
        """The bare content of the artifact or of a version."""
        return await self._get(resource_path(self.context, artifact, *below), {"Accept": "*/*"}, {"raw": "1"})

    async def document(self, artifact: str, form: str, *below: str) -> bytes:
        """The artifact or a version in another format."""
        return await self._get(resource_path(self.context, artifact, *below), {"Accept": "*/*"}, {"format": form})

    async def critic(self, artifact: str) -> str:
        """The text with its suggestions and comments as CriticMarkup."""
        path = resource_path(self.context, artifact)
        return (await self._get(path, {"Accept": "*/*"}, {"format": "critic"})).decode()

    async def search(self, text: str, limit: int) -> list[dict[str, Any]]:
        """The artifacts of all conversations with lines that have all words of a text, as the server lists them."""
        found: list[dict[str, Any]] = []
        token = ""
        while len(found) < limit:
            size = min(limit - len(found), _PAGE)
            page = await self._json("", {"text": text, "pageSize": size, "pageToken": token})
            found += page.get("found", [])
            if not (token := page.get("nextPageToken", "")):
                break
        return found

    async def look(self, *, may_begin: bool = False) -> bool:
        """Read the list of artifacts; an unknown context may be the beginning of a known id."""
        try:
            if self.context:
                await self._read_listing()
        except NotServed as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise
            known = await self.session.contexts()
            if not (may_begin and not any(each.startswith(self.context) for each in known)):
                self.context = resolve(self.context, known, "context")
                await self._read_listing()
        return True

    async def _read_listing(self) -> None:
        listing = await self._json(resource_path(self.context), {})
        self.artifacts = [each for each in listing.get("artifacts", []) if isinstance(each, dict)]
        self.agents_suggest = listing.get("agentsSuggest") is True

    async def _json(self, path: str, query: dict[str, Any]) -> dict[str, Any]:
        return self._object(await self._get(path, {"Accept": "application/json"}, query))

    def _object(self, body: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise _foreign_server_error(self.base, "what it says is not JSON")
        return answer

    async def _get(self, path: str, headers: dict[str, str], query: dict[str, Any]) -> bytes:
        return await self._request("GET", path, headers=headers, params=query)

    async def _request(self, method: str, path: str, **how: Any) -> bytes:
        url = f"{self.base}/artifacts/{path}"
        try:
            answer = await self.session.http.request(method, url, timeout=_TIMEOUT, follow_redirects=True, **how)
        except httpx.TimeoutException as error:
            raise ClientError(f"No answer from {self.base} in time") from error
        except httpx.RequestError as error:
            raise ClientError(describe_unreachable(self.base, error)) from error
        if answer.status_code != httpx.codes.OK:
            raise _refusal(answer, self.base)
        return answer.content

    # ----------------------------------------------------------------------- changing

    async def change_context(self, **fields: Any) -> dict[str, Any]:
        """Change fields of the conversation itself. Returns what the server lists of it."""
        return self._object(await self._request("PATCH", resource_path(self.context), json=fields))

    async def operate(
        self, artifact: str, request: str, fields: dict[str, Any], take: Take = lambda *_: None
    ) -> OperationResult:
        """Run an operation.

        Args:
            request: the text of the message.
            fields: the operation (docs/canvas.md); None is left out.

        Raises:
            OperationFailed: it failed and changed nothing.
        """
        if not self.session.offers(CANVAS):
            raise ClientError(
                f"The agent at {self.invocation.url} does not support edits: its card does not list {CANVAS}"
            )
        data: dict[str, Any] = {}

        def fold(response: pb.StreamResponse, seen: SeenTask) -> None:
            nonlocal data
            data = _version_data(response, artifact) or data
            if not self.invocation.json:
                take(response, seen)

        message = new_message(request, self.context)
        given = {name: value for name, value in fields.items() if value is not None}
        message.metadata.update({CANVAS: {"artifactId": artifact, **given}})
        seen = await converse(self.invocation, self.session, message, (TURN, CANVAS), fold)
        version = int(data.get("artifactVersion", 0))
        if seen.state in ENDED_BADLY:
            raise OperationFailed(seen.message or f"{ENDED_BADLY[seen.state]}.", version, data.get("busy") is True)
        self.context = seen.context_id
        return OperationResult(seen.message, version, data)

    async def operate_and_say(self, artifact: str, request: str, **fields: Any) -> int:
        """Run an operation and print the server's answer. Returns the version that it made current."""
        done = await self.operate(artifact, request, fields)
        if not self.invocation.json:
            self.invocation.say(done.said)
        return done.version

    async def put(
        self, artifact: str, text: str, base: int | None, *, name: str | None = None, critic: bool = False
    ) -> int:
        """Make `text` the artifact's text, merged with the changes since `base`; or make an artifact of this name.

        Args:
            critic: the text has suggestions and comments as CriticMarkup; it is not merged.

        Raises:
            OperationFailed: someone else changed the same place.
        """
        how = {"format": "critic"} if critic else {"merge": True if base else None}
        fields = {"text": text, "baseVersion": base or None, "name": name, **how}
        return await self.operate_and_say(artifact, f"Save {name or self.title(artifact)}", op="put", **fields)


def _version_data(response: pb.StreamResponse, artifact: str) -> dict[str, Any]:
    """What a response says about the new version of the artifact, or why there is none."""
    if response.HasField("artifact_update"):
        return extension_data(response.artifact_update.metadata, CANVAS)
    status = response.task.status if response.HasField("task") else response.status_update.status
    versions = extension_data(response.task.metadata, CANVAS).get("artifacts", {})
    return extension_data(status.message.metadata, CANVAS) or versions.get(artifact, {})


def _artifact_not_found(
    error: NoSuchArtifact, contexts: list[dict[str, Any]], canvas: CanvasSession, *, is_last: bool
) -> CannotBeDone:
    """The error with the conversation that was searched and, if there is one, the newest that has such an artifact."""
    known = {str(each["contextId"]): each for each in contexts}
    searched = _describe_context(canvas.context, known)
    where = f"the last conversation ({searched})" if is_last else f"conversation {searched}"
    text = f"There is no artifact {error.typed!r} in {where}{error.others}"
    there = next((each for each, said in known.items() if _lists(said, error.typed)), "")
    if not there:
        others = f"For another conversation use --context. To list them: {canvas.invocation.line('contexts')}"
        return CannotBeDone(text, others)
    return CannotBeDone(text, f"It is in conversation {_describe_context(there, known)}. Add: --context {short(there)}")


def _describe_context(context: str, known: dict[str, dict[str, Any]]) -> str:
    said = known.get(context, {})
    request = fit(one_line(str(said.get("name") or said.get("request") or "")), _TITLE)
    return f'{short(context)}, "{request}"' if request else short(context)


def _lists(context: dict[str, Any], artifact: str) -> bool:
    listed = context.get("artifacts")
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return any(artifact in (each.get("artifactId"), each.get("name")) for each in found)


def resource_path(context: str, artifact: str = "", *below: str) -> str:
    """The path below `/artifacts/` of a context, of an artifact, or of a resource below it."""
    return "/".join((artifact_path(context, artifact) if artifact else context_path(context), *below))


def text_of(artifact: dict[str, Any]) -> str:
    """The text of an artifact or a version; an artifact has at most one."""
    return "".join(part.text for part in proto_of(artifact).parts if part.HasField("text"))


def proto_of(artifact: dict[str, Any]) -> pb.Artifact:
    """An artifact or a version as A2A's message."""
    try:
        return ParseDict(artifact, pb.Artifact(), ignore_unknown_fields=True)
    except ParseError as error:
        raise ClientError(f"The server's answer cannot be used: {error}") from error


def _refusal(answer: httpx.Response, base: str) -> ClientError:
    if sentence := error_sentence(answer):
        return NotServed(sentence, answer.status_code)
    return _foreign_server_error(base, f"HTTP {answer.status_code}")


def _foreign_server_error(base: str, why: str) -> ClientError:
    return ClientError(f"The server at {base} has no artifacts to read: it is not an a2a-canvas server ({why})")
