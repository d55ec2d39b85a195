"""What a person or an agent does next, from what it sees. Pure, for a given source of random numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.hands.folds import ContextFold
from bench.hands.ledger import Json, Operation, Step, Verb
from bench.hands.script import DOC, comments, edits, rewrites, suggests, writes

LINES = 50
"""More lines than this are not typed: instead, some go."""
PEOPLE: Mapping[Verb, int] = {
    "type": 30,
    "replace": 10,
    "overwrite": 4,
    "edit": 8,
    "undo": 3,
    "redo": 2,
    "suggest": 14,
    "comment": 10,
    "reply": 10,
    "accept": 10,
    "accept-all": 2,
    "reject": 4,
    "resolve": 4,
    "withdraw": 2,
}
AGENTS: Mapping[Verb, int] = {"agent-writes": 3, "agent-edits": 3, "agent-suggests": 2, "agent-comments": 2}
"""How often each is chosen, among the others."""


@dataclass(frozen=True, slots=True)
class Planned:
    """An operation, and the message that asks for it: its text, and its operation of `canvas:v1` if it is one."""

    operation: Operation
    text: str
    metadata: Json | None = None


class Words:
    """Words that nobody has written before."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, count: int) -> list[str]:
        """Some words that differ from all others, of which none is within another."""
        self._count += 1
        return [f"w{self._count}{chr(ord('a') + number)}" for number in range(count)]


def choose(moments: random.Random, who: str, view: ContextFold, new: Words, verbs: Mapping[Verb, int]) -> Planned:
    """The next operation; something that is not possible now becomes typing."""
    [verb] = moments.choices([*verbs], [*verbs.values()])
    planned = _MAKERS[verb](moments, who, view, new)
    return planned or (_agent_writes if verb in AGENTS else _type)(moments, who, view, new)


_Maker = Callable[[random.Random, str, ContextFold, Words], Planned | None]


def _operation(operation: Operation, said: str = "please", **fields: Any) -> Planned:
    return Planned(operation, said, {"artifactId": DOC, **fields})


def _put(verb: Verb, who: str, view: ContextFold, after: str, step: Step, *, merge: bool) -> Planned:
    operation = Operation(verb, who, [step])
    return _operation(operation, op="put", text=after, baseVersion=view.base[0], merge=merge)


# ------------------------------------------------------------------------------- text


