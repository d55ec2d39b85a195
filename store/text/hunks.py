"""The changes between two texts: the ranges of the old one that were replaced, and by what. Pure.

Rule 1: lines are compared first; within replaced lines their phrases, and within replaced phrases their words. A word
        is a run of letters and digits (a single character, in scripts without blanks between words). Every other
        character is a token of its own; blanks in a row are one, and so is a line end.
Rule 2: a common prefix and suffix are unchanged. Between these, tokens that occur exactly once in
        both are unchanged if they are in the same order (the longest such sequence); if there are none, and not many
        tokens, those that occur equally often in both. The same applies between two such tokens. The rest is
        replaced as a whole.
Rule 3: so no step compares all tokens with all others: the work is n log n, at most `_DEPTH` times. Words are compared
        only where phrases of `_MAX_PHRASES` characters or fewer were replaced, altogether; else phrases are replaced.
Rule 4: a short common piece of a line between two long changes is equal by chance: it is replaced with them.
Rule 5: if an insertion or deletion has several equivalent positions, because the adjacent text is the same,
        the last one at the start of a line counts; if there is none, the last one at the start of a word.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, zip_longest

from a2a_canvas.store.text.spans import Span, difference

_DEPTH = 12
_FEW = 500
_CHANCE = 20
_MAX_PHRASES = 200_000
_NO_BLANKS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese."""

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_MARKS = "\n.,;:!?(){}<>|。、，；：！？"
_PHRASES = re.compile(rf"[^{_MARKS}]*[{_MARKS}][^\S\n]*|[^{_MARKS}]+")
_WORDS = re.compile(rf"\r?\n|[^\S\r\n]+|[^\W{_NO_BLANKS}]+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Hunk:
    """A range of the old text, and the text that replaces it. Hunks of one comparison do not touch."""

    span: Span
    text: str


def hunks(old: str, new: str) -> tuple[Hunk, ...]:
    """The changes in order: `apply_hunks(old, hunks(old, new)) == new`."""
    found: list[Hunk] = []
    compared = _drop_chance_matches(old, _compare(old, new))
    for hunk, following in zip_longest(compared, compared[1:]):
        least, most = found[-1].span.end + 1 if found else 0, following.span.start - 1 if following else len(old)
        found.append(hunk if hunk.text and hunk.span.extract(old) else _move(hunk, old, least, most))
    return tuple(found)


def _drop_chance_matches(old: str, changes: Sequence[Hunk]) -> list[Hunk]:
    """The changes by rule 4."""
    joined: list[Hunk] = []
    for hunk in changes:
        between = old[joined[-1].span.end : hunk.span.start] if joined else "\n"
        if "\n" not in between and _CHANCE * len(between) < min(_size(joined[-1]), _size(hunk)):
            last = joined.pop()
            hunk = Hunk(Span(last.span.start, hunk.span.end), last.text + between + hunk.text)
        joined.append(hunk)
    return joined


def _size(hunk: Hunk) -> int:
    return max(hunk.span.end - hunk.span.start, len(hunk.text))


def apply_hunks(old: str, changes: Sequence[Hunk], within: Span | None = None) -> str:
    """Apply `changes` to `old`, or to its range `within`, which contains them."""
    within = within or Span(0, len(old))
    pieces: list[str] = []
    at = within.start
    for hunk in changes:
        pieces += (old[at : hunk.span.start], hunk.text)
        at = hunk.span.end
    return "".join((*pieces, old[at : within.end]))


def words(text: str) -> set[str]:
    """The words of a text (rule 1)."""
    return {token for token in _WORDS.findall(text) if token[0].isalnum()}


_FARTHEST = 1000


def _move(hunk: Hunk, old: str, least: int, most: int) -> Hunk:
    """An insertion or deletion at the position of rule 5, from `least` to `most`."""
    start, end = hunk.span.start, hunk.span.end
    text = hunk.text or hunk.span.extract(old)
    left, right = shifts(hunk, old, least, most)
    places = range(start + right, start - left - 1, -1)
    lines = (place for place in places if not place or old[place - 1] == "\n")
    at_words = (
        place for place in places if not all(map(str.isalnum, (old[place - 1 : place], old[place : place + 1])))
    )
    by = next(lines, next(at_words, start)) - start
    turned = text[by % len(text) :] + text[: by % len(text)]
    return Hunk(Span(start + by, end + by), turned if hunk.text else "")


def shifts(hunk: Hunk, old: str, least: int, most: int) -> tuple[int, int]:
    """How far an insertion or deletion could be to the left and to the right, between `least` and `most`."""
    start, end = hunk.span.start, hunk.span.end
    text = hunk.text or hunk.span.extract(old)
    before = range(min(start - least, _FARTHEST))
    left = next((n for n in before if old[start - 1 - n] != text[-1 - n % len(text)]), len(before))
    after = range(min(most - end, _FARTHEST))
    right = next((n for n in after if old[end + n] != text[n % len(text)]), len(after))
    return left, right


def _compare(old: str, new: str) -> list[Hunk]:
    lines = [hunk for stretch in _changed_stretches(old, new) for hunk in _level(stretch, old, _LINES)]
    phrases = [phrase for hunk in lines for phrase in _level(hunk, old, _PHRASES)]
    if sum(map(_size, phrases)) > _MAX_PHRASES:
        return phrases
    return [word for phrase in phrases for word in _level(phrase, old, _WORDS)]


# ----------------------------------------------------------------------- stretches

_SHORT = 20_000
"""The length of a stretch that is not worth dividing, in characters."""
_SAMPLE = 100
_FAR = 4096
"""Characters of a line before or after a change; beyond them, the line is cut at a blank."""


def _changed_stretches(old: str, new: str) -> Iterator[Hunk]:
    """Stretches of lines that contain all changes: a small part of a long text with few changes.

    A stretch is divided where the text in its middle occurs, once, in a long stretch that is the same.
    """
    whole = [(0, len(old), new)]
    while whole:
        start, end, text = whole.pop()
        stretch = _lines_between(old, start, end, text)
        start, end, text = stretch.span.start, stretch.span.end, stretch.text
        if start == end and not text:
            continue
        middle = _same_middle(old, start, end, text) if end - start > _SHORT else None
        if middle is None:
            yield stretch
        else:
            at, there = middle
            whole += ((at, end, text[there:]), (start, at, text[:there]))


def _lines_between(old: str, start: int, end: int, new: str) -> Hunk:
    """The changed lines of `old[start:end]`, as one hunk. Long lines are shortened to the changed part."""
    span, text = difference(old[start:end], new)
    if span.start == span.end and not text:
        return Hunk(Span(start, start), "")
    first, last = start + span.start, start + span.end
    before, after = _start_of_line(old, start, first), _end_of_line(old, last, end)
    return Hunk(Span(before, after), old[before:first] + text + old[last:after])


def _start_of_line(text: str, least: int, at: int) -> int:
    if (start := text.rfind("\n", max(least, at - _FAR), at)) >= 0:
        return start + 1
    return max(least, text.rfind(" ", least, at - _FAR) + 1) if at - least > _FAR else least


def _end_of_line(text: str, at: int, most: int) -> int:
    if (end := text.find("\n", at, min(most, at + _FAR))) >= 0:
        return end + 1
    end = text.find(" ", at + _FAR, most)
    return end if end >= 0 else most


def _same_middle(old: str, start: int, end: int, new: str) -> tuple[int, int] | None:
    """The beginning of a line in the middle of `old[start:end]`, and its place in `new`."""
    at, far = _start_of_line(old, start, (start + end) // 2), (end - start) // 16
    sample = old[at : at + _SAMPLE]
    there = new.find(sample)
    if at - start < far or there < far or old[at - far : at + far] != new[there - far : there + far]:
        return None
    again = new.find(sample, there + 1), old.find(sample, start, at + _SAMPLE - 1), old.find(sample, at + 1, end)
    return (at, there) if max(again) < 0 else None


# -------------------------------------------------------------------------- tokens


def _level(hunk: Hunk, old: str, tokens: re.Pattern[str]) -> Iterator[Hunk]:
    """The changes within a hunk by its tokens; an insertion and a deletion stay as they are."""
    before = hunk.span.extract(old)
    if not before or not hunk.text:
        yield hunk
        return
    ours, theirs = tokens.findall(before), tokens.findall(hunk.text)
    start, ends, new_ends = hunk.span.start, _ends(ours), _ends(theirs)
    for a, b, c, d in _replaced_ranges(ours, theirs):
        yield Hunk(Span(start + ends[a], start + ends[b]), hunk.text[new_ends[c] : new_ends[d]])


def _ends(tokens: Sequence[str]) -> list[int]:
    return list(accumulate(map(len, tokens), initial=0))


Range = tuple[int, int, int, int]
"""Indices of old and new tokens: `old[a:b]` and `new[c:d]`."""


def _replaced_ranges(old: Sequence[str], new: Sequence[str]) -> Iterator[Range]:
    """The ranges that differ (rule 2), in order."""
    open_ranges = [((0, len(old), 0, len(new)), 0)]
    while open_ranges:
        found, depth = open_ranges.pop()
        a, b, c, d = found = _trim(old, new, found)
        if a == b and c == d:
            continue
        pairs = _pairs(old[a:b], new[c:d]) if a < b and c < d and depth < _DEPTH else []
        if not pairs:
            yield found
            continue
        places = [(a - 1, c - 1), *((a + i, c + j) for i, j in pairs), (b, d)]
        gaps = [(i + 1, k, j + 1, m) for (i, j), (k, m) in pairwise(places) if (i + 1, j + 1) != (k, m)]
        open_ranges += ((gap, depth + 1) for gap in reversed(gaps))


def _trim(old: Sequence[str], new: Sequence[str], found: Range) -> Range:
    a, b, c, d = found
    while a < b and c < d and old[a] == new[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and old[b - 1] == new[d - 1]:
        b, d = b - 1, d - 1
    return a, b, c, d


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The positions of common tokens that are in the same order (rule 2)."""
    before, after = _places(old), _places(new)
    common = [token for token, at in before.items() if len(at) == len(after.get(token, ()))]
    chosen = [token for token in common if len(before[token]) == 1]
    if not chosen and max(len(old), len(new)) < _FEW:
        chosen = common
    pairs = [pair for token in chosen for pair in zip(before[token], after[token], strict=True)]
    pairs.sort()
    if all(one[1] < other[1] for one, other in pairwise(pairs)):
        return pairs
    return _longest_rising(pairs)


def _places(tokens: Sequence[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for at, token in enumerate(tokens):
        places.setdefault(token, []).append(at)
    return places


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence in which the second positions increase, too."""
    lowest: list[int] = []  # the lowest last position of a sequence of each length
    last: list[int] = []  # which pair that is
    before: list[int] = []  # the pair before each pair
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(lowest, place)
        before.append(last[length - 1] if length else -1)
        lowest[length : length + 1] = [place]
        last[length : length + 1] = [number]
    rising: list[tuple[int, int]] = []
    number = last[-1]
    while number >= 0:
        rising.append(pairs[number])
        number = before[number]
    return rising[::-1]
