"""What is asked for in the crash test, what the scripted model says, and what an uninterrupted run leaves.

Rule 1: every text is made of numbered lines, no two alike, so that nothing can be missing, or there twice, unseen.
Rule 2: nothing guards a call or an operation from being done twice (there is no `baseVersion`): it would show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.server.faults.fault_scripts import CHUNK, calling, lines, update_call, write_script

Round = dict[str, Any]
"""As in a script."""

DELAY = 0.01
"""Seconds between two deltas."""
MORE, NOTED = "and more", "Noted."
"""What a user says while a task works, and what is replied if the task was about to end."""


@dataclass(frozen=True, slots=True)
class ScriptedTask:
    """One task.

    Attributes:
        says: what the user says; the rule that matches it has `rounds`.
        operation: what it has as metadata of `canvas:v1`.
        answers: what the user says when asked.
        more: whether the user says `MORE` while the task works.
        states: the text of each artifact after each completed change of it, in order.
        before: the text of one that an earlier task made; when an edit is cut off, it is shown as it was.
        reply: the last message.
    """

    says: str
    states: Mapping[str, Sequence[str]]
    reply: str
    rounds: Sequence[Round] = ()
    operation: Mapping[str, Any] | None = None
    answers: str = ""
    more: bool = False
    before: str = ""

    @property
    def calls(self) -> int:
        """How many calls of tools there are."""
        return sum(len(each.get("tools", ())) for each in self.rounds)

    @property
    def replies(self) -> Sequence[str]:
        """What may be the last message."""
        return (self.reply, NOTED) if self.more else (self.reply,)


@dataclass(frozen=True, slots=True)
class Scene:
    """Tasks of one context, one after the other.

    Attributes:
        versions: the texts of all versions of each artifact, after the last task.
    """

    name: str
    tasks: Sequence[ScriptedTask]
    versions: Mapping[str, Sequence[str]] = field(default_factory=dict)


def repeated(text: str) -> str:
    """The first line that is there twice; empty if there is none."""
    seen: set[str] = set()
    for line in text.splitlines():
        if line in seen:
            return line
        seen.add(line)
    return ""


def reached(states: Sequence[str], text: str) -> int | None:
    """How many changes are complete in a text that may have the beginning of the next one; None: no script wrote it."""
    for number in range(len(states), 0, -1):
        if text == states[number - 1] or _is_between(states[number - 1], text, states[number:]):
            return number
    return 0 if states[0].startswith(text) else None


def _is_between(done: str, text: str, later: Sequence[str]) -> bool:
    """Whether it is the beginning of what comes after `done`: of what is added to it, or of all that replaces it."""
    return (
        text != ""
        and bool(later)
        and later[0].startswith(text)
        and (text.startswith(done) or not later[0].startswith(done))
    )


# ----------------------------------------------------------------------------- scripts


def _edit(old: str, new: str) -> dict[str, Any]:
    return {"name": "artifact_edit", "input": {"artifact_id": "doc", "old_text": old, "new_text": new}}


def _calls(*calls: dict[str, Any]) -> Round:
    return calling(*calls, delay=DELAY)


def _says(text: str) -> Round:
    return {"chunk": CHUNK // 3, "delay": DELAY, "text": text}


def _long() -> Scene:
    a, b, c, d = (lines("long", 9 * number, 9) for number in range(4))
    rounds = (
        _calls(update_call("doc", a)),
        {"text": "So far, so good."} | _calls(update_call("doc", b, append=True), update_call("doc", c, append=True)),
        _calls(update_call("doc", d, append=True, last=True)),
        _says("The long one is written."),
    )
    states = {"doc": (a, a + b, a + b + c, a + b + c + d)}
    task = ScriptedTask("write long", states, "The long one is written.", rounds, more=True)
    return Scene("long", (task,), {"doc": (a + b + c + d,)})


def _two() -> Scene:
    left, right = ([lines(name, 9 * number, 9) for number in range(2)] for name in ("left", "right"))
    rounds = (
        _calls(update_call("left", left[0], last=True), update_call("right", right[0], last=True)),
        _calls(
            update_call("right", right[1], append=True, last=True), update_call("left", left[1], append=True, last=True)
        ),
        _says("Both are written."),
    )
    states = {"left": (left[0], "".join(left)), "right": (right[0], "".join(right))}
    return Scene("two", (ScriptedTask("write two", states, "Both are written.", rounds),), states)


def _edited() -> Scene:
    text, first, second = lines("edited", 0, 20), "edited 002: ebb", "edited 006: ebb and flow"
    after = text.replace(first, "edited 002: a slower ebb")
    last = after.replace(second, "edited 006: neither")
    rounds = (
        _calls(update_call("doc", text)),
        _calls(_edit(first, "edited 002: a slower ebb")),
        _calls(_edit(second, "edited 006: neither")),
        _says("It is edited."),
    )
    states = (text, after, last)
    return Scene("edited", (ScriptedTask("write and edit", {"doc": states}, "It is edited.", rounds),), {"doc": states})


def _replaced() -> Scene:
    first, second, end = lines("first", 0, 12), lines("second", 0, 12), lines("second", 12, 6)
    rounds = (
        _calls(update_call("doc", first)),
        _calls(update_call("doc", second)),
        _calls(update_call("doc", end, append=True)),
        _says("It is replaced."),
    )
    task = ScriptedTask("write twice", {"doc": (first, second, second + end)}, "It is replaced.", rounds)
    return Scene("replaced", (task,), {"doc": (first, second + end)})


def _asked() -> Scene:
    before, after = lines("before", 0, 16), lines("after", 0, 16)
    rounds = (
        _calls(update_call("doc", before)),
        _calls({"name": "ask_user", "input": {"question": "Go on?"}}),
        _calls(update_call("doc", after, append=True, last=True)),
        _says("It has gone on."),
    )
    states = (before, before + after)
    task = ScriptedTask("write and ask", {"doc": states}, "It has gone on.", rounds, answers="yes, go on")
    return Scene("asked", (task,), {"doc": states})


def _person() -> Scene:
    first, second, third = (lines(name, 0, 12) for name in ("letter", "own words", "last words"))
    quote = "own words 003: ebb and flow"
    said = "own words 003: written by the model, and slowly"
    edited = second.replace(quote, said)
    at = second.index(quote)
    selection = {"start": at, "end": at + len(quote), "text": quote}
    told = "Saved doc as version", "Undone: doc is at version"
    tasks = (
        ScriptedTask(
            "write letter", {"doc": (first,)}, "Written.", (_calls(update_call("doc", first)), _says("Written."))
        ),
        _operation("put", f"{told[0]} 2.", second, text=second),
        _operation("undo", f"{told[1]} 1 again.", first),
        _operation("redo", "Redone: doc is at version 2 again.", second),
        ScriptedTask(
            "rewrite it slowly",
            {"doc": (edited,)},
            "Edited doc at line 4: version 3 is saved.",
            ({"text": said, "chunk": 1, "delay": DELAY},),
            {"op": "edit", "artifactId": "doc", "selection": selection},
            before=second,
        ),
        _operation("put", f"{told[0]} 4.", third, text=third),
        _operation("undo", f"{told[1]} 3 again.", edited),
        _operation("restore", "Restored version 1 of doc as version 5.", first, version=1),
    )
    return Scene("person", tasks, {"doc": (first, second, edited, third, first)})


def _operation(op: str, reply: str, after: str, **fields: Any) -> ScriptedTask:
    return ScriptedTask(op, {"doc": (after,)}, reply, operation={"op": op, "artifactId": "doc", **fields})


SCENES = (_long(), _two(), _edited(), _replaced(), _asked(), _person())


def crash_script() -> dict[str, Any]:
    """The rules of all scenes. A message that came with `MORE` is still the one that it was."""
    return {"rules": [*_rules(), {"match": {"text": f"^{MORE}$"}, "rounds": [_says(NOTED)]}]}


def write_crash_script(folder: Path) -> Path:
    """The script in a file."""
    return write_script(folder, crash_script())


def _rules() -> Iterator[dict[str, Any]]:
    for scene in SCENES:
        for task in scene.tasks:
            if task.rounds:
                yield {"match": {"text": rf"^{task.says}\b"}, "rounds": list(task.rounds)}
