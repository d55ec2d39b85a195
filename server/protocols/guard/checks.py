"""Checks headers and JSON: pure functions from bytes and headers to a value or a refusal.

Rules:
1. A check returns what it read, or a `Refusal`. A `Refusal` is a value: an A2A error, a sentence that says what to do
   next, the fields at fault. It never carries the text of an exception.
2. An error that A2A maps to an HTTP status has that status (400 for a wrong content type). A size, a path or a method
   that is refused has no A2A error of its own and gets HTTP's status.
3. JSON is read by the same rules in both bindings: UTF-8, no repeated keys (ProtoJSON forbids them), only numbers that
   a double can hold, only strings that UTF-8 can encode.
4. Depth: protobuf fails at 100 nested messages and one level of a `Struct` takes three of them, so a message
   35 levels deep parses but can no longer be copied into a task. Hence MAX_JSON_DEPTH.
5. Values are counted, and nesting and numbers measured, before anything else reads them, and counting stops at the
   limit: the cost of a body does not depend on its size.
6. The server speaks 0.3 and 1.0, with any patch number. A request without a version counts as 0.3 (A2A 3.6.2).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    VersionNotSupportedError,
)

from a2a_canvas.server.protocols.edge.availability import SECONDS
from a2a_canvas.server.protocols.guard.parsing import SMALL_BODY_BYTES
from a2a_canvas.store.models import JsonValue
from a2a_canvas.store.text.wording import format_value

MAX_JSON_DEPTH = 32
MAX_VALUES = 10_000
"""Values in one request. Each takes about 25 µs of the event loop on its way to the task and back."""

MAX_ITEMS = 1000
"""Messages in one list, such as the parts of a message. A dozen functions read and write each of them on its way to the
task and back."""

MAX_NUMBER = 1000
"""Characters of one number. Python takes a second to read ten million digits, and nothing else runs meanwhile."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """The limits of a request.

    Raises ValueError when a limit is out of range.

    Attributes:
        max_body_bytes: bytes of its body.
        max_bodies_bytes: bytes of all bodies that are being received or processed at once.
        max_text_bytes: bytes of the text and data in a message; files and edits by hand have limits of their own.
        max_depth: levels of nested arrays and objects, at most MAX_JSON_DEPTH.
    """

    max_body_bytes: int = 10 * 2**20
    max_bodies_bytes: int = 64 * 2**20
    max_text_bytes: int = 2**20
    max_depth: int = MAX_JSON_DEPTH

    def __post_init__(self) -> None:
        if self.max_body_bytes < 1:
            raise ValueError(f"max_body_bytes is {self.max_body_bytes}; it has to be 1 or more")
        if not 1 <= self.max_depth <= MAX_JSON_DEPTH:
            raise ValueError(f"max_depth is {self.max_depth}; it has to be between 1 and {MAX_JSON_DEPTH}")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused.

    Attributes:
        fields: pairs of a path and the rest of a sentence about it.
        http_status: where A2A has none.
        retry_after: seconds, if a retry succeeds later than usual (`edge/availability.py`).
        headers: of the answer over HTTP.
    """

    kind: type[A2AError]
    message: str
    fields: tuple[tuple[str, str], ...] = ()
    http_status: int | None = None
    retry_after: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_error(cls, error: A2AError) -> Refusal:
        """An error as a refusal, without the fields at fault."""
        return cls(type(error), error.message, retry_after=(error.data or {}).get(SECONDS))

    def error(self) -> A2AError:
        """The refusal as the SDK's error, with the fields in the form that it turns into a `BadRequest` detail."""
        errors = [{"field": path, "message": f"{reason}."} for path, reason in self.fields]
        data = {"errors": errors} if errors else {}
        delay = {SECONDS: self.retry_after} if self.retry_after is not None else {}
        return self.kind(self.message, data | delay or None)


def invalid(fields: Sequence[tuple[str, str]]) -> Refusal:
    """InvalidParams with what is wrong with each field, in the message and as details."""
    text = "; ".join(f"{path} {reason}" for path, reason in fields)
    return Refusal(InvalidParamsError, f"{text}.", tuple(fields))


def too_deep(limits: BodyLimits) -> Refusal:
    """The refusal of a request over `max_depth`."""
    return Refusal(InvalidRequestError, f"Nested deeper than {limits.max_depth} levels; send a flatter structure")


def too_large(most: int) -> Refusal:
    """The refusal of a body over a limit (HTTP 413)."""
    small = "only messages may be larger"
    advice = (
        small if most <= SMALL_BODY_BYTES else "send less, send URLs of files, or ask for a higher --max-body-bytes"
    )
    text = f"Body is larger than {most} bytes; {advice}"
    return Refusal(InvalidRequestError, text, http_status=413)


def too_many_values(most: int = MAX_VALUES) -> Refusal:
    """The refusal of a request with more values than `most`."""
    return Refusal(InvalidRequestError, f"More than {most} values in one request; send large data as a file")


def too_many_items(path: str, count: int) -> Refusal:
    """The refusal of a list with more messages than MAX_ITEMS."""
    return invalid([(path, f"has {count} items and may have {MAX_ITEMS}; send them in several messages")])


