"""`a2a-canvas artifacts`, `show`, `versions` and `diff`: read from an a2a-canvas server, `GET /artifacts/…`, and print.

On a terminal the server's text is cleaned, and diffs have colours. An output that is not a terminal gets contents and
diffs byte for byte, so that they can be stored, patched with and put back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TextIO

import httpx
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import TransportProtocol
from google.protobuf.json_format import ParseDict, ParseError

from a2a_canvas.server.client import connection
from a2a_canvas.server.client.display import (
    FailureNotice,
    FinalReply,
    PlainLine,
    StatusText,
    cells,
    clean,
    one_line,
    size_of,
)
from a2a_canvas.server.client.errors import ClientError
from a2a_canvas.server.client.exchange import exit_code
from a2a_canvas.server.client.fold import artifact_event
from a2a_canvas.server.client.invocation import Invocation
from a2a_canvas.server.client.operations import ArtifactTarget
from a2a_canvas.server.client.terminal import Terminal, exact, json_line
from a2a_canvas.server.wire import artifact_path, context_path

_TIMEOUT = httpx.Timeout(connection.CONNECT_SECONDS, read=60)
_BOLD, _RED, _GREEN, _CYAN, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
_NO_NUMBER = "–"
_CARRIAGE_RETURN = "␍"


# ---------------------------------------------------------------------------- the reader


class NotServed(ClientError):
    """The server refused to show an artifact; the text is its own sentence. `status`: of the HTTP answer."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


def address(card: pb.AgentCard, url: str) -> str:
    """Where an agent's artifacts are: at its JSON-RPC address, to which messages go, too; else at `url`."""
    of = (each.url for each in card.supported_interfaces if each.protocol_binding == TransportProtocol.JSONRPC)
    return next(of, connection.card_place(url)[0]).rstrip("/")


def resource_path(context: str, artifact: str = "", *below: str) -> str:
    """What follows `/artifacts/` for the artifacts of a context, for one artifact, or for something below it."""
    return "/".join((artifact_path(context, artifact) if artifact else context_path(context), *below))


@dataclass(frozen=True, slots=True)
class ArtifactReader:
    """Reads from the server at `base`.

    All methods raise `ClientError` if there is no answer, or the server is no a2a-canvas server.
    """

    http: httpx.AsyncClient
    base: str
    target: ArtifactTarget

    async def listing(self) -> dict[str, Any]:
        """The artifacts of the conversation."""
        return await self._read(resource_path(self.target.context), {})

    async def read(self, *below: str, **query: str | int) -> dict[str, Any]:
        """The artifact, or the resource below it: `versions`, `versions/3`, `versions/3/diff`."""
        return await self._read(resource_path(self.target.context, self.target.artifact, *below), query)

    async def raw(self, *below: str) -> bytes:
        """The bare content of the artifact or of a version."""
        path = resource_path(self.target.context, self.target.artifact, *below)
        return await self._get(path, {"Accept": "*/*"}, {"raw": "1"})

    async def _read(self, path: str, query: dict[str, str | int]) -> dict[str, Any]:
        body = await self._get(path, {"Accept": "application/json"}, query)
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise _not_ours(self.base, "what it says is not JSON")
        return answer

    async def _get(self, path: str, headers: dict[str, str], query: dict[str, Any]) -> bytes:
        url = f"{self.base}/artifacts/{path}"
        try:
            answer = await self.http.get(url, params=query, headers=headers, timeout=_TIMEOUT, follow_redirects=True)
        except httpx.TimeoutException as error:
            raise ClientError(f"No answer from {self.base} in time") from error
        except httpx.RequestError as error:
            raise ClientError(f"The agent's card leads to {self.base}, where no server answers") from error
        if answer.status_code != httpx.codes.OK:
            raise _refused(answer, self.base)
        return answer.content


