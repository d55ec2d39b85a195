"""What clients have of a context, folded from the events that each of them gets. Pure.

Rule 1: artifacts as A2A says: replace, or extend the text. Annotations as docs/annotations.md says: they are read when
        a stream begins, and then each event replaces those that it names.
Rule 2: a client knows `place` and `stale` by reading alone; and an accepted suggestion is open again while the version
        that it made is not on the line of the current one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from a2a_canvas.server.wire import CANVAS
from bench.hands.ledger import Json, Left


def text_of(artifact: Json) -> str:
    """The text of all parts."""
    return "".join(part.get("text", "") for part in artifact.get("parts", ()))


@dataclass(slots=True)
class ContextFold:
    """One document of a context, and its annotations.

    Attributes:
        text, version: as it is shown, maybe of a draft.
        closed: it is not a draft.
        base: the number and the text of the last that was closed.
        versions: the text of every version that was seen closed.
        annotations: by id.
        disagreements: versions that were told with two texts.
    """

    artifact_id: str
    text: str = ""
    version: int = 0
    closed: bool = False
    base: tuple[int, str] = (0, "")
    versions: dict[int, str] = field(default_factory=dict)
    annotations: dict[str, Json] = field(default_factory=dict)
    disagreements: list[str] = field(default_factory=list)

    def take(self, event: Json) -> None:
        """An event of the context's stream, or of a task's."""
        match event:
            case {"artifactUpdate": update} if update["artifact"]["artifactId"] == self.artifact_id:
                self._change(update)
            case {"task": task}:
                self._begin(task)
            case {"statusUpdate": {"metadata": {"urn:a2a-canvas:canvas:v1": {"annotations": changes}}}}:
                self.change_annotations(changes)

    def read_annotations(self, listed: Sequence[Json]) -> None:
        """All of them, as a reader gets them."""
        self.annotations = {each["annotationId"]: each for each in listed}

    def change_annotations(self, changes: Json) -> None:
        """An event `annotations`."""
        if changes["artifactId"] == self.artifact_id:
            self.annotations |= {each["annotationId"]: each for each in changes["annotations"]}
            for gone in changes["removed"]:
                self.annotations.pop(gone, None)

    def take_version(self, number: int, text: str) -> None:
        """A version as a whole."""
        self.version, self.text, self.closed = number, text, True
        self._keep()

    def _begin(self, task: Json) -> None:
        for artifact in task.get("artifacts", ()):
            if artifact["artifactId"] == self.artifact_id:
                told = task["metadata"][CANVAS]["artifacts"][self.artifact_id]
                self.text, self.version = text_of(artifact), int(told["artifactVersion"])
                self.closed = task["status"]["state"] == "TASK_STATE_COMPLETED"
                self._keep()

    def _change(self, update: Json) -> None:
        new = text_of(update["artifact"])
        self.text = self.text + new if update.get("append") else new
        self.version = int(update["metadata"][CANVAS]["artifactVersion"])
        self.closed = bool(update.get("lastChunk"))
        self._keep()

    def _keep(self) -> None:
        if not self.closed:
            return
        self.base = self.version, self.text
        if self.versions.setdefault(self.version, self.text) != self.text:
            self.disagreements.append(f"version {self.version}: {self.versions[self.version]!r}, then {self.text!r}")


def differences(fold: ContextFold, left: Left, *, whole: bool) -> Iterator[str]:
    """What a client has otherwise than a reader.

    Args:
        whole: it follows the context; else it has seen some tasks of it.
    """
    yield from fold.disagreements
    texts: Mapping[int, str] = {version.number: version.text for version in left.versions}
    for number, text in fold.versions.items():
        if texts.get(number) != text:
            yield f"version {number} is {text!r}, not {texts.get(number)!r}"
    if not whole:
        return
    if (fold.version, fold.text, fold.closed) != (left.current, texts.get(left.current), True):
        yield f"has version {fold.version} (closed: {fold.closed}) as current, not {left.current}: {fold.text!r}"
    expected = {each["annotationId"]: each for each in left.annotations}
    for name in sorted(expected.keys() | fold.annotations.keys()):
        has, there = _known(fold.annotations.get(name), left), _known(expected.get(name), left)
        if has != there:
            yield f"annotation {name} is {has}, not {there}"


def _known(annotation: Json | None, left: Left) -> Json:
    """What events tell of an annotation (rule 2)."""
    if annotation is None:
        return {}
    known: dict[str, Any] = {key: value for key, value in annotation.items() if key != "place"}
    made = known.get("decision", {}).get("artifactVersion")
    if known["state"] == "stale" or (known["state"] == "accepted" and made not in left.line):
        known["state"] = "open"
    if known["state"] == "open":
        known.pop("decision", None)
    return known
