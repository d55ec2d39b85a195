"""The state as clients of the older JSON request know it: the thread's one artifact with all its versions. Pure.

    {"artifact": {"currentIndex", "contents": [{"index", "type", "language", "title", "code" | "fullMarkdown"}]} | null,
     "artifactAction": "partial_update" | null}

Rule 1: an `index` is the number of a version. The draft that is being written is the last one. Versions whose content
        is no longer kept are left out.
Rule 2: the text part's metadata tells `type` and `language` as they were given; where it does not, the language does.
Rule 3: a text is one string here and cannot be added to. While it grows it is sent again whenever it has grown by an
        eighth, and when its draft closes: together that is at most ten times the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.agent.language import is_markdown, language_of
from a2a_canvas.server.protocols.agui.json_patch import END, Json, Op, add, put, remove
from a2a_canvas.store.edits import EditAborted, EditStarted
from a2a_canvas.store.models import Content, TextPart, Version, text_of, text_part

PARTIAL_UPDATE = "partial_update"
TEXT_FIELD = {"code": "code", "text": "fullMarkdown"}


def content_json(number: int, content: Content) -> Json:
    """One version."""
    head = _head(number, content)
    return {**head, TEXT_FIELD[head["type"]]: _text(content).text}


def _head(number: int, content: Content) -> Json:
    text = _text(content)
    language, kind = text.metadata.get("language"), text.metadata.get("type")
    if not isinstance(language, str):
        language = language_of(content.name, text.media_type)
    if kind not in TEXT_FIELD:
        kind = "text" if not language or is_markdown(language) else "code"
    return {"index": number, "type": kind, "language": language, "title": content.name}


def _text(content: Content) -> TextPart:
    return text_of(content.parts) or text_part("")


@dataclass(frozen=True, slots=True)
class _Sent:
    """What a client has of the version shown: all but its text, and how long that is."""

    head: Json
    length: int

    @classmethod
    def of(cls, number: int, content: Content) -> _Sent:
        return cls(_head(number, content), len(_text(content).body))

    def due(self, content: Content) -> bool:
        return len(_text(content).body) > self.length * 9 / 8


class OlderArtifactView:
    """The thread's artifact, as one subscriber knows it.

    Args:
        artifact_id: if it is empty, the first artifact that is changed.
        versions: the closed versions of artifacts, by artifact id.
        shown: what is shown of the artifact, and the number of the version that is; None if there is nothing.
        open: whether that is a draft.
        editing: a part of the artifact is being rewritten.
    """

    def __init__(
        self,
        artifact_id: str,
        versions: Mapping[str, Sequence[Version]],
        shown: tuple[int, Content] | None,
        *,
        open: bool,
        editing: bool,
    ) -> None:
        self._artifact_id = artifact_id
        self._versions = versions
        self._contents = self._closed()
        self._current, content = shown or (0, Content())
        if shown:
            content = self._contents.setdefault(self._current, content)
        self._sent = _Sent.of(self._current, content)
        self._open = open
        self._action = PARTIAL_UPDATE if editing else None

    def _closed(self) -> dict[int, Content]:
        versions = self._versions.get(self._artifact_id, ())
        return {version.number: version.content for version in versions if not version.pruned}

    def snapshot(self) -> Json:
        """The state as it stands."""
        return {"artifact": self._artifact(), "artifactAction": self._action}

    def _artifact(self) -> Json | None:
        if not self._contents:
            return None
        contents = [content_json(number, content) for number, content in self._contents.items()]
        return {"currentIndex": self._current, "contents": contents}

    def edit(self, event: EditStarted | EditAborted) -> list[Op]:
        """What an edit that begins, or comes to nothing, changes."""
        action = PARTIAL_UPDATE if isinstance(event, EditStarted) else None
        if event.artifact_id != self._artifact_id or action == self._action:
            return []
        self._action = action
        return [put(action, "artifactAction")]

    def follow(self, event: ArtifactChanged, content: Content) -> list[Op]:
        """What a change changes, after which the artifact is `content`."""
        if event.artifact_id != (self._artifact_id or event.artifact_id):
            return []
        known = bool(self._contents)
        if not self._artifact_id:
            self._artifact_id = event.artifact_id
            self._contents = self._closed()
        ops = [*self._leave(event.version), *self._show(event, content)]
        if self._current != event.version:
            ops.append(put(event.version, "artifact", "currentIndex"))
        self._current, self._open = event.version, not event.last_chunk
        return ops if known else [put(self._artifact(), "artifact")]

    def _leave(self, version: int) -> list[Op]:
        """The draft that was shown is left for another version: it has become one, or was taken back."""
        if not self._open or version == self._current:
            return []
        if version > self._current:
            return self._send(self._contents[self._current])
        place = self._place(self._current)
        del self._contents[self._current]
        return [remove("artifact", "contents", place)]

    def _show(self, event: ArtifactChanged, content: Content) -> list[Op]:
        number = event.version
        if number not in self._contents:
            self._contents[number] = content
            self._sent = _Sent.of(number, content)
            return [add(content_json(number, content), "artifact", "contents", END)]
        if not (self._open and number == self._current):
            return []  # it is closed, and so it is what it was
        self._contents[number] = content
        if not event.append:
            return self._send(content, whole=True)
        return self._send(content) if event.last_chunk or self._sent.due(content) else []

    def _send(self, content: Content, *, whole: bool = False) -> list[Op]:
        """What a client does not have yet of the version shown; `whole`: its text is another one."""
        before, self._sent = self._sent, _Sent.of(self._current, content)
        where = ("artifact", "contents", self._place(self._current))
        if whole or before.head != self._sent.head:
            return [put(content_json(self._current, content), *where)]
        if before.length == self._sent.length:
            return []
        return [put(_text(content).text, *where, TEXT_FIELD[before.head["type"]])]

    def _place(self, number: int) -> int:
        # Not counted from the first: versions that others make during the run are missing here.
        return list(self._contents).index(number)