def check_content_type(header: str | None) -> Refusal | None:
    """Requires the Content-Type of a body to be JSON, by one of A2A's two names, whatever its parameters."""
    if (header or "").partition(";")[0].strip().lower() in ("application/json", "application/a2a+json"):
        return None
    given = f"has Content-Type {format_value(header)}" if header else "has no Content-Type"
    text = f"The body {given}; send it with application/json or application/a2a+json"
    return Refusal(ContentTypeNotSupportedError, text)


def check_content_encoding(header: str | None) -> Refusal | None:
    """Refuses a body with a Content-Encoding (HTTP 415)."""
    if (header or "identity").strip().lower() == "identity":
        return None
    text = f"The body has Content-Encoding {format_value(header)}; send it without"
    return Refusal(ContentTypeNotSupportedError, text, http_status=415, headers={"accept-encoding": "identity"})


def check_version(header: str | None, target: str | None = None, called: str = "") -> Refusal | None:
    """Checks A2A-Version against the versions that the server speaks, and against the target's if it has one.

    Args:
        header: A2A-Version from the header or the query.
        called: the target, as the sender wrote it.
    """
    if not re.fullmatch(r"(0\.3|1\.0)(\.[0-9]+)?", header or "0.3"):
        text = (
            f"A2A-Version is {format_value(header)}, which is not supported; send A2A-Version: 1.0 or A2A-Version: 0.3"
        )
        return Refusal(VersionNotSupportedError, text)
    declared = "0.3" if (header or "0.3").startswith("0") else "1.0"
    if target is None or declared == target:
        return None
    declared_by = f"A2A-Version says {declared}" if header else "without the header A2A-Version it counts as 0.3"
    text = f"{called} belongs to A2A {target}, but {declared_by}; send A2A-Version: {target}"
    return Refusal(VersionNotSupportedError, text)


# ---------------------------------------------------------------- JSON


class _JsonRefused(Exception):
    """Carries a refusal out of the JSON parser's hooks."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


# The closing quote is optional so that an open string is consumed to the end, once, and not tried again from every
# quote in it; the possessive quantifiers keep the scan linear. All other characters are consumed in one go, for speed.
_TOKEN = re.compile(r'"[^"]*+"?|[\[{]|[\]}]|,|[^"\[{\]},]++')
_TOKENS_PER_VALUE = 10
"""Its brackets, comma, key, colon and text, with white space between them: JSON never needs more."""
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def check_json(body: bytes, limits: BodyLimits, max_values: int = MAX_VALUES) -> JsonValue | Refusal:
    """The JSON text in `body` as a value that protobuf can hold, or why it is not one (rules 3 and 4)."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        return Refusal(JSONParseError, f"Body is not UTF-8: byte {error.start} is wrong; encode the JSON as UTF-8")
    if refusal := _check_size(text, limits, max_values):
        return refusal
    try:
        value: JsonValue = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_parse_finite,
            parse_int=_parse_whole,
            object_pairs_hook=_build_object,
        )
        if _SURROGATE_ESCAPE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except _JsonRefused as refused:
        return refused.refusal
    except UnicodeEncodeError:
        return Refusal(InvalidRequestError, r"A string has half of a \uD800-\uDFFF pair; send both halves")
    except ValueError as error:
        if not text.strip():
            return Refusal(JSONParseError, "The body is empty, which is not JSON; send one JSON object")
        at = f"line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "a number"
        return Refusal(JSONParseError, f"Body is not JSON from {at} on; send one JSON object")
    return value


def _check_size(text: str, limits: BodyLimits, max_values: int) -> Refusal | None:
    depth = commas = opened = 0
    if "\\" in text:
        # Remove escaped quotes: one match of 10 MB of escapes would hold the interpreter for 0.1 s.
        text = text.replace("\\\\", "").replace('\\"', "")
    for number, token in enumerate(_TOKEN.finditer(text)):
        first = text[token.start()]
        opens = first in "[{"
        opened += opens
        depth += opens - (first in "]}")
        commas += first == ","
        if depth > limits.max_depth:
            return too_deep(limits)
        if commas >= max_values or opened > max_values or number > _TOKENS_PER_VALUE * max_values:
            return too_many_values(max_values)
        if depth < 0:
            break  # not JSON from here on
    return None


def _refuse_constant(name: str) -> float:
    raise _JsonRefused(Refusal(JSONParseError, f"{name} is not JSON; send null or a number"))


def _parse_finite(text: str) -> float:
    if len(text) > MAX_NUMBER:
        reason = f"A number has {len(text)} characters and may have {MAX_NUMBER}; send it as a string"
        raise _JsonRefused(Refusal(InvalidRequestError, reason))
    number = float(text)
    if math.isinf(number):
        raise _JsonRefused(Refusal(InvalidRequestError, f"{text[:40]} is too large for a double; send it as a string"))
    return number


def _parse_whole(text: str) -> int:
    _parse_finite(text)
    return int(text)


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        text = f"An object has the same key twice: {format_value(twice)}; send every key once"
        raise _JsonRefused(Refusal(InvalidRequestError, text))
    return found
