"""Which resource a path below `/artifacts/` names, and the path of a resource. Pure.

    /artifacts/{context}                                    its artifacts
    /artifacts/{context}/events                             its event stream
    /artifacts/{context}/{artifact}                         one artifact
    /artifacts/{context}/{artifact}/versions                its versions
    /artifacts/{context}/{artifact}/versions/{n}            one version
    /artifacts/{context}/{artifact}/versions/{n}/diff       what it changed

Rule 1: a path is cut at its slashes as it was sent, and each piece is percent-decoded after that. So an id may hold
        any character of an id (`store/ids.py`): "a/b" is `a%2Fb`, "50%" is `50%25`.
Rule 2: a word of the table counts only where the table has it, and only when it is written plainly. An artifact
        whose id is "events" is `%65vents`; `versions` needs no care, because no artifact stands in its place.
Rule 3: the ids "." and ".." are `%2E` and `%2E%2E`; some clients resolve even those away before they ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote


@dataclass(frozen=True, slots=True)
class Listing:
    context_id: str


@dataclass(frozen=True, slots=True)
class Events:
    context_id: str


@dataclass(frozen=True, slots=True)
class Current:
    context_id: str
    artifact_id: str


@dataclass(frozen=True, slots=True)
class Versions:
    context_id: str
    artifact_id: str


@dataclass(frozen=True, slots=True)
class OneVersion:
    """`number` as it was written."""

    context_id: str
    artifact_id: str
    number: str


@dataclass(frozen=True, slots=True)
class Diff:
    """`number` as it was written."""

    context_id: str
    artifact_id: str
    number: str


Resource = Listing | Events | Current | Versions | OneVersion | Diff


def resource_of(raw: str) -> Resource | None:
    """The resource that is named by what follows `/artifacts/`, percent-encoded as it was sent; None for none."""
    pieces = raw.split("/")
    if "" in pieces:
        return None
    try:
        ids = [unquote(piece, errors="strict") for piece in pieces]
    except UnicodeDecodeError:
        return None
    match pieces, ids:
        case [_], [context]:
            return Listing(context)
        case [_, "events"], [context, _]:
            return Events(context)
        case [_, _], [context, artifact]:
            return Current(context, artifact)
        case [_, _, "versions"], [context, artifact, _]:
            return Versions(context, artifact)
        case [_, _, "versions", _], [context, artifact, _, number]:
            return OneVersion(context, artifact, number)
        case [_, _, "versions", _, "diff"], [context, artifact, _, number, _]:
            return Diff(context, artifact, number)
        case _:
            return None


def path_of(resource: Resource) -> str:
    """What follows `/artifacts/` for a resource, so that `resource_of` names it again."""
    context = _piece(resource.context_id)
    match resource:
        case Listing():
            return context
        case Events():
            return f"{context}/events"
        case Current():
            return f"{context}/{_artifact(resource.artifact_id)}"
        case Versions():
            return f"{context}/{_artifact(resource.artifact_id)}/versions"
        case OneVersion():
            return f"{context}/{_artifact(resource.artifact_id)}/versions/{_piece(resource.number)}"
        case Diff():
            return f"{context}/{_artifact(resource.artifact_id)}/versions/{_piece(resource.number)}/diff"


def _artifact(artifact_id: str) -> str:
    return "%65vents" if artifact_id == "events" else _piece(artifact_id)


def _piece(id: str) -> str:
    return id.replace(".", "%2E") if id in (".", "..") else quote(id, safe="")
