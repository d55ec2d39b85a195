"""Incremental JSON decoder: fragments of one text in, cut anywhere; events out as soon as possible.

Rule 1: pure. No IO, no clock; the output depends on the text alone. The cut decides only how a string is
        divided into deltas.
Rule 2: the value is the one that `json.loads` gives. Three things are stricter: NaN and the infinities are
        refused (RFC 8259 has none), so are numbers that overflow to them, and nesting has a limit.
Rule 3: the cost of a fragment is proportional to the fragment. Text is scanned in runs, by regular
        expressions, and never twice: at most 11 undecided characters are held back
        (a high surrogate and five characters of its partner); a long number waits in pieces.
Rule 4: order. `Begin`, then the `Delta`s, then the `Value` of one path; children before their container.
Rule 5: no recursion; nesting lives in a list.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from a2a_canvas.store.models import JsonValue

Path = tuple[str | int, ...]
"""Keys and list indices from the top; `()` is the top-level value."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A container or a string value has begun; there is no such event for keys and other scalars."""

    path: Path
    kind: Literal["object", "array", "string"]


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of the string at `path`, decoded and never empty; at most one per string and feed."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """The value at `path` is complete. Containers hold their children's values: read only."""

    path: Path
    value: JsonValue


JsonEvent = Begin | Delta | Value


