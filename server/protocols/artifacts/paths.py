"""The paths of the resources below `/artifacts/`, as `server/wire.py` writes them. Pure.

    /artifacts                                              the caller's contexts
    /artifacts/{context}                                    its artifacts
    /artifacts/{context}/events                             its event stream
    /artifacts/{context}/presence                           the place of the caller's cursor
    /artifacts/{context}/shares                             its shares
    /artifacts/{context}/shares/{id}                        one share
    /artifacts/{context}/{artifact}                         one artifact
    /artifacts/{context}/{artifact}/versions                its versions
    /artifacts/{context}/{artifact}/versions/{n}            one version
    /artifacts/{context}/{artifact}/versions/{n}/diff       what it changed
    /artifacts/{context}/{artifact}/stream                  its changes, for caches
    /artifacts/{context}/{artifact}/annotations             its comments and suggestions
    /artifacts/{context}/{artifact}/annotations/{id}        one of them

Rule 1: a path is split at the slashes of its raw form, then each piece is percent-decoded. So an id may contain any
        character that ids can have (`store/text/unicode.py`): "a/b" is `a%2Fb`, "50%" is `50%25`.
Rule 2: a word of the table has its meaning only in its position, and only if it is not percent-encoded. An artifact
        whose id is "events", "presence" or "shares" is `%65vents`, `%70resence` or `%73hares`; `versions`,
        `stream` and `annotations` need no encoding, because no artifact can be at that position.
Rule 3: the ids "." and ".." are `%2E` and `%2E%2E`; some clients normalise even those away before they send a request.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class _ContextPath:
    context_id: str


@dataclass(frozen=True, slots=True)
class _ArtifactPath(_ContextPath):
    artifact_id: str


@dataclass(frozen=True, slots=True)
class _VersionPath(_ArtifactPath):
    """`number` as in the path."""

    number: str


@dataclass(frozen=True, slots=True)
class ContextList: ...


class ArtifactList(_ContextPath): ...


class ContextEvents(_ContextPath): ...


class ContextPresence(_ContextPath): ...


class ShareList(_ContextPath): ...


@dataclass(frozen=True, slots=True)
class OneShare(_ContextPath):
    share_id: str


class CurrentArtifact(_ArtifactPath): ...


class ArtifactStream(_ArtifactPath): ...


class VersionList(_ArtifactPath): ...


class ArtifactVersion(_VersionPath): ...


class VersionDiff(_VersionPath): ...


class AnnotationList(_ArtifactPath): ...


@dataclass(frozen=True, slots=True)
class OneAnnotation(_ArtifactPath):
    annotation_id: str


ArtifactResource = CurrentArtifact | VersionList | ArtifactVersion | VersionDiff | AnnotationList | OneAnnotation
ContextResource = (
    ArtifactList | ContextEvents | ContextPresence | ShareList | OneShare | ArtifactStream | ArtifactResource
)
Resource = ContextList | ContextResource


def parse_path(raw: str) -> Resource | None:
    """The resource at `raw`, the percent-encoded path after `/artifacts/`, or empty for `/artifacts`; None for none."""
    if not raw:
        return ContextList()
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
        case [_, "presence"], [context, _]:
            return ContextPresence(context)
        case [_, "shares"], [context, _]:
            return ShareList(context)
        case [_, "shares", _], [context, _, share]:
            return OneShare(context, share)
        case [_, _, *_], [context, artifact, *_]:
            return _artifact_resource(context, artifact, pieces[2:], ids[2:])
        case _:
            return None


def _artifact_resource(context: str, artifact: str, pieces: list[str], ids: list[str]) -> ContextResource | None:
    """The resource at or below the path of an artifact."""
    match pieces, ids:
        case [], []:
            return CurrentArtifact(context, artifact)
        case ["stream"], [_]:
            return ArtifactStream(context, artifact)
        case ["versions"], [_]:
            return VersionList(context, artifact)
        case ["versions", _], [_, number]:
            return ArtifactVersion(context, artifact, number)
        case ["versions", _, "diff"], [_, number, _]:
            return VersionDiff(context, artifact, number)
        case ["annotations"], [_]:
            return AnnotationList(context, artifact)
        case ["annotations", _], [_, annotation]:
            return OneAnnotation(context, artifact, annotation)
        case _:
            return None
