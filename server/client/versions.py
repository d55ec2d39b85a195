"""`a2a-canvas artifacts`, `show`, `versions` and `diff`: what there is, and what became of it.

On a terminal what a server says is cleaned, and diffs have colours. What is no terminal gets contents and diffs byte
for byte, so that they can be kept, patched with and put back.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any, TextIO

from a2a_canvas.server.client import connection
from a2a_canvas.server.client.artifacts import Artifacts, NotServed, address, wire_of
from a2a_canvas.server.client.ending import ended
from a2a_canvas.server.client.fold import artifact_event
from a2a_canvas.server.client.output import exact, json_line
from a2a_canvas.server.client.send_options import Where
from a2a_canvas.server.client.shown import Failure, FinalReply, Line, Status, cells, clean, one_line, size_of
from a2a_canvas.server.client.terminal import Terminal
from a2a_canvas.server.protocols.artifacts.paths import (
    ArtifactList,
    ArtifactVersion,
    CurrentArtifact,
    VersionDiff,
    VersionList,
)

_BOLD, _RED, _GREEN, _CYAN, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
_NONE = "–"
_RETURN = "␍"
_NOT_ACCEPTABLE = 406


async def artifacts(where: Where, out: TextIO, err: TextIO) -> int:
    """Print the artifacts of a conversation. `where.artifact` is not used.

    Returns:
        The exit code, here and below: 0, 1 if it failed, 130 if it was interrupted.
    """

    async def run(served: Artifacts, terminal: Terminal) -> None:
        said = await served.read(ArtifactList(where.context))
        if where.json:
            json_line(out, said)
        else:
            _table(artifact_rows(said.get("artifacts", [])), "There are no artifacts yet.", out, terminal)

    return await _reading(where, out, err, run)


async def show(where: Where, version: int | None, out: TextIO, err: TextIO) -> int:
    """Print an artifact as it stands, or one version of it."""
    context, artifact = where.context, where.artifact
    resource = (
        CurrentArtifact(context, artifact) if version is None else ArtifactVersion(context, artifact, str(version))
    )

    async def run(served: Artifacts, terminal: Terminal) -> None:
        if where.json:
            json_line(out, await served.read(resource))
        elif out.isatty():
            terminal.show(artifact_event(wire_of(await served.read(resource)), append=False))
            terminal.show(FinalReply(""))
        else:
            exact(out, await served.raw(resource))

    return await _reading(where, out, err, run)


async def versions(where: Where, out: TextIO, err: TextIO) -> int:
    """Print all versions of an artifact, the current one marked."""

    async def run(served: Artifacts, terminal: Terminal) -> None:
        said = await served.read(VersionList(where.context, where.artifact))
        if where.json:
            json_line(out, said)
        else:
            _table(version_rows(said.get("versions", [])), "There is no version yet.", out, terminal)

    return await _reading(where, out, err, run)


async def diff(where: Where, version: int | None, since: int | None, out: TextIO, err: TextIO) -> int:
    """Print what a version changed.

    Args:
        version: the current one if it is None.
        since: the version to compare with, 0 for the empty text; what `version` was made of if it is None.
    """

    async def run(served: Artifacts, terminal: Terminal) -> None:
        number = await served.current(where.context, where.artifact) if version is None else version
        query = {} if since is None else {"from": since}
        said = await served.read(VersionDiff(where.context, where.artifact, str(number)), **query)
        text = str(said.get("diff", ""))
        if where.json:
            json_line(out, said)
        elif not text:
            same = f"Version {said.get('from')} and version {said.get('to')} have the same text."
            terminal.show(Line(same) if out.isatty() else Status(same))
        else:
            exact(out, coloured(clean(line_breaks_marked(text))) if out.isatty() else text)

    return await _reading(where, out, err, run)


async def _reading(
    where: Where, out: TextIO, err: TextIO, run: Callable[[Artifacts, Terminal], Awaitable[None]]
) -> int:
    terminal = Terminal(out, err, lambda: shutil.get_terminal_size().columns)

    async def read() -> int:
        async with connection.connected(where.url) as (http, card):
            await run(Artifacts(http, address(card, where.url)), terminal)
        return 0

    def failed(error: Exception) -> Failure:
        as_json = isinstance(error, NotServed) and error.status == _NOT_ACCEPTABLE
        return Failure(connection.explain(error, where.url), ("--json shows it all.",) if as_json else ())

    return await ended(read(), terminal, lambda: Failure("Interrupted"), failed)


def _table(rows: Sequence[tuple[str, ...]], nothing: str, out: TextIO, terminal: Terminal) -> None:
    if len(rows) > 1:
        exact(out, "".join(f"{line}\n" for line in aligned(rows)))
    else:
        terminal.show(Line(nothing))


# ------------------------------------------------------------------------ as text


def version_rows(said: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Versions as the rows of a table, the first its head."""
    rows = [
        (
            "*" if each.get("current") else "",
            str(each.get("number", "")),
            str(each.get("author", "")),
            str(each.get("parent") or _NONE),
            size_of(int(each.get("size", 0))),
            "incomplete" if each.get("incomplete") else "",
        )
        for each in said
    ]
    return [("", "version", "author", "made of", "size", ""), *rows]


def artifact_rows(said: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Artifacts as the rows of a table, the first its head."""
    rows = [
        (
            str(each.get("artifactId", "")),
            str(each.get("name", "")),
            f"{each.get('version') or _NONE} of {each.get('versions', 0)}",
            str(each.get("author", "")),
            size_of(int(each.get("size", 0))),
            "being written" if each.get("open") else "",
        )
        for each in said
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
    """A unified diff whose carriage returns can be seen, if only some of its lines end with one.

    Where all lines do there is nothing to be told apart, and what is missing is the last one's line break at most.
    """
    lines = diff.split("\n")
    ends = {line.endswith("\r") for line, below in pairwise(lines[2:]) if line[:1] in " +-" and below[:1] != "\\"}
    return "\n".join(re.sub("\r$", _RETURN, line) for line in lines) if len(ends) > 1 else diff


def coloured(diff: str) -> str:
    """A unified diff with the codes that give a terminal its colours."""
    head, rest = diff.split("\n")[:2], diff.split("\n")[2:]
    return "\n".join([*(f"{_BOLD}{line}{_PLAIN}" for line in head), *map(_coloured_line, rest)])


def _coloured_line(line: str) -> str:
    colour = {"@": _CYAN, "+": _GREEN, "-": _RED}.get(line[:1], "")
    return f"{colour}{line}{_PLAIN}" if colour else line
