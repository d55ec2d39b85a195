"""What of an AG-UI agent's run becomes a document: what the operator declared, else a long answer. Pure.

Rule 1: `state.KEY…` is a text in the agent's state, `tool.NAME.ARGUMENT…` one in the input of its tool calls.
Rule 2: a state's text that begins with the known one is appended to, any other replaces it. The text that was sent with
        the run changes nothing: it is the document's own.
Rule 3: a tool's argument replaces the document with its first piece, and is appended to while it streams.
Rule 4: if nothing is declared, an answer of more than `LONG` lines is a document, which the reply names.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from a2a_canvas.server.tool_sources.document_names import document_name
from a2a_canvas.tools.json_stream import Begin, Delta, JsonError, JsonStream

LONG = 15


class DocumentRuleError(ValueError):
    """A declaration is not one; `str()` is one sentence that says what to write."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A change of a document."""

    name: str
    text: str
    append: bool


@dataclass(frozen=True, slots=True)
class DocumentRules:
    """The declared documents.

    Attributes:
        states: names of documents by the path in the state.
        arguments: names of documents by tool and path in its input.
    """

    states: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    arguments: Mapping[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.states or self.arguments)


def document_rules(declared: Mapping[str, str]) -> DocumentRules:
    """The rules that an operator declares, as `{"state.document": "report.md"}`.

    Raises:
        DocumentRuleError: one of them is not a rule.
    """
    states: dict[tuple[str, ...], str] = {}
    arguments: dict[tuple[str, tuple[str, ...]], str] = {}
    for source, name in declared.items():
        match source.split("."):
            case ["state", *path] if path and all(path) and name:
                states[tuple(path)] = name
            case ["tool", tool, *path] if tool and path and all(path) and name:
                arguments[tool, tuple(path)] = name
            case _:
                raise DocumentRuleError(
                    f'{source!r} = {name!r} names no document. Write "state.KEY" or "tool.NAME.ARGUMENT" = "FILE".'
                )
    return DocumentRules(states, arguments)


class Documents:
    """The documents of one run.

    Args:
        texts: of the documents that exist, by name.
    """

    def __init__(self, rules: DocumentRules, texts: Mapping[str, str]) -> None:
        self._rules = rules
        self.texts = {path: texts.get(name, "") for path, name in rules.states.items()}
        self._calls: dict[str, tuple[str, JsonStream]] = {}

    def of_state(self, state: Any) -> list[DocumentChange]:
        """The changes that a new state makes."""
        writes = []
        for path, name in self._rules.states.items():
            text, known = _value_at(state, path), self.texts[path]
            if isinstance(text, str) and text != known:
                append = text.startswith(known)
                writes.append(DocumentChange(name, text[len(known) :] if append else text, append))
                self.texts[path] = text
        return writes

    def begin_call(self, call_id: str, tool: str) -> None:
        """A tool call began."""
        if any(each == tool for each, _ in self._rules.arguments):
            self._calls[call_id] = (tool, JsonStream())

    def add_input(self, call_id: str, piece: str) -> list[DocumentChange]:
        """The changes that a piece of a call's input makes."""
        if call_id not in self._calls:
            return []
        tool, stream = self._calls[call_id]
        try:
            events = stream.feed(piece)
        except JsonError:
            del self._calls[call_id]
            return []
        writes = []
        for event in events:
            name = self._rules.arguments.get((tool, event.path))  # type: ignore[arg-type]
            match event:
                case Begin(kind="string") if name:
                    writes.append(DocumentChange(name, "", append=False))
                case Delta(text=text) if name:
                    writes.append(DocumentChange(name, text, append=True))
        return _join(writes)


def _join(writes: Sequence[DocumentChange]) -> list[DocumentChange]:
    """The changes with the first piece in that which replaces."""
    joined: list[DocumentChange] = []
    for write in writes:
        if joined and write.append and joined[-1].name == write.name:
            joined[-1] = DocumentChange(write.name, joined[-1].text + write.text, joined[-1].append)
        else:
            joined.append(write)
    return joined


def with_documents(state: Any, rules: DocumentRules, texts: Mapping[str, str]) -> Any:
    """The state to send: with the current texts of documents, which users may have edited."""
    state = copy.deepcopy(state)
    for path, name in rules.states.items():
        parent = _value_at(state, path[:-1])
        if isinstance(parent, dict) and name in texts and isinstance(parent.get(path[-1], ""), str):
            parent[path[-1]] = texts[name]
    return state


def _value_at(state: Any, path: Sequence[str]) -> Any:
    for key in path:
        if not isinstance(state, dict) or key not in state:
            return None
        state = state[key]
    return state


class LongAnswer:
    """The message of the reply that is being written.

    Attributes:
        name: of its document; empty while it is a reply.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._pieces: list[str] = []
        self._breaks = 0
        self._breaks_at_end = 0
        self._begun = False
        self.name = ""

    @property
    def text(self) -> str:
        """So far, while it is a reply."""
        return "".join(self._pieces)

    def feed(self, piece: str, *, stays: bool = False) -> DocumentChange | str:
        """The change of its document, or the text to reply. The first change has the text so far.

        Args:
            stays: what has been replied cannot be taken back now.
        """
        if self.name:
            return DocumentChange(self.name, piece, append=True)
        self._add(piece)
        if stays or self._breaks < LONG:
            return piece
        self.name = document_name(self.text, self._agent)
        return DocumentChange(self.name, self.text, append=False)

    def _add(self, piece: str) -> None:
        """Count the line breaks between what is not blank, each piece alone: an answer may be one long line."""
        self._pieces.append(piece)
        breaks = self._breaks_at_end if self._begun else 0
        if inner := piece.rstrip():
            self._breaks += breaks + (inner if self._begun else inner.lstrip()).count("\n")
            self._begun, breaks = True, 0
        self._breaks_at_end = breaks + piece[len(inner) :].count("\n")
