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
class ArtifactList:
    context_id: str


@dataclass(frozen=True, slots=True)
class ContextEvents:
    context_id: str


@dataclass(frozen=True, slots=True)
class CurrentArtifact:
    context_id: str
    artifact_id: str


@dataclass(frozen=True, slots=True)
class VersionList:
    context_id: str
    artifact_id: str


@dataclass(frozen=True, slots=True)
class ArtifactVersion:
    """`number` as it was written."""

    context_id: str
    artifact_id: str
    number: str


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """`number` as it was written."""

    context_id: str
    artifact_id: str
    number: str


Resource = ArtifactList | ContextEvents | CurrentArtifact | VersionList | ArtifactVersion | VersionDiff


def parse_path(raw: str) -> Resource | None:
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
            return ArtifactList(context)
        case [_, "events"], [context, _]:
            return ContextEvents(context)
        case [_, _], [context, artifact]:
            return CurrentArtifact(context, artifact)
        case [_, _, "versions"], [context, artifact, _]:
            return VersionList(context, artifact)
        case [_, _, "versions", _], [context, artifact, _, number]:
            return ArtifactVersion(context, artifact, number)
        case [_, _, "versions", _, "diff"], [context, artifact, _, number, _]:
            return VersionDiff(context, artifact, number)
        case _:
            return None


def build_path(resource: Resource) -> str:
    """What follows `/artifacts/` for a resource, so that `parse_path` names it again."""
    context = _piece(resource.context_id)
    match resource:
        case ArtifactList():
            return context
        case ContextEvents():
            return f"{context}/events"
        case CurrentArtifact():
            return f"{context}/{_artifact(resource.artifact_id)}"
        case VersionList():
            return f"{context}/{_artifact(resource.artifact_id)}/versions"
        case ArtifactVersion():
            return f"{context}/{_artifact(resource.artifact_id)}/versions/{_piece(resource.number)}"
        case VersionDiff():
            return f"{context}/{_artifact(resource.artifact_id)}/versions/{_piece(resource.number)}/diff"


def _artifact(artifact_id: str) -> str:
    return "%65vents" if artifact_id == "events" else _piece(artifact_id)


def _piece(id: str) -> str:
    return id.replace(".", "%2E") if id in (".", "..") else quote(id, safe="")