class JsonError(ValueError):
    """The text is not JSON, or exceeds the limits.

    Args:
        position: 0-based offset in the whole text, in characters. For a bad number, literal or escape it is its first
            character; for an unfinished text its length. It does not depend on the cut.
        reason: for the author of the text.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"{reason} at character {position}")
        self.position = position
        self.reason = reason


class _State(StrEnum):
    """The tokens allowed next. The text of a state completes the sentence "expected …"."""

    VALUE = "a value"
    FIRST_ITEM = "a value or ']'"
    FIRST_KEY = "a key in double quotes or '}'"
    KEY = "a key in double quotes"
    COLON = "':'"
    AFTER_ITEM = "',' or ']'"
    AFTER_MEMBER = "',' or '}'"
    END = "the end of the text"
    IN_STRING = "the rest of a string"
    IN_KEY = "the rest of a key"
    IN_NUMBER = "the rest of a number"


@dataclass(slots=True)
class _Open:
    """A container that has begun: `key` is the member being read, if it is an object."""

    path: Path
    value: dict[str, JsonValue] | list[JsonValue]
    key: str = ""

    def here(self) -> Path:
        return (*self.path, self.key if isinstance(self.value, dict) else len(self.value))

    def put(self, value: JsonValue) -> _State:
        if isinstance(self.value, dict):
            self.value[self.key] = value
            return _State.AFTER_MEMBER
        self.value.append(value)
        return _State.AFTER_ITEM


_HEX = "[0-9a-fA-F]"
_HIGH = rf"[dD][89abAB]{_HEX}{{2}}"
_CUT_LOW = rf"(?:\\(?:u(?:[dD](?:[c-fC-F]{_HEX}?)?)?)?)?\Z"

# Whole characters of a string; a high surrogate only when its partner is there or can no longer come.
# Bounded, because the engine keeps 100 bytes for every turn of the group while it matches; not possessive,
# because before Python 3.11.5 a possessive group can accept half an escape.
_CHARACTERS = re.compile(rf'(?:[^"\\\x00-\x1f]+|\\["\\/bfnrt]|\\u(?!{_HIGH}{_CUT_LOW}){_HEX}{{4}}){{1,1000}}')
_CUT_ESCAPE = re.compile(rf"\\(?:u(?:{_HIGH}{_CUT_LOW}|{_HEX}{{0,3}}))?\Z")
_NOT_BLANK = re.compile(r"[^ \t\n\r]")
_NUMBER_RUN = re.compile(r"[-+.0-9eE]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)((?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)")
_LITERALS: dict[str, tuple[str, JsonValue]] = {
    "t": ("true", True),
    "f": ("false", False),
    "n": ("null", None),
}

_decode = json.JSONDecoder().raw_decode


class JsonStream:
    """Decodes one JSON text that arrives in fragments.

    Args:
        max_depth: how many containers may be open at once.
    """

    def __init__(self, *, max_depth: int = 100) -> None:
        self._max_depth = max_depth
        self._state = _State.VALUE
        self._stack: list[_Open] = []
        self._events: list[JsonEvent] = []
        self._path: Path = ()
        self._pieces: list[str] = []
        self._held = ""
        self._length = 0
        self._offset = 0
        self._token_start = 0
        self._value: JsonValue = None
        self._error: JsonError | None = None

    @property
    def done(self) -> bool:
        """Whether the value is complete. Only whitespace may follow."""
        return self._state is _State.END and self._error is None

    @property
    def value(self) -> JsonValue:
        """The whole value.

        Raises:
            JsonError: the text was malformed, or the value is not complete yet.
        """
        self._raise_again()
        if not self.done:
            raise JsonError(self._length, "the value is not complete")
        return self._value

    def feed(self, fragment: str) -> list[JsonEvent]:
        """The events that follow from `fragment`, the next piece of the text.

        Raises:
            JsonError: the text is malformed; every later call raises it again. The events of the same fragment before
                the error are lost.
        """
        self._raise_again()
        text = self._held + fragment
        self._offset = self._length - len(self._held)
        self._length += len(fragment)
        self._held = ""
        events: list[JsonEvent] = []
        self._events = events
        position, size = 0, len(text)
        while position < size:
            position = _STEPS[self._state](self, text, position)
        return events

    def finish(self) -> list[JsonEvent]:
        """The end of the text. Returns the events that waited for it (a number at the top level).

        Raises:
            JsonError: the value is unfinished, or nothing came.
        """
        self._raise_again()
        self._events = []
        if self._state is _State.IN_NUMBER and not self._stack:
            self._end_number()
        if not self.done:
            raise self._fail(self._length, f"unexpected end of text, expected {self._state}")
        return self._events

    def _raise_again(self) -> None:
        if self._error is not None:
            raise self._error.with_traceback(None)

    def _fail(self, position: int, reason: str) -> JsonError:
        self._error = JsonError(position, reason)
        return self._error

    def _here(self) -> Path:
        return self._stack[-1].here() if self._stack else ()

    def _complete(self, path: Path, value: JsonValue) -> None:
        self._events.append(Value(path, value))
        if self._stack:
            self._state = self._stack[-1].put(value)
        else:
            self._value, self._state = value, _State.END

    # Steps: each takes the text and a position in it, and returns the position to continue from.

    def _between(self, text: str, position: int) -> int:
        found = _NOT_BLANK.search(text, position)
        if found is None:
            return len(text)
        action = _TABLE[self._state].get(found[0])
        if action is None:
            raise self._fail(self._offset + found.start(), f"expected {self._state}")
        return action(self, text, found.start())

    def _string(self, text: str, position: int) -> int:
        end = position
        while run := _CHARACTERS.match(text, end):
            end = run.end()
        if end > position:
            raw = text[position:end]
            piece: str = _decode(f'"{raw}"')[0] if "\\" in raw else raw
            self._pieces.append(piece)
            if self._state is _State.IN_STRING:
                self._events.append(Delta(self._path, piece))
        return end if end == len(text) else self._end_run(text, end)

    def _end_run(self, text: str, position: int) -> int:
        if text[position] == '"':
            self._end_string("".join(self._pieces))
            return position + 1
        if _CUT_ESCAPE.match(text, position):
            return self._hold(text, position)
        fault = "invalid escape" if text[position] == "\\" else "unescaped control character"
        raise self._fail(self._offset + position, f"{fault} in a string")

    def _end_string(self, string: str) -> None:
        if self._state is _State.IN_STRING:
            self._complete(self._path, string)
        else:
            self._stack[-1].key, self._state = string, _State.COLON

    def _number(self, text: str, position: int) -> int:
        run = _NUMBER_RUN.match(text, position)
        if run is not None:
            self._pieces.append(run[0])
            position = run.end()
        if position < len(text):
            self._end_number()
        return position

    def _end_number(self) -> None:
        digits = "".join(self._pieces)
        form = _NUMBER.fullmatch(digits)
        if form is None:
            raise self._fail(self._token_start, "invalid number")
        try:
            number = float(digits) if form[1] else int(digits)
        except ValueError:  # sys.set_int_max_str_digits
            raise self._fail(self._token_start, "number with too many digits") from None
        if form[1] and math.isinf(number):
            raise self._fail(self._token_start, "number too large")
        self._complete(self._here(), number)

    def _hold(self, text: str, position: int) -> int:
        self._held = text[position:]
        return len(text)

    # Actions: the same, for the character that the table names.

    def _begin_string(self, text: str, position: int) -> int:
        self._path, self._pieces, self._state = self._here(), [], _State.IN_STRING
        self._events.append(Begin(self._path, "string"))
        return position + 1

    def _begin_key(self, text: str, position: int) -> int:
        self._pieces, self._state = [], _State.IN_KEY
        return position + 1

    def _begin_number(self, text: str, position: int) -> int:
        self._token_start = self._offset + position
        self._pieces, self._state = [], _State.IN_NUMBER
        return position

    def _literal(self, text: str, position: int) -> int:
        word, value = _LITERALS[text[position]]
        if text.startswith(word, position):
            self._complete(self._here(), value)
            return position + len(word)
        if word.startswith(text[position : position + len(word)]):
            return self._hold(text, position)
        raise self._fail(self._offset + position, f"expected {self._state}")

    def _open(self, text: str, position: int) -> int:
        if len(self._stack) >= self._max_depth:
            raise self._fail(self._offset + position, f"nested deeper than {self._max_depth}")
        opened = _Open(self._here(), {} if text[position] == "{" else [])
        self._state = _State.FIRST_KEY if text[position] == "{" else _State.FIRST_ITEM
        self._events.append(Begin(opened.path, "object" if text[position] == "{" else "array"))
        self._stack.append(opened)
        return position + 1

    def _close(self, text: str, position: int) -> int:
        closed = self._stack.pop()
        self._complete(closed.path, closed.value)
        return position + 1


_Step = Callable[[JsonStream, str, int], int]


def _to(state: _State) -> _Step:
    def step(stream: JsonStream, text: str, position: int) -> int:
        stream._state = state
        return position + 1

    return step


_BEGIN_VALUE: Mapping[str, _Step] = {
    "{": JsonStream._open,
    "[": JsonStream._open,
    '"': JsonStream._begin_string,
    **dict.fromkeys("-0123456789", JsonStream._begin_number),
    **dict.fromkeys(_LITERALS, JsonStream._literal),
}

# The grammar: the characters allowed between the tokens in each state. Anything else is an error.
_TABLE: Mapping[_State, Mapping[str, _Step]] = {
    _State.VALUE: _BEGIN_VALUE,
    _State.FIRST_ITEM: {**_BEGIN_VALUE, "]": JsonStream._close},
    _State.FIRST_KEY: {'"': JsonStream._begin_key, "}": JsonStream._close},
    _State.KEY: {'"': JsonStream._begin_key},
    _State.COLON: {":": _to(_State.VALUE)},
    _State.AFTER_ITEM: {",": _to(_State.VALUE), "]": JsonStream._close},
    _State.AFTER_MEMBER: {",": _to(_State.KEY), "}": JsonStream._close},
    _State.END: {},
}
_STEPS: Mapping[_State, _Step] = {
    **dict.fromkeys(_TABLE, JsonStream._between),
    _State.IN_STRING: JsonStream._string,
    _State.IN_KEY: JsonStream._string,
    _State.IN_NUMBER: JsonStream._number,
}
