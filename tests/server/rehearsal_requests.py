"""What a request gets from the whole agent with the rehearsal model, and checks of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.agent.models.rehearsal import NOTICE
from tests.server.app_server import Served, asking, said
from tests.server.canvas_client import Doc


@dataclass(frozen=True)
class Outcome:
    """What a request got.

    Attributes:
        before, texts: the texts of the context by file name, before and after.
        written: the file names of the artifacts that the task wrote.
        said: the final words without the notice.
    """

    before: dict[str, str]
    texts: dict[str, str]
    written: list[str]
    said: str

    @property
    def new(self) -> str:
        """The text of the only artifact that was written."""
        return self.texts[self.written[0]] if len(self.written) == 1 else ""

    @property
    def old(self) -> str:
        return self.before.get(self.written[0], "") if len(self.written) == 1 else ""

    @property
    def unchanged(self) -> bool:
        return self.texts == self.before and not self.written


Check = Callable[[Outcome], object]


def words(text: str) -> int:
    return len(text.split())


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and line[0] != "#"]


def has(*patterns: str) -> Check:
    """One artifact was written, and all of these occur in it."""
    return lambda got: all(re.search(pattern, got.new, re.IGNORECASE) for pattern in patterns)


def one_sentence(*patterns: str) -> Check:
    """Nothing is changed, and that is said in one sentence."""
    return lambda got: (
        got.unchanged
        and len(re.findall(r"[.!?。](?:\s|$)", got.said)) == 1
        and all(re.search(pattern, got.said) for pattern in patterns)
    )


def keeps(got: Outcome) -> bool:
    """Whether the document begins as before."""
    return got.new.startswith(got.old.rstrip())


async def texts(doc: Doc) -> dict[str, str]:
    listed = (await doc.served.http.get(f"/artifacts/{doc.context}")).json()["artifacts"]
    found = {}
    for entry in listed:
        artifact = (await doc.served.http.get(f"/artifacts/{doc.context}/{entry['artifactId']}")).json()
        found[artifact["name"]] = "".join(part["text"] for part in artifact["parts"])
    return found


async def outcome(served: Served, request: str, earlier: list[str]) -> Outcome:
    doc = Doc(served, str(uuid4()))
    for text in earlier:
        await doc.run(asking(text, context=doc.context))
    before = await texts(doc) if earlier else {}
    task = await doc.run(asking(request, context=doc.context))
    assert task.status.state == pb.TASK_STATE_COMPLETED, task.status
    written = [artifact.name for artifact in task.artifacts]
    after = await texts(doc) if earlier or written else {}
    return Outcome(before, after, written, said(task.status).replace(NOTICE, "").strip())
