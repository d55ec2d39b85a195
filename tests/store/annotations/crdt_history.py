"""Random histories of an artifact, and where a CRDT has its characters: the oracle for the places of annotations.

Each version has the state of a document of `pycrdt`: that of its parent, with what was typed. So a character is the
same one in every version that has it, also on other branches and after a restore.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from pycrdt import Assoc, Doc, StickyIndex, Text

from a2a_canvas.store.changes import Change, EditText, Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.errors import InvalidChange
from a2a_canvas.store.models import Document, Limits, Ref, TextEdit, text_part
from a2a_canvas.store.mutation import apply_change
from a2a_canvas.store.text.spans import Span, difference, splice
from a2a_canvas.store.tracking import ancestors

THEY = Ref("c", "a", "others")
SYLLABLES = ["ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wu"]
ROWS = ("- open", "- done", "", "    return None", "| a | b |")
"""Lines that occur several times in a document."""

Typed = tuple[Span, str]
"""What was typed in place of a range."""


@dataclass(frozen=True)
class _State:
    update: bytes
    clients: frozenset[int]
    """Of the versions that have made its characters."""


@dataclass
class CrdtHistory:
    """A document, and the CRDT's state of each of its versions."""

    document: Document = field(default_factory=lambda: Document("a"))
    _states: list[_State] = field(default_factory=list)
    _restored: bool = False

    def write(self, text: str) -> None:
        """Make the first version. The text is between two characters that are never deleted."""
        self._change(ReplaceParts((text_part(text),), last_chunk=True))
        self._states.append(_typed(None, 1, [(Span(0, 0), f"\x02{text}\x03")]))

    @property
    def text(self) -> str:
        return self.document.current_content.text

    def edit(self, span: Span, text: str, *, typed_again: bool = False) -> None:
        """Replace a range.

        Args:
            typed_again: characters that the new text begins or ends with as the old one are other characters.
        """
        self._type(EditText(span, text, self.document.current), [(span, text)], typed_again=typed_again)

    def accept(self, edits: Sequence[Typed]) -> None:
        """Replace several ranges at once, given in order, as accepting suggestions does."""
        known = tuple(TextEdit(span, len(new)) for span, new in edits)
        changed = difference(self.text, _after(self.text, edits[::-1]))
        change = EditText(*changed, self.document.current, passage=False, edits=known)
        self._type(change, edits[::-1], typed_again=True)

    def put(self, typed: Sequence[Typed]) -> None:
        """Save the whole text after something was typed."""
        changed = difference(self.text, _after(self.text, typed))
        self._type(EditText(*changed, self.document.current, passage=False), typed)

    def rewrite(self, typed: Sequence[Typed]) -> None:
        """Replace the whole text, as a model does."""
        self._type(ReplaceParts((text_part(_after(self.text, typed)),), last_chunk=True), typed)

    def restore(self, number: int) -> None:
        self._change(Restore(number))
        self._restored = True
        self._states.append(self._states[number - 1])

    def move(self, step: Undo | Redo) -> None:
        """Undo or redo, if there is anything."""
        with suppress(InvalidChange):
            self._change(step)

    def stick(self, at: int) -> StickyIndex:
        """The character of the current version."""
        return _load(self._states[self.document.current - 1]).sticky_index(at + 1, Assoc.AFTER)

    def find(self, character: StickyIndex, version: int) -> int | None:
        """Where the character is in a version; None if it was deleted there, or never was in it."""
        state = self._states[version - 1]
        item = character.to_json()["item"]
        if item["client"] not in state.clients:
            return None
        text = _load(state)
        at = StickyIndex.decode(character.encode(), text).get_index()
        same = at < len(text) and text.sticky_index(at, Assoc.AFTER).to_json()["item"] == item
        return at - 1 if same else None

    def on_path(self, base: int) -> set[int]:
        """The versions to look at between one and the current one: unless some were restored, the last shows it all."""
        if not self._restored:
            return {self.document.current}
        up, down = (set(ancestors(self.document.versions, each)) for each in (base, self.document.current))
        return (up ^ down) | {max(up & down)} - {0}

    def _type(self, change: Change, typed: Sequence[Typed], *, typed_again: bool = False) -> None:
        before = self._states[self.document.current - 1]
        typed = typed if typed_again else _trim_typed(self.text, typed)
        self._change(change)
        client = len(self.document.versions)
        self._states.append(_typed(before, client, [(Span(s.start + 1, s.end + 1), text) for s, text in typed]))

    def _change(self, change: Change) -> None:
        self.document = apply_change(self.document, THEY, change, Limits())[0]