def text_of(artifact: dict[str, Any]) -> str:
    """The text of an artifact or a version; an artifact has at most one."""
    return "".join(part.text for part in proto_of(artifact).parts if part.HasField("text"))


def proto_of(artifact: dict[str, Any]) -> pb.Artifact:
    """An artifact or a version as A2A's message."""
    try:
        return ParseDict(artifact, pb.Artifact(), ignore_unknown_fields=True)
    except ParseError as error:
        raise ClientError(f"The server's answer cannot be used: {error}") from error


def _refused(answer: httpx.Response, base: str) -> ClientError:
    try:
        return NotServed(str(answer.json()["error"]["message"]), answer.status_code)
    except (ValueError, KeyError, TypeError):
        return _not_ours(base, f"HTTP {answer.status_code}")


def _not_ours(base: str, why: str) -> ClientError:
    return ClientError(f"The server at {base} has no artifacts to read: it is no a2a-canvas server ({why})")


# --------------------------------------------------------------------------- the commands


async def artifacts(target: ArtifactTarget, out: TextIO, err: TextIO) -> int:
    """Print the artifacts of a conversation. `target.artifact` is not used.

    Returns:
        The exit code, here and below: 0, 1 if it failed, 130 if it was interrupted.
    """

    async def run(reader: ArtifactReader, terminal: Terminal) -> None:
        answer = await reader.listing()
        if target.json:
            json_line(out, answer)
        else:
            _table(artifact_rows(answer.get("artifacts", [])), "There are no artifacts yet.", out, terminal)

    return await _reading(target, out, err, run)


async def show(target: ArtifactTarget, version: int | None, out: TextIO, err: TextIO) -> int:
    """Print the current version of an artifact, or one of its versions."""
    below = () if version is None else ("versions", str(version))

    async def run(reader: ArtifactReader, terminal: Terminal) -> None:
        if target.json:
            json_line(out, await reader.read(*below))
        elif out.isatty():
            terminal.show(artifact_event(proto_of(await reader.read(*below)), append=False))
            terminal.show(FinalReply(""))
        else:
            exact(out, await reader.raw(*below))

    return await _reading(target, out, err, run)


async def versions(target: ArtifactTarget, out: TextIO, err: TextIO) -> int:
    """Print all versions of an artifact, the current one marked."""

    async def run(reader: ArtifactReader, terminal: Terminal) -> None:
        answer = await reader.read("versions")
        if target.json:
            json_line(out, answer)
        else:
            _table(version_rows(answer.get("versions", [])), "There is no version yet.", out, terminal)

    return await _reading(target, out, err, run)


async def diff(target: ArtifactTarget, version: int | None, since: int | None, out: TextIO, err: TextIO) -> int:
    """Print what a version changed.

    Args:
        version: None for the current one.
        since: the version to compare with, 0 for the empty text, None for the parent of `version`.
    """

    async def run(reader: ArtifactReader, terminal: Terminal) -> None:
        number = int((await reader.read()).get("version", 0)) if version is None else version
        query = {} if since is None else {"from": since}
        answer = await reader.read("versions", str(number), "diff", **query)
        text = str(answer.get("diff", ""))
        if target.json:
            json_line(out, answer)
        elif not text:
            same = f"Version {answer.get('from')} and version {answer.get('to')} have the same text."
            terminal.show(PlainLine(same) if out.isatty() else StatusText(same))
        else:
            exact(out, coloured(clean(line_breaks_marked(text))) if out.isatty() else text)

    return await _reading(target, out, err, run)


async def _reading(
    target: ArtifactTarget, out: TextIO, err: TextIO, run: Callable[[ArtifactReader, Terminal], Awaitable[None]]
) -> int:
    terminal = Terminal(out, err)

    async def read() -> int:
        async with connection.connected(target.url, target.headers) as (http, card):
            await run(ArtifactReader(http, address(card, target.url), target), terminal)
        return 0

    def failed(error: Exception) -> FailureNotice:
        as_json = isinstance(error, NotServed) and error.status == httpx.codes.NOT_ACCEPTABLE
        return FailureNotice(connection.explain(error, target.url), ("--json shows it all.",) if as_json else ())

    return await exit_code(read(), terminal, lambda: FailureNotice("Interrupted"), failed)


