"""`a2a-canvas artifacts`, `show`, `versions` and `diff`: print the answers of a server's `GET /artifacts/…`.

On a terminal the server's text is sanitised, Markdown is styled, and diffs are coloured. Any other output gets contents
and diffs byte for byte, so that they can be stored, applied as patches and put back.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from rich.text import Text

from a2a_canvas.server.client.conversation.canvas_session import NotServed, open_canvas, proto_of
from a2a_canvas.server.client.conversation.errors import CannotBeDone, ClientError
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.client.screen.display import clean, local_time, size_of

_NONE = "–"
_CARRIAGE_RETURN = "␍"
_STYLES = {"@": "cyan", "+": "green", "-": "red", " ": ""}


async def artifacts(invocation: Invocation, context: str | None) -> None:
    """Print the artifacts of a conversation."""
    async with open_canvas(invocation, context) as canvas:
        if invocation.json:
            invocation.print_json({"contextId": canvas.context, "artifacts": canvas.artifacts})
        else:
            invocation.table(ARTIFACT_COLUMNS, map(artifact_row, canvas.artifacts), "There are no artifacts yet.")


async def show(invocation: Invocation, artifact: str | None, context: str | None, version: int | None) -> None:
    """Print the current version of an artifact, or one of its versions."""
    below = () if version is None else ("versions", str(version))
    async with open_canvas(invocation, context) as canvas:
        id_ = canvas.find(artifact)
        try:
            if invocation.json:
                invocation.print_json(await canvas.read(id_, *below))
            elif invocation.console.is_terminal:
                invocation.screen.artifact(proto_of(await canvas.read(id_, *below)))
            else:
                invocation.print_exact(await canvas.raw(id_, *below))
        except NotServed as error:
            if error.status == 406:
                raise ClientError(str(error), "--json shows it all") from None
            raise


async def versions(invocation: Invocation, artifact: str | None, context: str | None) -> None:
    """Print all versions of an artifact, the current one marked."""
    async with open_canvas(invocation, context) as canvas:
        answer = await canvas.read(canvas.find(artifact), "versions")
        if invocation.json:
            invocation.print_json(answer)
        else:
            invocation.table(VERSION_COLUMNS, map(version_row, answer["versions"]), "There is no version yet.")


async def diff(invocation: Invocation, artifact: str | None, numbers: tuple[int, ...], context: str | None) -> None:
    """Print the changes of the current version, or of a given one, or the difference of two."""
    async with open_canvas(invocation, context) as canvas:
        if artifact and artifact.isdecimal() and not canvas.has(artifact):
            numbers, artifact = (int(artifact), *numbers), None
        if len(numbers) > 2:
            raise CannotBeDone("diff takes at most two versions")
        id_ = canvas.find(artifact)
        new = numbers[-1] if numbers else int((await canvas.read(id_)).get("version", 0))
        query = {"from": numbers[0]} if len(numbers) == 2 else {}
        answer = await canvas.read(id_, "versions", str(new), "diff", **query)
        if invocation.json:
            invocation.print_json(answer)
        elif text := str(answer.get("diff", "")):
            show_diff(invocation, text)
        else:
            invocation.tell(f"Version {answer.get('from')} and version {answer.get('to')} have the same text.")


def show_diff(invocation: Invocation, diff: str, *, head: int = 2) -> None:
    """Print a unified diff, coloured on a terminal. `head`: lines before the changes."""
    if not invocation.console.is_terminal:
        invocation.print_exact(diff)
        return
    lines = clean(mark_line_breaks(diff)).splitlines()
    styled = [(line, "bold") for line in lines[:head]] + [(line, _STYLES.get(line[:1], "dim")) for line in lines[head:]]
    for line, style in styled:
        invocation.console.print(Text(line, style), soft_wrap=True)


# ------------------------------------------------------------------------ as text

VERSION_COLUMNS = ("", "version", "made", "author", "of", "size", "request")
ARTIFACT_COLUMNS = ("artifact", "name", "version", "author", "size", "")


def version_row(version: dict[str, Any]) -> tuple[str, ...]:
    """A version as a row of a table."""
    note = " (incomplete)" if version.get("incomplete") else " (removed)" if version.get("pruned") else ""
    return (
        "*" if version.get("current") else "",
        str(version.get("number", "")),
        local_time(str(version.get("timestamp", ""))),
        format_author(version),
        str(version.get("parent") or _NONE),
        size_of(int(version.get("size", 0))),
        str(version.get("request", "")) + note,
    )


def format_author(version: dict[str, Any]) -> str:
    """The maker of a version: the user, or the agent and the user it worked for, if named."""
    author, by = str(version.get("author", "")), str(version.get("by", ""))
    return author if not by else by if author == "user" else f"{author} for {by}"


def artifact_row(artifact: dict[str, Any]) -> tuple[str, ...]:
    """An artifact as a row of a table."""
    return (
        str(artifact.get("artifactId", "")),
        str(artifact.get("name", "")),
        f"{artifact.get('version') or _NONE} of {artifact.get('versions', 0)}",
        str(artifact.get("author", "")),
        size_of(int(artifact.get("size", 0))),
        "being written" if artifact.get("open") else "",
    )


def mark_line_breaks(diff: str) -> str:
    """A unified diff with visible carriage returns, if only some of its lines end in one.

    If all lines do, they need no mark.
    """
    lines = diff.split("\n")
    ends = {line.endswith("\r") for line, below in pairwise(lines[2:]) if line[:1] in " +-" and below[:1] != "\\"}
    return "\n".join(re.sub("\r$", _CARRIAGE_RETURN, line) for line in lines) if len(ends) > 1 else diff
