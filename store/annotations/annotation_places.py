"""Where annotations are in a version: all of one artifact are carried together, version by version.

Rule 1: the path leads from an annotation's version to the version that is read, as in `tracking.py`. Each version on it
        is a known change of its parent.
Rule 2: edits, and so the acceptance of suggestions, move a passage by arithmetic (`edit_map.py`), even if the contents
        of the versions were pruned.
Rule 3: across any other change the two texts are compared once, for all annotations (`text/text_change.py`). If one of
        them was pruned, the passages are lost.
Rule 4: a lost passage is found by its quote, if that occurs once in both versions with what surrounds it; or at its old
        place, if both have the same text. Otherwise it has no place: the annotation is stale. It is never guessed.
Rule 5: before the contents of versions are deleted, the annotations whose path begins at them or leads across them are
        moved on to the next version of the path; to the current one, if only their quote leads there. So they have the
        places that they had. Their quotes stay. A stale annotation stays where it is, and stale.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, takewhile

from a2a_canvas.store.annotations.annotation import Annotation, PlacedAnnotation, shown_state
from a2a_canvas.store.annotations.edit_map import EditMap
from a2a_canvas.store.models import Content, TextEdit, Version
from a2a_canvas.store.text.comparing import run_comparison
from a2a_canvas.store.text.spans import Span, find_in_context
from a2a_canvas.store.text.text_change import TextChange
from a2a_canvas.store.tracking import ancestors, inverse

_Spans = dict[int, Span]
"""Passages by the position of their annotation in the arguments."""


async def place_annotations(
    annotations: Iterable[Annotation], versions: Sequence[Version], current: int
) -> tuple[PlacedAnnotation, ...]:
    """The annotations as a reader of version `current` sees them, in the same order.

    Args:
        versions: all versions of the artifact, oldest first.
    """
    annotations = tuple(annotations)
    line = frozenset(ancestors(versions, current))
    found = await _Carriage(annotations, versions, current).carry()
    spans = map(found.get, range(len(annotations)))
    return tuple(
        PlacedAnnotation(each, span, shown_state(each, line, span))
        for each, span in zip(annotations, spans, strict=True)
    )


async def move_annotations(
    annotations: Iterable[Annotation], versions: Sequence[Version], current: int, going: Collection[int]
) -> tuple[Annotation, ...]:
    """The annotations that must move, each with its new version and range (rule 5).

    Args:
        going: the numbers of the versions whose contents are about to be deleted; the current one stays.
    """
    before = await place_annotations(annotations, versions, current)
    by_target: defaultdict[int, list[PlacedAnnotation]] = defaultdict(list)
    for each in before:
        path = _find_path(versions, each.annotation.version, current)
        last = max((at for at, number in enumerate(path) if number in going), default=-1)
        if each.span and last >= 0:
            by_target[path[last + 1]].append(each)
    stripped = [replace(each, content=Content(), pruned=True) if each.number in going else each for each in versions]
    moved: list[Annotation] = []
    for target, some in by_target.items():
        there = await place_annotations((each.annotation for each in some), versions, target)
        ahead = [replace(each.annotation, version=target, span=each.span or each.annotation.span) for each in there]
        after = await place_annotations(ahead, stripped, current)
        for was, placed in zip(some, after, strict=True):
            on_current = replace(was.annotation, version=current, span=was.span or was.annotation.span)
            moved.append(placed.annotation if placed.span == was.span else on_current)
    return tuple(moved)


def _find_path(versions: Sequence[Version], base: int, current: int) -> list[int]:
    """The versions from one to another, by way of their nearest common ancestor."""
    line = [*ancestors(versions, current)]
    up = [*takewhile(lambda number: number not in line, ancestors(versions, base))]
    shared = next(number for number in ancestors(versions, base) if number in line)
    return [*up, *reversed(line[: line.index(shared) + 1])]


class _Carriage:
    """Carries the passages of annotations to one version."""

    def __init__(self, annotations: Sequence[Annotation], versions: Sequence[Version], current: int) -> None:
        self._annotations = annotations
        self._versions = versions
        self._current = current
        self._at: defaultdict[int, _Spans] = defaultdict(dict)
        """The passages that have got to each version."""
        for key, each in enumerate(annotations):
            self._at[each.version][key] = each.span

    async def carry(self) -> Mapping[int, Span]:
        line = [*ancestors(self._versions, self._current)][::-1]
        for number in sorted(self._at, reverse=True):
            if number in self._at and number not in line:
                await self._along(self._branch(number, line))
        first = min(self._at, default=self._current)
        await self._along([number for number in line if number >= first])
        found = self._at[self._current]
        return found | await self._find_quotes([key for key in range(len(self._annotations)) if key not in found])

    def _branch(self, number: int, line: Sequence[int]) -> list[int]:
        """From a version to the first of its ancestors on the line."""
        branch = []
        for each in ancestors(self._versions, number):
            branch.append(each)
            if each in line:
                break
        return branch

    async def _along(self, path: Sequence[int]) -> None:
        """Carry all passages at the versions of a path to its last one."""
        run: list[tuple[int, Sequence[TextEdit]]] = []  # versions with passages or edits, and the next edits
        for number, following in pairwise(path):
            if edits := self._edits(number, following):
                run.append((number, edits))
                continue
            self._over_edits(run, number)
            run = []
            self._at[following] |= await self._over_change(self._at.pop(number, {}), number, following)
        if path:
            self._over_edits(run, path[-1])

    def _edits(self, number: int, following: int) -> Sequence[TextEdit]:
        """The edits from a version to its child or its parent; empty for any other change."""
        if following and self._versions[following - 1].parent == number:
            return self._versions[following - 1].edits
        return inverse(self._versions[number - 1].edits)

    def _over_edits(self, run: Sequence[tuple[int, Sequence[TextEdit]]], end: int) -> None:
        map_ = EditMap()
        for number, edits in reversed(run):
            map_.prepend(edits)
            for key, span in self._at.pop(number, {}).items():
                if moved := map_.move(span):
                    self._at[end][key] = moved

    async def _over_change(self, spans: _Spans, number: int, following: int) -> _Spans:
        sides = [self._versions[each - 1] for each in (number, following) if each]
        if not spans or len(sides) < 2 or any(each.pruned for each in sides):
            return {}
        return await run_comparison(partial(_find_all, spans), *(each.content.text for each in sides), times=len(spans))

    async def _find_quotes(self, lost: Iterable[int]) -> _Spans:
        by_version: defaultdict[int, _Spans] = defaultdict(dict)
        for key in lost:
            each = self._annotations[key]
            if each.version and not self._versions[each.version - 1].pruned:
                by_version[each.version][key] = each.span
        found: _Spans = {}
        for number, spans in by_version.items():
            texts = (self._versions[each - 1].content.text for each in (number, self._current))
            found |= await run_comparison(partial(_find_quoted, spans), *texts, times=len(spans))
        return found


def _find_all(spans: _Spans, old: str, new: str) -> _Spans:
    change = TextChange(old, new)
    return {key: found for key, span in spans.items() if (found := change.find(span))}


def _find_quoted(spans: _Spans, old: str, new: str) -> _Spans:
    if old == new:
        return spans
    return {key: found for key, span in spans.items() if (found := find_in_context(old, span, new))}
