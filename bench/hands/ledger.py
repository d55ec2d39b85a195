"""What people and agents were told has been done, and what is wrong with the document that is left. Pure.

Every word that an operation writes is unique: it is the mark of that operation.

Rule 1: an operation that was sent is answered in the end. Completed: what it did is acknowledged. Rejected or refused:
        it did nothing. None fails: a task may be killed twice.
Rule 2: a version has in its list the task that made it, which is that of one operation. It differs from its parent by
        what one step of that operation writes and removes, and by nothing else: no word is lost, doubled, altered or
        out of order. A step makes one version at most, and each acknowledged step one.
Rule 3: so an acknowledged word is in the current text, or a later version on the way there was made by an operation
        that named the word to remove it, or an undo or redo left its version aside. The current version, and the parent
        of a version, are the newest one before, unless an acknowledged undo or redo led there.
Rule 4: an annotation, and each remark of its thread, was made by one operation. What was acknowledged is there, in the
        state that the operations say, unless its author has withdrawn it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

Json = dict[str, Any]
Verb = Literal[
    "type",
    "replace",
    "overwrite",
    "edit",
    "undo",
    "redo",
    "accept",
    "accept-all",
    "comment",
    "suggest",
    "reply",
    "resolve",
    "reject",
    "withdraw",
    "agent-writes",
    "agent-edits",
    "agent-suggests",
    "agent-comments",
]
ANNOTATES = ("comment", "suggest", "agent-suggests", "agent-comments")
MOVES = ("undo", "redo")
ANSWERS = ("completed", "rejected", "refused")
ACCEPTS = ("accept", "accept-all")


def words(text: str) -> list[str]:
    """The marks in a text."""
    return text.split()


@dataclass(frozen=True, slots=True)
class Step:
    """What a version changes."""

    adds: frozenset[str] = frozenset()
    removes: frozenset[str] = frozenset()


@dataclass(slots=True)
class Operation:
    """Something that somebody does; the last five attributes are its answer.

    Attributes:
        steps: the versions that it may make, in order; those of an acceptance follow from what it accepted.
        remark: the text of its comment or reply.
        target: the annotation that it decides or answers.
        sent, ended: its place among all beginnings and ends of operations.
        state: the last state of its task; empty while it has none, `refused` if there is no task.
        task_id: its task.
        acknowledged: how many of its steps are known to be done; of what has no steps, 1 if it is.
        current: the current version after an undo or redo.
        accepted: the annotations that an acceptance accepted.
    """

    verb: Verb
    who: str
    steps: Sequence[Step] = ()
    remark: str = ""
    target: str = ""
    sent: int = 0
    ended: int = 0
    state: str = ""
    task_id: str = ""
    acknowledged: int = 0
    current: int = 0
    accepted: Sequence[str] = ()

    @property
    def done(self) -> bool:
        return self.state == "completed"

    def __str__(self) -> str:
        wrote = " ".join(sorted(word for step in self.steps for word in step.adds))
        return f"{self.verb} of {self.who} ({self.remark or wrote or self.target}; task {self.task_id}, {self.state})"


@dataclass(frozen=True, slots=True)
class Version:
    """A version that the server has. `parent` is 0 for none."""

    number: int
    parent: int
    task_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Left:
    """What a server has when all is over.

    Attributes:
        current: the number of the current version.
        annotations: as `GET …/annotations` has them, under `canvas`.
    """

    versions: Sequence[Version]
    current: int
    annotations: Sequence[Json] = ()

    @property
    def line(self) -> set[int]:
        """The current version and its ancestors."""
        parents = {version.number: version.parent for version in self.versions}
        found, at = set[int](), self.current
        while at in parents and at not in found:
            found.add(at)
            at = parents[at]
        return found


def faults(operations: Sequence[Operation], left: Left) -> list[str]:
    """Everything that is wrong, by the rules above."""
    return [
        *(f"{each} has no answer, or failed" for each in operations if each.state not in ANSWERS),
        *_version_faults(operations, left),
        *_line_faults(operations, left),
        *_annotation_faults(operations, left),
    ]


# -------------------------------------------------------------------------- versions (rule 2)


def _version_faults(operations: Sequence[Operation], left: Left) -> Iterator[str]:
    texts = {0: "", **{version.number: version.text for version in left.versions}}
    by_task = {each.task_id: each for each in operations if each.task_id}
    made: defaultdict[str, int] = defaultdict(int)
    """Steps of each task that are done or left out so far."""
    counted: Counter[str] = Counter()
    for version in left.versions:
        operation = by_task.get(version.task_id)
        if operation is None:
            yield f"version {version.number} was made by a task that nobody has begun: {version.task_id}"
            continue
        counted[version.task_id] += 1
        before = texts.get(version.parent, "")
        change = _change(before, version.text)
        steps = [*_steps(operation, left)][made[version.task_id] :]
        fits = [number for number, step in enumerate(steps) if _is_step(change, step, before)]
        if fits:
            made[version.task_id] += fits[0] + 1
        else:
            yield f"version {version.number} ({operation}) {_described(change)}, beyond its steps {steps}"
        yield from (f"version {version.number} {said}" for said in _disorder(before, version.text))
    for operation in operations:
        if counted[operation.task_id] < _expected(operation):
            yield f"lost: {operation} was acknowledged {_expected(operation)} times, made {counted[operation.task_id]}"


def _steps(operation: Operation, left: Left) -> Iterable[Step]:
    if operation.verb not in ACCEPTS:
        return operation.steps
    accepted = [each for each in left.annotations if each["annotationId"] in operation.accepted]
    old = frozenset(word for each in accepted for word in words(each["quote"]["exact"]))
    new = frozenset(word for each in accepted for word in words(each["replacement"]))
    return [Step(new - old, old - new)]


def _expected(operation: Operation) -> int:
    if operation.verb in ACCEPTS:
        return int(operation.done and bool(operation.accepted))
    return operation.acknowledged if operation.steps and operation.verb not in ANNOTATES else 0


def _change(before: str, after: str) -> Step:
    old, new = set(words(before)), set(words(after))
    return Step(frozenset(new - old), frozenset(old - new))


def _is_step(change: Step, step: Step, before: str) -> bool:
    # What another has removed meanwhile is not removed again.
    return change == Step(step.adds, step.removes & set(words(before)))


def _described(change: Step) -> str:
    return f"adds {sorted(change.adds)} and removes {sorted(change.removes)}"


def _disorder(before: str, after: str) -> Iterator[str]:
    twice = [word for word, count in Counter(words(after)).items() if count > 1]
    if twice:
        yield f"has words twice: {twice}"
    place = {word: number for number, word in enumerate(words(before))}
    kept = [place[word] for word in words(after) if word in place]
    if any(first > second for first, second in pairwise(kept)):
        yield "has words of its parent in another order"


# ------------------------------------------------------------------------- the line (rule 3)


def _line_faults(operations: Sequence[Operation], left: Left) -> Iterator[str]:
    by_task = {each.task_id: each for each in operations if each.task_id}
    moves = [each for each in operations if each.verb in MOVES and each.done]
    numbers = [version.number for version in left.versions]
    if numbers != [*range(1, len(numbers) + 1)]:
        yield f"the versions are numbered {numbers}"
        return
    for before, version in pairwise(left.versions):
        first, second = by_task.get(before.task_id), by_task.get(version.task_id)
        between = [
            each
            for each in moves
            if each.current == version.parent
            and (not first or each.ended > first.sent)
            and (not second or each.sent < second.ended)
        ]
        if version.parent != before.number and not between:
            yield f"version {version.number} ({second}) leaves {first} aside, and nobody has undone that"
    if left.versions and left.current != len(numbers):
        last = by_task.get(left.versions[-1].task_id)
        if not any(each.current == left.current and (not last or each.ended > last.sent) for each in moves):
            yield f"version {left.current} is current, not {len(numbers)} ({last}), and nobody has undone that"


# ---------------------------------------------------------------------- annotations (rule 4)


def _annotation_faults(operations: Sequence[Operation], left: Left) -> Iterator[str]:
    withdrawn = {each.target for each in operations if each.verb == "withdraw" and each.done}
    by_id = {each["annotationId"]: each for each in left.annotations}
    yield from (f"{each} was withdrawn and is there" for each in withdrawn & by_id.keys())
    yield from _made_faults(operations, left.annotations, withdrawn)
    for annotation in left.annotations:
        yield from _thread_faults(operations, annotation)
        yield from _state_faults(operations, annotation, left)
    for each in operations:
        if each.done and each.verb in ("reply", "resolve", "reject") and each.target not in {*by_id, *withdrawn}:
            yield f"lost: the annotation of {each}"


def _made_faults(operations: Sequence[Operation], made: Sequence[Json], withdrawn: set[str]) -> Iterator[str]:
    of_task: defaultdict[str, list[Json]] = defaultdict(list)
    for annotation in made:
        of_task[annotation["taskId"]].append(annotation)
    by_task = {each.task_id: each for each in operations if each.task_id and each.verb in ANNOTATES}
    for task, found in of_task.items():
        operation = by_task.get(task)
        if operation is None:
            yield f"an annotation was made by a task that nobody has begun for it: {found}"
        elif len(found) > 1:
            yield f"{operation} made {len(found)} annotations"
        else:
            yield from _content_faults(operation, found[0])
    for task, operation in by_task.items():
        if operation.acknowledged and task not in of_task and operation.target not in withdrawn:
            yield f"lost: {operation}"


def _content_faults(operation: Operation, annotation: Json) -> Iterator[str]:
    adds = set().union(*(step.adds for step in operation.steps))
    if operation.state == "refused":
        yield f"{operation} made an annotation"
    if adds != {*words(annotation.get("replacement", ""))} - {*words(annotation["quote"]["exact"])}:
        yield f"{operation} suggests {annotation.get('replacement')!r} for {annotation['quote']['exact']!r}"


def _thread_faults(operations: Sequence[Operation], annotation: Json) -> Iterator[str]:
    here = [each for each in operations if each.remark and _is_remark_of(each, annotation)]
    known, told = (
        Counter(each.remark for each in some) for some in (here, [each for each in here if each.acknowledged])
    )
    there = Counter(remark["text"] for remark in annotation["thread"])
    if there - known:
        yield f"the thread of {annotation['annotationId']} has more than was said: {there - known}"
    if told - there:
        yield f"lost: the remarks {told - there} of {annotation['annotationId']}"


def _is_remark_of(operation: Operation, annotation: Json) -> bool:
    if operation.verb in ANNOTATES:
        return bool(operation.task_id == annotation["taskId"])
    return bool(operation.target == annotation["annotationId"])


def _state_faults(operations: Sequence[Operation], annotation: Json, left: Left) -> Iterator[str]:
    about = [each for each in operations if each.target == annotation["annotationId"] and each.done]
    state, name = annotation["state"], annotation["annotationId"]
    by: Mapping[str, list[Operation]] = {
        "rejected": [each for each in about if each.verb == "reject"],
        "resolved": [each for each in about if each.verb == "resolve"],
        "accepted": [each for each in operations if name in each.accepted],
    }
    if state in by and not by[state]:
        yield f"{name} is {state}, and nobody has done that"
    if by["rejected"] and state != "rejected":
        yield f"lost: {name} was rejected and is {state}"
    for decided in by["resolved"]:
        reopened = any(each.verb == "reply" and each.ended > decided.sent for each in about)
        if state != "resolved" and not reopened:
            yield f"lost: {name} was resolved and is {state}"
    versions = {version.task_id: version.number for version in left.versions}
    holding = [each for each in by["accepted"] if versions.get(each.task_id) in left.line]
    if bool(holding) != (state == "accepted"):
        yield f"{name} is {state}; accepted by {[*map(str, by['accepted'])]}, of which {len(holding)} hold"


# ---------------------------------------------------------------------------- the record


@dataclass(slots=True)
class Ledger:
    """All operations, with the order of their beginnings and ends."""

    operations: list[Operation] = field(default_factory=list)
    _ticks: int = 0

    def begin(self, operation: Operation) -> None:
        self._ticks += 1
        operation.sent = self._ticks
        self.operations.append(operation)

    def end(self, operation: Operation) -> None:
        self._ticks += 1
        operation.ended = self._ticks
