"""A turn of a rule with `change`: chooses the document, changes it, and reports. Pure.

Rule 1: one call per round: `artifact_list`, `artifact_read`, then the change. A failure is reported, and ends the turn.
Rule 2: the document is the one named (by id, name, or name without extension); else the text attached to the
        message, which becomes a document; else the one that the user is viewing; else the one changed last. If
        several are named, it asks which.
Rule 3: if the message names a passage, or the user has selected one, only that passage is changed, by `artifact_edit`;
        an addition is appended; any other change rewrites the document.
Rule 4: an impossible change is reported in one sentence, and nothing is changed. An edit then fails with that sentence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from a2a_canvas.server.agent.attachments import attachment_text, is_text, media_type_of
from a2a_canvas.server.agent.model import (
    Attachment,
    EditPrompt,
    ModelMessage,
    ModelText,
    NothingToChange,
    ToolResult,
    ToolUse,
)
from a2a_canvas.server.agent.models.script.current_turn import ScriptTurn
from a2a_canvas.server.agent.models.script.passages import NamedPassage, named_passage, without
from a2a_canvas.server.agent.models.script.placeholders import fill, parse_number, parse_whole_number
from a2a_canvas.server.agent.models.script.rules import ScriptRule
from a2a_canvas.server.agent.models.script.text_transforms import (
    OF_PASSAGES,
    STEPS,
    Passage,
    facts_of,
    transform,
)
from a2a_canvas.server.agent.text.file_language import language_of
from a2a_canvas.store.text.spans import Span, splice
from a2a_canvas.tools.json_values import value_of_json

Block = ModelText | ToolUse
JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Step:
    """A call of this turn and its result."""

    call: ToolUse
    content: str
    is_error: bool

    @property
    def value(self) -> Any:
        return value_of_json(self.content)


def change_blocks(rule: ScriptRule, turn: ScriptTurn, messages: Sequence[ModelMessage]) -> tuple[Block, ...]:
    """The next blocks of the turn."""
    steps = _steps(messages[turn.begin :])
    if not steps:
        return _call("artifact_list")
    last = steps[-1]
    change = _DocumentChange(rule, turn, steps, _first_attachment(messages[turn.begin]))
    if last.is_error:
        return say(change.describe_stop()) if change.made_steps else say_failure(last.content)
    match last.call.name:
        case "artifact_list" | "ask_user":
            return change.choose()
        case "artifact_read":
            return change.look() if rule.change in STEPS else change.make()
        case "artifact_restore":
            return change.again() or say(last.content)
        case _:
            return say(change.closing_words())


def change_selection(rule: ScriptRule, turn: ScriptTurn, edit: EditPrompt) -> str:
    """The reply to an edit.

    Raises:
        NothingToChange: the change does not apply to the selection.
    """
    replaces = bool(edit.selected) and edit.strategy == "replace"
    text = edit.selected.rstrip("\r\n") if replaces else ""
    around = edit.before + edit.selected + edit.after
    passage = Passage(text, edit.language, False, turn.groups or {}, rule.table, around)
    new = None if rule.change in STEPS else transform(rule.change or "", passage)
    if new is None:
        raise NothingToChange("I found nothing to change in this passage.")
    ends = edit.selected[len(text) :] if replaces else ""
    return new + ends if new else edit.deletion_mark


UNCHANGED = "Nothing is changed."
MAX_DIFF_LINES = 20


@dataclass(frozen=True, slots=True)
class _DocumentChange:
    rule: ScriptRule
    turn: ScriptTurn
    steps: Sequence[_Step]
    attached: JsonObject | None

    def choose(self) -> tuple[Block, ...]:
        entries = [entry for entry in self.steps[0].value or () if isinstance(entry, dict)]
        if not entries and not self._attachment_to_change:
            return say("There is no document yet. Ask me to write one first: “write a haiku about rain”.")
        answer = self.steps[-1].content if len(self.steps) > 1 else ""
        named = _find_named(entries, answer or self._words)
        if len(named) > 1:
            which = " or ".join(f"“{name_of(entry)}”" for entry in named)
            return _call("ask_user", question=f"Which document do you mean: {which}?")
        if answer and not named:
            return say(f"I know no document of that name. {UNCHANGED}")
        if not named and self._attachment_to_change:
            return self.make()
        looked_at = [entry for entry in entries if entry["artifact_id"] == self.turn.focus]
        return self._begin((named or looked_at or entries[-1:])[0])

    @property
    def _words(self) -> str:
        """The message without its quotations."""
        quoted = sorted(filter(None, (self.turn.groups or {}).values()), key=len, reverse=True)
        return reduce(lambda text, group: text.replace(group, " "), quoted, self.turn.text)

    def _begin(self, entry: JsonObject) -> tuple[Block, ...]:
        given = {"artifact_id": entry["artifact_id"]}
        match self.rule.change:
            case "undo" if self._wanted_steps > 1 and self._wanted_steps >= entry["version"]:
                where = f"“{name_of(entry)}” is at version {entry['version']}"
                return say(f"{where}: there are not {self._wanted_steps} changes to undo. {UNCHANGED}")
            case "undo":
                return _call("artifact_restore", **given)
            case "redo":
                return _call("artifact_restore", **given, redo=True)
            case "restore":
                return _call("artifact_restore", **given, version=self._version)
            case _:
                return _call("artifact_read", **given)

    @property
    def _version(self) -> int:
        """The number of the version that the message names; a word means the first."""
        named = (self.turn.groups or {})["version"]
        return parse_whole_number(named) if named.isdecimal() else 1

    @property
    def _wanted_steps(self) -> int:
        """The number of steps that the message requests."""
        return parse_number((self.turn.groups or {}).get("count", ""))

    @property
    def made_steps(self) -> tuple[_Step, ...]:
        """The undo, redo and restore steps made so far."""
        return tuple(step for step in self.steps if step.call.name == "artifact_restore" and not step.is_error)

    def again(self) -> tuple[Block, ...]:
        """Repeat the step until the requested number is reached."""
        made = self.made_steps
        return _call("artifact_restore", **made[-1].call.input) if len(made) < self._wanted_steps else ()

    def describe_stop(self) -> str:
        """The reply when a step fails after others."""
        return f"Only {len(self.made_steps)} of {self._wanted_steps} could be done. {self.made_steps[-1].content}"

    def look(self) -> tuple[Block, ...]:
        return self.compare() if self.rule.change == "compare" else say(self.closing_words())

    def compare(self) -> tuple[Block, ...]:
        current, *older = (step.value for step in self.steps if step.call.name == "artifact_read")
        if older:
            return say(_difference(older[0], current))
        if current["version"] < 2:
            return say(f"“{name_of(current)}” is as it was first written.")
        return _call("artifact_read", artifact_id=current["artifact_id"], version=current["version"] - 1)

    @property
    def _attachment_to_change(self) -> JsonObject | None:
        """The attached text, unless the change is a step between versions, which it does not have."""
        return None if self.rule.change in STEPS else self.attached

    @property
    def _document(self) -> JsonObject:
        """The document that was read, else the attached one."""
        read = [step.value for step in self.steps if step.call.name == "artifact_read"]
        return read[0] if read else self.attached or {}

    def make(self) -> tuple[Block, ...]:
        document = self._document
        part = _text_part(document)
        if not part or "note" in part:
            return say(f"“{name_of(document)}” has no text, or is too long for me. {UNCHANGED}")
        text, name = part["text"], self._passage
        span = name.find(text) if name else Span(0, len(text))
        if span is None:
            return say(f"“{name_of(document)}” has no {name and name.name}, so nothing is changed.")
        new = self._transform_span(document, text, span)
        if new is None:
            return say(f"I found nothing to change in “{name_of(document)}”.")
        if document is self.attached:
            return _update(document, part, "", splice(text, span if new else without(text, span), new))
        if name:
            old, edited = _quote_once(text, span if new else without(text, span), new)
            return _call("artifact_edit", artifact_id=document["artifact_id"], old_text=old, new_text=edited)
        return _update(document, part, text, new)

    def _transform_span(self, document: JsonObject, text: str, span: Span) -> str | None:
        """The new text of the span, with the line breaks at its end."""
        language = language_of(name_of(document), _text_part(document).get("mimeType", ""))
        old = span.extract(text)
        bare = old.rstrip("\r\n")
        passage = Passage(bare, language, self._passage is None, self.turn.groups or {}, self.rule.table, text)
        new = transform(self.rule.change or "", passage)
        return new and new + old[len(bare) :]

    @property
    def _passage(self) -> NamedPassage | None:
        named = named_passage(self.turn.text, self.turn.groups or {})
        if named or not self.turn.selected or self.rule.change not in OF_PASSAGES:
            return named
        return NamedPassage("selected passage", quote=self.turn.selected)

    def closing_words(self) -> str:
        document = self._document
        name = f"“{name_of(document)}”"
        named = self._passage
        where = f"The {named.name} of {name}" if named else name
        facts = {**(self.turn.groups or {}), **facts_of(_text_part(document)["text"]), "document": where}
        return fill(self.rule.say, facts)


def _first_attachment(message: ModelMessage) -> JsonObject | None:
    """The first text attached to the message, as a document."""
    files = (item for item in message.content if isinstance(item, Attachment) and is_text(item))
    file = next(files, None)
    if file is None:
        return None
    name = file.name or "attached.txt"
    told = media_type_of(file)
    part = {"kind": "text", "mimeType": told if told.startswith("text/") else "", "text": attachment_text(file)}
    return {"artifact_id": name.rpartition(".")[0] or name, "name": name, "parts": [part]}


def _steps(messages: Iterable[ModelMessage]) -> tuple[_Step, ...]:
    content = [item for message in messages for item in message.content]
    results = {item.tool_use_id: item for item in content if isinstance(item, ToolResult)}
    calls = [item for item in content if isinstance(item, ToolUse) and item.id in results]
    return tuple(_Step(call, results[call.id].content, results[call.id].is_error) for call in calls)


def say(text: str) -> tuple[Block, ...]:
    """The last words of a turn."""
    return (ModelText(text),)


def say_failure(reason: str) -> tuple[Block, ...]:
    """The end of a turn in which a call has failed."""
    return say(f"That did not work: {reason[:300]}")


def _call(name: str, **given: Any) -> tuple[Block, ...]:
    return (ToolUse("", name, given),)


def name_of(document: JsonObject) -> str:
    """What the user calls an artifact."""
    return str(document.get("name") or document["artifact_id"])


def _find_named(entries: Iterable[JsonObject], message: str) -> list[JsonObject]:
    """The documents that the message names, each once."""

    def is_named(entry: JsonObject) -> bool:
        name = name_of(entry)
        labels = (entry["artifact_id"], name, name.rpartition(".")[0])
        patterns = (rf"(?<![\w-]){re.escape(label)}(?![\w-])" for label in labels if len(label) > 2)
        return any(re.search(pattern, message, re.IGNORECASE) for pattern in patterns)

    return [entry for entry in entries if is_named(entry)]


def _text_part(document: JsonObject) -> JsonObject:
    return next((part for part in document["parts"] if part["kind"] == "text"), {})


def _update(document: JsonObject, part: JsonObject, old: str, new: str) -> tuple[Block, ...]:
    append = bool(old) and new.startswith(old)
    kept = {key: part[key] for key in ("mimeType", "metadata") if part.get(key)}
    written = {"kind": "text", **kept, "text": new[len(old) :] if append else new}
    artifact = {"artifact_id": document["artifact_id"], "name": name_of(document), "parts": [written]}
    return _call("artifact_update", append=append, last_chunk=True, artifact=artifact)


def _quote_once(text: str, span: Span, new: str) -> tuple[str, str]:
    """The text at `span` and its replacement, with enough context that the first occurs once."""
    around = 0
    while True:
        wide = Span(max(0, span.start - around), span.end + around)
        old = wide.extract(text)
        if text.find(old, text.find(old) + 1) < 0:
            return old, splice(old, Span(span.start - wide.start, span.end - wide.start), new)
        around = 2 * around or 16


def _difference(old: JsonObject, new: JsonObject) -> str:
    """The first lines of the diff between two versions."""
    before, after = (_text_part(document).get("text", "").splitlines() for document in (old, new))
    lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2 : 2 + MAX_DIFF_LINES]
    shown = "\n".join(["````diff", *lines, "````"])
    return f"Version {new['version']} of “{name_of(new)}” against version {old['version']}:\n\n{shown}"
