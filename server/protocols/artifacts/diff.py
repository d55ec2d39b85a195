"""The unified diff of two texts. Pure.

Rule 1: lines end at "\\n" and nowhere else; a last line without one is followed by `\\ No newline at end of file`.
Rule 2: the diff is always right. It is also small, as long as it can be found with bounded work: where the changed
        stretch of the texts is too large for that, it is one block removed and one block added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

CONTEXT = 3
"""Lines shown around a change."""
MAX_STEPS = 50_000_000
"""Steps that difflib may need at worst, some seconds of it. It searches all equal pairs of lines once per line."""
_NO_NEWLINE = "\\ No newline at end of file\n"

_Opcode = tuple[str, int, int, int, int]


def unified_diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """The diff from `old` to `new`; empty if they are the same."""
    before, after = _lines(old), _lines(new)
    groups = list(_groups(_opcodes(before, after)))
    if not groups:
        return ""
    head = f"--- {old_name}\n+++ {new_name}\n"
    return head + "".join(line for group in groups for line in _hunk(group, before, after))


def _lines(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _opcodes(before: Sequence[str], after: Sequence[str]) -> list[_Opcode]:
    """As `SequenceMatcher.get_opcodes` gives them. What both texts begin and end with needs no search."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    tail = next((n for n in range(shorter - head) if before[-1 - n] != after[-1 - n]), shorter - head)
    old_end, new_end = len(before) - tail, len(after) - tail
    old, new = before[head:old_end], after[head:new_end]
    codes: list[_Opcode] = [("equal", 0, head, 0, head)] if head else []
    codes += [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in _searched(old, new)]
    return [*codes, ("equal", old_end, len(before), new_end, len(after))] if tail else codes


def _searched(old: Sequence[str], new: Sequence[str]) -> list[_Opcode]:
    if not old and not new:
        return []
    if _steps(old, new) > MAX_STEPS:
        return [("replace", 0, len(old), 0, len(new))]
    return list(SequenceMatcher(None, old, new).get_opcodes())


def _steps(old: Sequence[str], new: Sequence[str]) -> int:
    counts = Counter(new)
    # difflib passes over lines that are more than 1 % of 200 or more.
    most = len(new) // 100 + 1 if len(new) >= 200 else len(new)
    pairs = sum(counts[line] for line in old if counts[line] <= most)
    return min(len(old), len(new)) * (len(old) + pairs)


def _groups(codes: list[_Opcode]) -> Iterator[list[_Opcode]]:
    """The changes with what stands around them; those that are close to one another together."""
    group: list[_Opcode] = []
    for tag, a, b, c, d in _trimmed(codes):
        if tag == "equal" and b - a > 2 * CONTEXT:
            if _has_change(group):
                yield [*group, (tag, a, a + CONTEXT, c, c + CONTEXT)]
            group = [(tag, b - CONTEXT, b, d - CONTEXT, d)]
        else:
            group.append((tag, a, b, c, d))
    if _has_change(group):
        yield group


def _trimmed(codes: list[_Opcode]) -> list[_Opcode]:
    codes = list(codes)
    if codes and codes[0][0] == "equal":
        tag, a, b, c, d = codes[0]
        codes[0] = tag, max(a, b - CONTEXT), b, max(c, d - CONTEXT), d
    if codes and codes[-1][0] == "equal":
        tag, a, b, c, d = codes[-1]
        codes[-1] = tag, a, min(b, a + CONTEXT), c, min(d, c + CONTEXT)
    return codes


def _has_change(group: list[_Opcode]) -> bool:
    return any(tag != "equal" for tag, *_ in group)


def _hunk(group: list[_Opcode], before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
    yield f"@@ -{_range(a, b)} +{_range(c, d)} @@\n"
    for tag, i, j, k, m in group:
        if tag == "equal":
            yield from _marked(" ", before[i:j])
        else:
            yield from _marked("-", before[i:j])
            yield from _marked("+", after[k:m])


def _range(start: int, stop: int) -> str:
    """As `diff -u` writes it: an empty range names the line before it."""
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line if line.endswith("\n") else f"{mark}{line}\n{_NO_NEWLINE}"
