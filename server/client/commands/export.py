"""`a2a-canvas export --git`: the history of a conversation as a git repository, which a later run continues.

Rule: commits are made beside the branch, which `git merge --ff-only` then moves. So git itself keeps what is not
      committed in the folder, and a run that fails leaves the repository as it was.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.client.commands.git_commits import (
    ExportedHistory,
    VersionShown,
    commit_bytes,
    commit_message,
    pruned,
    read_history,
    steps,
)
from a2a_canvas.server.client.conversation.canvas_session import CanvasSession, open_canvas, proto_of
from a2a_canvas.server.client.conversation.errors import CannotBeDone, ClientError
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.client.screen.display import one_line
from a2a_canvas.server.wire import whole_numbers

BRANCH = "refs/a2a-canvas/export"
"""Where the commits of a run are made."""


async def export(invocation: Invocation, artifact: str | None, folder: str, context: str | None) -> None:
    """Write the history of a conversation, or of one artifact, into a git repository."""
    repository = _Repository(folder)
    repository.check()
    async with open_canvas(invocation, context) as canvas:
        ids = [canvas.find(artifact)] if artifact else [str(each["artifactId"]) for each in canvas.artifacts]
        versions = {each: (await canvas.read(each, "versions"))["versions"] for each in ids}
        await repository.prepare()
        history = read_history(canvas.context, await repository.messages(), ids[0] if artifact else None)
        commits = list(steps(history, versions))
        if commits:
            await repository.add(_Export(canvas, history, versions).stream(commits, await repository.head()))
    removed = sum(pruned(each) for all_ in versions.values() for each in all_)
    lost = f" The content of {removed} versions was deleted on the server; they have none." if removed else ""
    invocation.say(f"{folder} has {len(commits)} new commits.{lost}")


@dataclass
class _Export:
    """Makes commits of versions.

    Attributes:
        versions: of each artifact, as the server lists them.
    """

    canvas: CanvasSession
    history: ExportedHistory
    versions: dict[str, list[dict[str, Any]]]

    async def stream(self, commits: list[VersionShown], head: str) -> AsyncIterator[bytes]:
        """The input of `git fast-import`: these commits, on top of `head`, if there is one."""
        for shown in commits:
            yield await self._commit(shown, head)
            head = ""

    async def _commit(self, shown: VersionShown, onto: str) -> bytes:
        history, artifact = self.history, shown.artifact
        listed = next((each for each in self.versions.get(artifact, ()) if each["number"] == shown.number), {})
        old, files, file = history.files.get(artifact, ""), dict[str, bytes](), ""
        name, who, at = old, "user", datetime.now(UTC).isoformat()  # of a removal, of which the server says nothing
        if shown.number:
            by, at = str(listed.get("by", "")), str(listed.get("timestamp", ""))
            who = (by or "user") if listed.get("author") == "user" else self.canvas.session.card.name
            version = await self.canvas.read(artifact, "versions", str(shown.number))
            name = str(version.get("name") or artifact)
            file = history.unused_file(artifact, _safe(name))
            files = _files(proto_of(version), file)
        history.files[artifact] = file
        message = commit_message(self.canvas.context, shown, one_line(name), file, listed)
        return commit_bytes(BRANCH, who, at, message, old, files, onto)


def _files(artifact: pb.Artifact, file: str) -> dict[str, bytes]:
    """The parts of a version as files: one part is `file`, several are in a folder of that name."""
    if len(artifact.parts) == 1:
        return {file: _content(artifact.parts[0])}
    names = (f"{number}-{_safe(part.filename or 'part')}" for number, part in enumerate(artifact.parts, 1))
    return {f"{file}/{name}": _content(part) for name, part in zip(names, artifact.parts, strict=True)}


def _content(part: pb.Part) -> bytes:
    match part.WhichOneof("content"):
        case "text":
            return part.text.encode()
        case "raw":
            return part.raw
        case "url":
            return f"{part.url}\n".encode()
        case _:
            data = whole_numbers(MessageToDict(part.data))
            return json.dumps(data, ensure_ascii=False, indent=2).encode() + b"\n"


def _safe(name: str) -> str:
    """A name of a server as one piece of a path, which is not hidden."""
    return one_line(PurePath(name).name).lstrip(".-") or "artifact"


@dataclass(frozen=True)
class _Repository:
    folder: str

    def check(self) -> None:
        """Raises `CannotBeDone` if the folder cannot become or be a repository."""
        if shutil.which("git") is None:
            raise CannotBeDone("git is not installed (Debian: apt-get install git)")
        path = Path(self.folder)
        if not self._exists() and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise CannotBeDone(f"{self.folder} is no git repository, and not empty")

    def _exists(self) -> bool:
        return (Path(self.folder) / ".git").exists()

    async def prepare(self) -> None:
        """Make the repository, unless it is there."""
        if not self._exists():
            await _git("init", "--quiet", self.folder)
            await self._run("symbolic-ref", "HEAD", "refs/heads/main")

    async def head(self) -> str:
        """The last commit; empty if there is none."""
        found = await self._run("rev-parse", "--quiet", "--verify", "HEAD", may_fail=True)
        return found.decode().strip()

    async def messages(self) -> list[str]:
        """The messages of all commits of the branch, the oldest first."""
        if not await self.head():
            return []
        said = await self._run("log", "--reverse", "-z", "--format=%B", "--encoding=UTF-8")
        return said.decode(errors="replace").split("\0")

    async def add(self, commits: AsyncIterator[bytes]) -> None:
        """Add commits to the branch, and check them out."""
        await self._run("fast-import", "--quiet", "--force", "--date-format=raw", source=commits)
        try:
            await self._run("merge", "--ff-only", "--quiet", BRANCH)
        finally:
            await self._run("update-ref", "-d", BRANCH)

    async def _run(self, *arguments: str, source: AsyncIterator[bytes] | None = None, may_fail: bool = False) -> bytes:
        return await _git("-C", self.folder, *arguments, source=source, may_fail=may_fail)


async def _git(*arguments: str, source: AsyncIterator[bytes] | None = None, may_fail: bool = False) -> bytes:
    """What a git command prints; `source` is its input.

    Raises:
        ClientError: it fails.
    """
    process = await asyncio.create_subprocess_exec("git", *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        assert process.stdin
        async for piece in source or _nothing():
            process.stdin.write(piece)
            await process.stdin.drain()
        out, err = await process.communicate(b"")  # which closes its input
    except ConnectionError:
        out, err = await process.communicate()
    except BaseException:
        process.kill()
        await process.communicate()
        raise
    if process.returncode and not may_fail:
        raise ClientError(f"git failed: {one_line(err.decode(errors='replace'))}")
    return out


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield
