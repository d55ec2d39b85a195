"""Shell completion of ids and names: what the server returns within a second, else nothing."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from a2a_canvas.server.client.commands.annotations import WAITING, read_review, split_artifact
from a2a_canvas.server.client.conversation.address import all_headers, server_url
from a2a_canvas.server.client.conversation.canvas_session import CanvasSession, open_canvas
from a2a_canvas.server.client.conversation.invocation import Invocation

SECONDS = 1.0
_PLAIN = re.compile(r"[\w.@%+=,/-]+")
"""Characters without a special meaning in a shell: names come from the server."""


def complete_value(incomplete: str, kind: str, params: Mapping[str, Any]) -> list[str]:
    """The ids and names that begin with `incomplete`.

    Args:
        kind: `task`, `context`, `task or context` or `artifact`; or `annotation`, `comment` or `suggestion`: the
            artifact, then the numbers of those that are open.
        params: the command's arguments typed so far.
    """
    with suppress(Exception):
        known = asyncio.run(asyncio.wait_for(_candidates(kind, params), SECONDS))
        return sorted({each for each in known if each.startswith(incomplete) and _PLAIN.fullmatch(each)})
    return []


async def _open_numbers(canvas: CanvasSession, kind: str, words: Sequence[str]) -> list[str]:
    """The artifacts, until one is typed; then the numbers of its open annotations that are not typed yet."""
    names = [str(each.get(field, "")) for each in canvas.artifacts for field in ("artifactId", "name")]
    if not words and len(canvas.artifacts) != 1:
        return names
    artifact, numbers = split_artifact(canvas, words)
    known = (await read_review(canvas, artifact)).annotations
    waiting = [each for each in known if each["state"] in WAITING and kind in ("annotation", each["kind"])]
    found = [str(each["number"]) for each in waiting if str(each["number"]) not in numbers]
    return found if words else [*names, *found]


async def _candidates(kind: str, params: Mapping[str, Any]) -> Iterable[str]:
    token = [params["token"]] if params.get("token") else []
    headers = all_headers((*params.get("headers", ()), *token))
    invocation = Invocation(server_url(params["url"]), headers, err=io.StringIO())
    if kind == "artifact":
        async with open_canvas(invocation, params.get("context")) as canvas:
            return [str(each.get(field, "")) for each in canvas.artifacts for field in ("artifactId", "name")]
    if kind in ("annotation", "comment", "suggestion"):
        async with open_canvas(invocation, params.get("context")) as canvas:
            return await _open_numbers(canvas, kind, params.get("words") or ())
    async with invocation.connect() as session:
        tasks = await session.tasks()
    ids = {"task": [task.id for task in tasks], "context": [task.context_id for task in tasks]}
    return [id_ for word in kind.split(" or ") for id_ in ids[word]]
