"""The history of artifacts as commits, and commits as the input of `git fast-import`. Pure.

Rule 1: the history is one line of commits. A version is a commit whose diff is what it changed in its parent. After an
        undo or a redo a commit of its own leads to the version that was current then, so that this holds.
Rule 2: the last commit shows the current versions.
Rule 3: trailers of a message say what it shows. A later run reads them, and continues. As in git, a trailer begins
        a line of the last paragraph, which is not the first. So users cannot forge one: their requests are above that
        paragraph, and their names within lines.
Rule 4: a version whose content was deleted has no commit.
Rule 5: an artifact is gone if its conversation was deleted and the id used again: a commit removes its file. One with
        the same id is another artifact if other tasks made its versions, and so is each of its versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from a2a_canvas.server.wire import artifact_path, context_path

_VERSION, _CURRENT, _FILE, _TASK = "A2A-Version", "A2A-Current", "A2A-File", "A2A-Task"
_TRAILER = re.compile(f"^({_VERSION}|{_CURRENT}|{_FILE}|{_TASK}): (.*)", re.MULTILINE)
_UNSAFE = re.compile(r"[<>\s\x00-\x1f\x7f]+")
DOMAIN = "a2a-canvas.invalid"
"""Of the addresses of authors, which git requires."""


@dataclass(frozen=True, slots=True)
class VersionShown:
    """What a commit shows of an artifact.

    Attributes:
        number: of the version; 0 for nothing, which removes its file.
        moved: whether the version had been made before.
    """

    artifact: str
    number: int
    moved: bool = False


@dataclass(slots=True)
class ExportedHistory:
    """What a repository has of a conversation.

    Attributes:
        versions: the task that made each version, by artifact and number.
        shown: the version in the last commit of each artifact.
        files: its file or folder there.
    """

    versions: dict[tuple[str, int], str] = field(default_factory=dict)
    shown: dict[str, int] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def unused_file(self, artifact: str, wanted: str) -> str:
        """The file of an artifact that is called `wanted` now: that name, with a number if another artifact has it."""
        others = {each.casefold() for of, each in self.files.items() if of != artifact}
        path = PurePath(wanted)
        names = (wanted if n == 1 else f"{path.stem} ({n}){path.suffix}" for n in count(1))
        return next(name for name in names if name.casefold() not in others)


def read_history(context: str, messages: Iterable[str], only: str | None = None) -> ExportedHistory:
    """What commits of a repository have of a conversation (rule 3).

    Args:
        messages: of the commits, the oldest first.
        only: the artifact to look for; all by default.
    """
    history, below = ExportedHistory(), f"{context_path(context)}/"
    for message in messages:
        _, blank, last = message.strip().rpartition("\n\n")
        trailers = dict(_TRAILER.findall(last)) if blank else {}
        path, _, number = (trailers.get(_VERSION) or trailers.get(_CURRENT, "")).partition("/versions/")
        artifact = unquote(path.removeprefix(below))
        if not (path.startswith(below) and only in (None, artifact) and number.isdecimal()):
            continue
        history.shown[artifact] = int(number)
        history.files[artifact] = trailers.get(_FILE, "")
        if _VERSION in trailers:
            history.versions[artifact, int(number)] = trailers.get(_TASK, "")
    return history


def steps(history: ExportedHistory, versions: Mapping[str, Sequence[dict[str, Any]]]) -> Iterator[VersionShown]:
    """The commits that a repository lacks (rules 1, 2 and 5).

    Args:
        versions: of each artifact, as the server lists them.
    """
    tasks = {(artifact, each["number"]): _task(each) for artifact, all_ in versions.items() for each in all_}
    known = {each for each, task in history.versions.items() if tasks.get(each) == task}
    kept = {artifact for artifact, _ in known}
    at = dict(history.shown)
    for artifact in [each for each, number in at.items() if number and each not in kept]:
        yield VersionShown(artifact, 0, moved=True)
        at[artifact] = 0
    contents = {(artifact, each["number"]) for artifact, all_ in versions.items() for each in all_ if not pruned(each)}
    new = [
        (str(each.get("timestamp", "")), artifact, each)
        for artifact, all_ in versions.items()
        for each in all_
        if not pruned(each) and (artifact, each["number"]) not in known
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


def _task(version: Mapping[str, Any]) -> str:
    return one_name(str(version.get("taskId", "")))


def pruned(version: Mapping[str, Any]) -> bool:
    """Whether the content of a version was deleted."""
    return bool(version.get("pruned"))


def commit_message(context: str, shown: VersionShown, name: str, file: str, version: Mapping[str, Any]) -> str:
    """The request that made the version, and the trailers.

    Args:
        name: the artifact's.
        version: as the server lists it.
    """
    request = str(version.get("request", "")).replace("\0", "").strip()
    back = f"Back to version {shown.number} of {name}" if shown.number else f"Remove {name}"
    said = back if shown.moved else request or f"Version {shown.number} of {name}"
    path = f"{artifact_path(context, shown.artifact)}/versions/{shown.number}"
    trailers = [(_CURRENT if shown.moved else _VERSION, path)]
    trailers += [(_FILE, file)] if file else []
    if not shown.moved:
        trailers.append((_TASK, _task(version)))
        asked = [version["by"]] if version.get("author") != "user" and version.get("by") else []
        trailers += [("Requested-by", one_name(str(each))) for each in asked]
        trailers += [("Suggested-by", one_name(str(each))) for each in version.get("suggestedBy", ())]
    return f"{said}\n\n" + "".join(f"{key}: {value}\n" for key, value in trailers)


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
    address = f"{re.sub('[^A-Za-z0-9._-]+', '-', who).strip('-.') or 'user'}@{DOMAIN}"
    identity = f"{one_name(who)} <{address}> {seconds} +0000"
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