def _type(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned:
    """At the end of a line, or on a line of its own."""
    lines = view.base[1].splitlines()
    if len(lines) > LINES:
        return _replace(moments, who, view, new)
    at, typed = moments.randrange(len(lines)) if lines else 0, new.new(moments.randint(1, 4))
    if lines and moments.random() < 0.6:
        lines[at] = " ".join([*lines[at].split(), *typed])
    else:
        lines.insert(at, " ".join(typed))
    return _put("type", who, view, _joined(lines), Step(frozenset(typed)), merge=True)


def _replace(moments: random.Random, who: str, view: ContextFold, new: Words, verb: Verb = "replace") -> Planned:
    """Other words for a line, or for several if there are many."""
    lines = view.base[1].splitlines()
    first = moments.randrange(len(lines)) if lines else 0
    last = first + (4 if len(lines) > LINES else 1)
    typed, gone = new.new(moments.randint(1, 4)), " ".join(lines[first:last]).split()
    lines[first:last] = [" ".join(typed)]
    step = Step(frozenset(typed), frozenset(gone))
    return _put(verb, who, view, _joined(lines), step, merge=verb == "replace")


def _overwrite(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned:
    return _replace(moments, who, view, new, "overwrite")


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _passage(moments: random.Random, view: ContextFold) -> tuple[Json, list[str]] | None:
    """One to three words of a line: their selection, and they themselves."""
    text = view.base[1]
    lines = [line for line in text.splitlines() if line.split()]
    if not lines:
        return None
    found = moments.choice(lines).split()
    first = moments.randrange(len(found))
    chosen = found[first : first + moments.randint(1, 3)]
    start = text.index(chosen[0])
    end = text.index(chosen[-1]) + len(chosen[-1])
    return {"start": start, "end": end, "text": text[start:end]}, chosen


def _edit(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned | None:
    if not (found := _passage(moments, view)):
        return None
    selection, gone = found
    typed = new.new(moments.randint(1, 6))
    operation = Operation("edit", who, [Step(frozenset(typed), frozenset(gone))])
    return _operation(operation, rewrites(" ".join(typed)), op="edit", selection=selection, baseVersion=view.base[0])


def _undo(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned:
    return _operation(Operation("undo", who), op="undo")


def _redo(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned:
    return _operation(Operation("redo", who), op="redo")


# ------------------------------------------------------------------------ annotations


def _comment(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned | None:
    if not (found := _passage(moments, view)):
        return None
    [remark] = new.new(1)
    operation = Operation("comment", who, remark=remark)
    return _operation(operation, remark, op="annotate", selection=found[0], baseVersion=view.base[0])


def _suggest(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned | None:
    if not (found := _passage(moments, view)):
        return None
    selection, old = found
    kept, typed, [remark] = old[: moments.randint(0, 1)], new.new(moments.randint(1, 2)), new.new(1)
    step = Step(frozenset(typed), frozenset(old) - frozenset(kept))
    fields = {"selection": selection, "baseVersion": view.base[0], "replacement": " ".join([*kept, *typed])}
    return _operation(Operation("suggest", who, [step], remark), remark, op="annotate", **fields)


def _of(moments: random.Random, view: ContextFold, kind: str = "", state: str = "", by: str = "") -> str:
    """One of the annotations; empty if there is none."""
    found = [
        name
        for name, each in view.annotations.items()
        if kind in ("", each["kind"]) and state in ("", each["state"]) and by in ("", each.get("by"))
    ]
    return moments.choice(found) if found else ""


def _reply(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned | None:
    if not (target := _of(moments, view)):
        return None
    [remark] = new.new(1)
    operation = Operation("reply", who, remark=remark, target=target)
    return _operation(operation, remark, op="reply", annotationId=target)


def _deciding(verb: Verb, kind: str, *, own: bool = False) -> _Maker:
    def plan(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned | None:
        target = _of(moments, view, kind, "" if own else "open", who if own else "")
        return _operation(Operation(verb, who, target=target), op=verb, annotationId=target) if target else None

    return plan


def _accept_all(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned | None:
    target = _of(moments, view, "suggestion", "open")
    by = view.annotations[target].get("by") if target else None
    return _operation(Operation("accept-all", who), op="accept-all", by=by) if by else None


# ----------------------------------------------------------------------------- agents


def _agent_writes(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned:
    old, first, last = new.new(3)
    steps = [Step(frozenset([old, first])), Step(frozenset([last]), frozenset([old]))]
    return Planned(Operation("agent-writes", who, steps), writes(old, first, last))


def _agent_edits(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned | None:
    if not (found := view.base[1].split()):
        return None
    old, typed = moments.choice(found), new.new(moments.randint(1, 4))
    step = Step(frozenset(typed), frozenset([old]))
    return Planned(Operation("agent-edits", who, [step]), edits(old, " ".join(typed)))


def _agent_suggests(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned | None:
    if not (found := view.base[1].split()):
        return None
    old, typed = moments.choice(found), new.new(moments.randint(1, 4))
    step = Step(frozenset(typed), frozenset([old]))
    return Planned(Operation("agent-suggests", who, [step]), suggests(old, " ".join(typed)))


def _agent_comments(moments: random.Random, who: str, view: ContextFold, new: Words) -> Planned | None:
    if not (found := view.base[1].split()):
        return None
    [remark] = new.new(1)
    return Planned(Operation("agent-comments", who, remark=remark), comments(moments.choice(found), remark))


_MAKERS: Mapping[Verb, _Maker] = {
    "type": _type,
    "replace": _replace,
    "overwrite": _overwrite,
    "edit": _edit,
    "undo": _undo,
    "redo": _redo,
    "suggest": _suggest,
    "comment": _comment,
    "reply": _reply,
    "accept-all": _accept_all,
    "accept": _deciding("accept", "suggestion"),
    "reject": _deciding("reject", "suggestion"),
    "resolve": _deciding("resolve", "comment"),
    "withdraw": _deciding("withdraw", "comment", own=True),
    "agent-writes": _agent_writes,
    "agent-edits": _agent_edits,
    "agent-suggests": _agent_suggests,
    "agent-comments": _agent_comments,
}