def _table(rows: Sequence[tuple[str, ...]], nothing: str, out: TextIO, terminal: Terminal) -> None:
    if len(rows) > 1:
        exact(out, "".join(f"{line}\n" for line in aligned(rows)))
    else:
        terminal.show(PlainLine(nothing))


# ------------------------------------------------------------------------ as text


def version_rows(versions: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Versions as the rows of a table, after its header."""
    rows = [
        (
            "*" if each.get("current") else "",
            str(each.get("number", "")),
            str(each.get("author", "")),
            str(each.get("parent") or _NO_NUMBER),
            size_of(int(each.get("size", 0))),
            "incomplete" if each.get("incomplete") else "",
        )
        for each in versions
    ]
    return [("", "version", "author", "made of", "size", ""), *rows]


def artifact_rows(artifacts: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Artifacts as the rows of a table, after its header."""
    rows = [
        (
            str(each.get("artifactId", "")),
            str(each.get("name", "")),
            f"{each.get('version') or _NO_NUMBER} of {each.get('versions', 0)}",
            str(each.get("author", "")),
            size_of(int(each.get("size", 0))),
            "being written" if each.get("open") else "",
        )
        for each in artifacts
    ]
    return [("artifact", "name", "version", "author", "size", ""), *rows]


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The lines of a table, fit for a terminal."""
    clean_rows = [tuple(map(one_line, row)) for row in rows]
    widths = [max(map(cells, column)) for column in zip(*clean_rows, strict=True)]
    return ["  ".join(map(_padded, row, widths)).rstrip() for row in clean_rows]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def line_breaks_marked(diff: str) -> str:
    """A unified diff with visible carriage returns, if only some of its lines end with one.

    If all lines do, they need no mark.
    """
    lines = diff.split("\n")
    ends = {line.endswith("\r") for line, below in pairwise(lines[2:]) if line[:1] in " +-" and below[:1] != "\\"}
    return "\n".join(re.sub("\r$", _CARRIAGE_RETURN, line) for line in lines) if len(ends) > 1 else diff


def coloured(diff: str) -> str:
    """A unified diff with the escape codes of a terminal's colours."""
    head, rest = diff.split("\n")[:2], diff.split("\n")[2:]
    return "\n".join([*(f"{_BOLD}{line}{_PLAIN}" for line in head), *map(_coloured_line, rest)])


def _coloured_line(line: str) -> str:
    colour = {"@": _CYAN, "+": _GREEN, "-": _RED}.get(line[:1], "")
    return f"{colour}{line}{_PLAIN}" if colour else line


# --------------------------------------------------------------------- as they are typed


def target_of(invocation: Invocation, context: str, artifact: str = "", *, thinking: bool = False) -> ArtifactTarget:
    return ArtifactTarget(
        context, artifact, invocation.url, invocation.json, invocation.program, thinking, invocation.headers
    )


async def run_artifacts(invocation: Invocation, context: str) -> int:
    return await artifacts(target_of(invocation, context), invocation.out, invocation.err)


async def run_show(invocation: Invocation, artifact: str, context: str, version: int | None) -> int:
    return await show(target_of(invocation, context, artifact), version, invocation.out, invocation.err)


async def run_versions(invocation: Invocation, artifact: str, context: str) -> int:
    return await versions(target_of(invocation, context, artifact), invocation.out, invocation.err)


async def run_diff(invocation: Invocation, artifact: str, version: int | None, context: str, since: int | None) -> int:
    return await diff(target_of(invocation, context, artifact), version, since, invocation.out, invocation.err)