def _after(text: str, typed: Sequence[Typed]) -> str:
    for span, new in typed:
        text = splice(text, span, new)
    return text


def _trim_typed(text: str, typed: Sequence[Typed]) -> list[Typed]:
    """What is typed again at the beginning or the end of a range is the same."""
    trimmed = []
    for span, new in typed:
        inner, new = difference(span.extract(text), new)
        trimmed.append((Span(span.start + inner.start, span.start + inner.end), new))
    return trimmed


@lru_cache(maxsize=100)
def _load(state: _State) -> Text:
    doc = Doc()
    doc.apply_update(state.update)
    return doc.get("text", type=Text)


def _typed(before: _State | None, client: int, typed: Sequence[Typed]) -> _State:
    doc = Doc(client_id=client)
    if before:
        doc.apply_update(before.update)
    text = doc.get("text", type=Text)
    for span, new in typed:
        del text[span.start : span.end]
        text.insert(span.start, new)
    return _State(doc.get_update(), (before.clients if before else frozenset()) | {client})


# --------------------------------------------------------------------------- random histories


def random_text(random: random.Random) -> str:
    """Lines of prose, among them some that are equal."""
    lines = (random.choice(ROWS) if random.random() < 0.25 else _sentence(random) for _ in range(random.randint(4, 30)))
    return "\n".join(lines) + "\n"


def random_span(random: random.Random, text: str) -> Span:
    """Words, lines, any characters, or a point."""
    start = random.randint(0, len(text))
    end = min(len(text), start + random.choice((0, 1, 3, 10, 40, 200)))
    if random.random() < 0.75:
        while start and not text[start - 1].isspace():
            start -= 1
        while end < len(text) and not text[end].isspace():
            end += 1
    return Span(start, end)


def random_typed(random: random.Random, text: str, most: int) -> list[Typed]:
    """Up to `most` places, from the end to the beginning, so that none shifts another."""
    typed: list[Typed] = []
    limit = len(text) + 1
    for span in sorted((random_span(random, text) for _ in range(random.randint(1, most))), key=_start, reverse=True):
        if span.end < limit:
            typed.append(
                (span, random.choice(("", "x", _word(random) + " ", _sentence(random), _sentence(random) + "\n")))
            )
            limit = span.start
    return typed


def random_step(random: random.Random, it: CrdtHistory) -> None:
    kind = random.choices(("edit", "put", "rewrite", "undo", "redo", "restore"), (8, 5, 3, 3, 1, 1))[0]
    if kind == "edit":
        it.edit(*random_typed(random, it.text, 1)[0])
    elif kind == "put":
        it.put(random_typed(random, it.text, 2))
    elif kind == "rewrite":
        it.rewrite(random_typed(random, it.text, 4))
    elif kind == "restore":
        it.restore(random.randint(1, len(it.document.versions)))
    else:
        it.move(Undo() if kind == "undo" else Redo())


def _start(span: Span) -> int:
    return span.start


def _word(random: random.Random) -> str:
    return "".join(random.choices(SYLLABLES, k=random.randint(1, 3)))


def _sentence(random: random.Random) -> str:
    return " ".join(_word(random) for _ in range(random.randint(2, 10))) + random.choice(".,;")
