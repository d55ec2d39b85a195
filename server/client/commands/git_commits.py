"""The history of artifacts as commits, and commits as the input of `git fast-import`. Pure.

Rule 1: the history is one line of commits. A version is a commit whose diff is what it changed in its parent. After an
        undo or a redo a commit of its own leads to the version that was current then, so that this holds.
Rule 2: the last commit shows the current versions.
Rule 3: trailers of a message say what it shows. A later run reads them, and continues.
Rule 4: a version whose content was deleted has no commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import PurePath
from typing import Any

from a2a_canvas.server.wire import artifact_path

_VERSION, _CURRENT, _FILE = "A2A-Version", "A2A-Current", "A2A-File"
_TRAILER = re.compile(f"({_VERSION}|{_CURRENT}|{_FILE}): (.*)")
_UNSAFE = re.compile(r"[<>\s\x00-\x1f\x7f]+")
DOMAIN = "a2a-canvas.invalid"
"""Of the addresses of authors, which git requires."""


@dataclass(frozen=True, slots=True)
class VersionShown:
    """What a commit shows of an artifact.

    Attributes:
        number: of the version; 0 for nothing.
        moved: whether the version had been made before.
    """

    artifact: str
    number: int
    moved: bool = False


@dataclass(slots=True)
class ExportedHistory:
    """What a repository has of a conversation.

    Attributes:
        versions: pairs of an artifact and a number.
        shown: the version in the last commit of each artifact.
        files: its file or folder there.
    """

    versions: set[tuple[str, int]] = field(default_factory=set)
    shown: dict[str, int] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def unused_file(self, artifact: str, wanted: str) -> str:
        """The file of an artifact that is called `wanted` now: that name, with a number if another artifact has it."""
        others = {each.casefold() for of, each in self.files.items() if of != artifact}
        path = PurePath(wanted)
        names = (wanted if n == 1 else f"{path.stem} ({n}){path.suffix}" for n in count(1))
        return next(name for name in names if name.casefold() not in others)


def read_history(context: str, messages: Iterable[str], artifacts: Iterable[str]) -> ExportedHistory:
    """What commits of a repository have of a conversation (rule 3).

    Args:
        messages: of the commits, the oldest first.
        artifacts: the ids of its artifacts.
    """
    history, ids = ExportedHistory(), {artifact_path(context, each): each for each in artifacts}
    for message in messages:
        trailers = dict(_TRAILER.findall(message.strip().rpartition("\n\n")[2]))
        path, _, number = (trailers.get(_VERSION) or trailers.get(_CURRENT, "")).partition("/versions/")
        if path not in ids or not number.isdecimal():
            continue
        artifact = ids[path]
        history.shown[artifact] = int(number)
        history.files[artifact] = trailers.get(_FILE, "")
        if _VERSION in trailers:
            history.versions.add((artifact, int(number)))
    return history


def steps(history: ExportedHistory, versions: Mapping[str, Sequence[dict[str, Any]]]) -> Iterator[VersionShown]:
    """The commits that a repository lacks (rules 1 and 2).

    Args:
        versions: of each artifact, as the server lists them.
    """
    at = dict(history.shown)
    contents = {(artifact, each["number"]) for artifact, all_ in versions.items() for each in all_ if not pruned(each)}
    new = [
        (str(each.get("timestamp", "")), artifact, each)
        for artifact, all_ in versions.items()
        for each in all_
        if not pruned(each) and (artifact, each["number"]) not in history.versions
    ]
    for _, artifact, each in sorted(new, key=lambda entry: (entry[0], entry[1], entry[2]["number"])):
        parent = each["parent"]
        if at.get(artifact, 0) != parent and (parent == 0 or (artifact, parent) in contents):
            yield VersionShown(artifact, parent, moved=True)
        yield VersionShown(artifact, each["number"])
        at[artifact] = each["number"]
    for artifact, all_ in versions.items():
        for each in all_:
            if each.get("current") and at.get(artifact, 0) != each["number"] and not pruned(each):
                yield VersionShown(artifact, each["number"], moved=True)


def pruned(version: Mapping[str, Any]) -> bool:
    """Whether the content of a version was deleted."""
    return bool(version.get("pruned"))


def commit_message(context: str, shown: VersionShown, name: str, file: str, version: Mapping[str, Any]) -> str:
    """The request that made the version, and the trailers.

    Args:
        name: the artifact's.
        version: as the server lists it.
    """
    about = f"version {shown.number} of {name}" if shown.number else f"nothing of {name}"
    request = str(version.get("request", "")).replace("\0", "").strip()
    said = f"Back to {about}" if shown.moved else request or about.capitalize()
    kind = _CURRENT if shown.moved else _VERSION
    trailers = {kind: f"{artifact_path(context, shown.artifact)}/versions/{shown.number}", _FILE: file}
    if not shown.moved and version.get("author") != "user" and version.get("by"):
        trailers["Requested-by"] = one_name(str(version["by"]))
    lines = [*trailers.items()]
    if not shown.moved:
        lines += [("Suggested-by", one_name(str(each))) for each in version.get("suggestedBy", ())]
    return f"{said}\n\n" + "".join(f"{key}: {value}\n" for key, value in lines)


def commit_bytes(
    branch: str, who: str, at: str, message: str, old: str, files: Mapping[str, bytes], onto: str = ""
) -> bytes:
    """A commit for `git fast-import`.

    Args:
        who: the author's name.
        at: the time, as the server says it.
        old: the file or folder that it replaces; empty for none.
        files: the new content, by path.
        onto: the commit before it, for the first one of a run.
    """
    seconds = int((datetime.fromisoformat(at) if at else datetime.fromtimestamp(0, UTC)).timestamp())
    identity = (
        f"{one_name(who)} <{re.sub('[^A-Za-z0-9._-]+', '-', who).strip('-.') or 'user'}@{DOMAIN}> {seconds} +0000"
    )
    head = [f"commit {branch}", f"author {identity}", f"committer {identity}"]
    pieces = ["\n".join(head).encode(), b"\n", _data(message.encode())]
    pieces += [f"from {onto}\n".encode()] if onto else []
    pieces += [f"D {_quote(old)}\n".encode()] if old else []
    for path, content in files.items():
        pieces += [f"M 100644 inline {_quote(path)}\n".encode(), _data(content)]
    return b"".join((*pieces, b"\n"))


def one_name(text: str) -> str:
    """A name as git takes it."""
    return _UNSAFE.sub(" ", text).strip() or "unknown"


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def _quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
