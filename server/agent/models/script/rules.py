"""The rules of a script, read from YAML and checked completely before the first message.

Rule 1: an invalid script is rejected with `FILE:LINE: reason`, with the lines of the YAML nodes.
Rule 2: only the first error of the file is reported.
Rule 3: `values.py` has the forms of strings and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, PlainValidator, ValidationError, model_validator

from a2a_canvas.server.agent.models.script.placeholders import (
    BadValue,
    Count,
    Groups,
    Input,
    Positive,
    Seconds,
    Strict,
    Words,
    fill,
)
from a2a_canvas.server.agent.models.script.text_transforms import CHANGES, NEEDED_GROUPS
from a2a_canvas.server.agent.models.script.yaml import ScriptError, Source, YamlPath
from a2a_canvas.server.agent.text.file_language import media_type_by_name

Items = TypeVar("Items", bound=Sequence[object])
M = TypeVar("M", bound=BaseModel)


def _regex(value: object) -> re.Pattern[str]:
    if not isinstance(value, str):
        raise BadValue("a regular expression is needed, as a string")
    try:
        return re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadValue(f"not a regular expression: {error}") from error


def _not_empty(items: Items) -> Items:
    if not items:
        raise BadValue("at least one is needed")
    return items


NotEmpty = AfterValidator(_not_empty)
Regex = Annotated[re.Pattern[str], PlainValidator(_regex)]


class RuleMatch(Strict):
    """When a rule applies: every given pattern occurs in its subject (`re.search`).

    `selection` is searched for in the selected text of an edit; no other message has one.
    """

    text: Regex | None = None
    message_id: Regex | None = None
    selection: Regex | None = None

    @model_validator(mode="after")
    def _at_least_one(self) -> RuleMatch:
        if self.text is None and self.message_id is None and self.selection is None:
            raise BadValue("`text`, `message_id` or `selection` is needed")
        return self

    @property
    def names(self) -> frozenset[str]:
        """The names of all groups."""
        return frozenset(name for p in (self.text, self.message_id, self.selection) if p for name in p.groupindex)

    def groups(self, text: str, message_id: str, selected: str | None = None) -> Groups | None:
        """The groups if the message matches, else None. Of patterns that name the same group, `text` wins.

        Args:
            text: what the message says; of an edit, its instruction.
            message_id: of the message.
            selected: the selected text, if the message is an edit.
        """
        found: dict[str, str] = {}
        subjects = ((self.message_id, message_id), (self.selection, selected), (self.text, text))
        for pattern, subject in subjects:
            if pattern is not None:
                hit = None if subject is None else pattern.search(subject)
                if hit is None:
                    return None
                found.update(hit.groupdict(default=""))
        return found


class ScriptCall(Strict):
    """One tool call."""

    name: Words
    input: Input = Field(default_factory=dict)


class ScriptFailure(Strict):
    """Break the stream after `after` deltas, for the first `times` tries, with HTTP status `status`."""

    status: Count
    after: Count = 0
    times: Count = 1


class ScriptDocument(Strict):
    """A text to write: short for a call of `artifact_update`. Its id is its name without the extension."""

    name: str
    text: Words
    description: str = ""

    def fill(self, groups: Groups) -> ScriptDocument:
        """Fill in the groups of its match."""
        new = {key: fill(value, groups) for key, value in self}
        return self.model_copy(update=new)

    @property
    def call(self) -> ScriptCall:
        media_type = media_type_by_name(self.name)
        part = {"kind": "text", **({"mimeType": media_type} if media_type else {}), "text": self.text}
        about = {"description": self.description} if self.description else {}
        head = {"artifact_id": self.name.rpartition(".")[0] or self.name, "name": self.name, **about}
        given = {"append": False, "last_chunk": True, "artifact": {**head, "parts": [part]}}
        return ScriptCall.model_construct(name="artifact_update", input=given)


class ScriptRound(Strict):
    """One answer of the model: thinking, then text, then calls; `chunk` characters per delta."""

    thinking: Words = ""
    text: Words = ""
    write: tuple[ScriptDocument, ...] = ()
    tools: tuple[ScriptCall, ...] = ()
    chunk: Positive = 20
    delay: Seconds = 0.0
    error: ScriptFailure | None = None

    @property
    def calls(self) -> tuple[ScriptCall, ...]:
        return (*(document.call for document in self.write), *self.tools)


def _check_change(name: str) -> str:
    if name not in CHANGES:
        raise BadValue(f"must be one of {', '.join(CHANGES)}")
    return name


def _by_pattern(value: object) -> object:
    return {"": value} if isinstance(value, str) else value


def _pattern(text: str) -> str:
    _regex(text)
    return text


Change = Annotated[str, AfterValidator(_check_change)]
Table = Annotated[dict[Annotated[str, AfterValidator(_pattern)], str], BeforeValidator(_by_pattern)]


class ScriptRule(Strict):
    """The reply to a matching message, round by round; or the `change` that it makes to a document.

    `answers` are matched against the answer to each question of the rounds: the first match replaces the remaining
    rounds. They stay in effect while it is played, unless it has its own.

    Attributes:
        once: the rule matches one message of a conversation.
        together: a message that asks for several such rules ("a plan and a checklist") gets what all of them write.
        change: the change to the document (`change_turn.py`), instead of rounds.
        table: texts for the change, by pattern; the first pattern found in the text counts.
        say: the reply after the change.
    """

    match: RuleMatch
    rounds: Annotated[tuple[ScriptRound, ...], NotEmpty] = ()
    answers: tuple[ScriptRule, ...] = ()
    once: bool = False
    together: bool = False
    change: Change | None = None
    table: Table = Field(default_factory=dict, alias="with")
    say: Words = "{document} is changed."

    @model_validator(mode="after")
    def _rounds_or_change(self) -> ScriptRule:
        if not self.rounds and self.change is None:
            raise BadValue("the key `rounds` is missing, or `change`")
        group = NEEDED_GROUPS.get(self.change or "")
        if group and group not in self.match.names:
            raise BadValue(f"the change `{self.change}` needs a group `{group}` of the match")
        for pattern, new in self.table.items() if self.change in ("rewrite", "code") else ():
            try:
                re.sub(pattern, new, "")
            except re.error as error:
                raise BadValue(f"not a replacement: {new} ({error})") from error
        return self


class _Outline(Strict):
    rules: Annotated[list[dict[str, Any]], NotEmpty]


class _Answers(Strict):
    answers: Annotated[list[dict[str, Any]], NotEmpty]


def read_rules(file: str) -> tuple[ScriptRule, ...]:
    """Read and check a whole script.

    Raises:
        ScriptError: it is missing, unreadable, or breaks a rule of the format.
    """
    source = Source.read(file)
    outline = _validate(_Outline, source.tree, source, ())
    return tuple(_rule(raw, source, ("rules", number)) for number, raw in enumerate(outline.rules))


def _rule(raw: dict[str, Any], source: Source, at: YamlPath, outer: frozenset[str] = frozenset()) -> ScriptRule:
    names = outer
    if "match" in raw:
        names |= _validate(RuleMatch, raw["match"], source, (*at, "match")).names
    own = {key: value for key, value in raw.items() if key != "answers"}
    rule = _validate(ScriptRule, own, source, at, names)
    if "answers" not in raw:
        return rule
    answers = _validate(_Answers, {"answers": raw["answers"]}, source, at).answers
    nested = (_rule(each, source, (*at, "answers", number), names) for number, each in enumerate(answers))
    return rule.model_copy(update={"answers": tuple(nested)})


def _validate(model: type[M], value: object, source: Source, at: YamlPath, names: frozenset[str] = frozenset()) -> M:
    try:
        return model.model_validate(value, context={"groups": names})
    except ValidationError as error:
        found = [
            (source.known_part((*at, *one["loc"], *one.get("ctx", {}).get("path", ()))), one)
            for one in error.errors(include_url=False)
        ]
    path, first = min(found, key=lambda one: source.lines[one[0]])
    reason = _reason(first["type"], first["msg"], str(first["loc"][-1]) if first["loc"] else "")
    where = ".".join(str(step) for step in path) or "the script"
    raise ScriptError(source.file, source.lines[path], f"{where}: {reason}")


_KEYS: Final = ("answers", *sorted({key for form in Strict.__subclasses__() for key in form.model_fields}))
"""All keys of scripts, wherever they belong."""


def _reason(kind: str, message: str, key: str) -> str:
    match kind:
        case "extra_forbidden":
            meant = get_close_matches(key, _KEYS, n=1)
            return f"unknown key `{key}`" + (f". Did you mean `{meant[0]}`?" if meant else "")
        case "missing":
            return f"the key `{key}` is missing"
        case "model_type" | "dict_type":
            return "a mapping is needed"
        case "list_type" | "tuple_type":
            return "a list is needed"
        case "string_type":
            return "a string is needed, or {repeat: STRING, times: N}"
        case _:
            return message.removeprefix("Value error, ")
