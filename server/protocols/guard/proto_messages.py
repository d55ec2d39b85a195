"""From JSON to the protobuf messages of A2A, and what a message must not hold. Pure.

Rules:
1. A message is parsed once, by protobuf's own parser, and checked: a handler takes it as it is.
2. protobuf's parser says in prose what it failed on. Which field that is, is found by parsing the fields one by one.
3. Fields have their JSON names, with the index in a list.
4. Unknown fields are ignored, for clients of a later minor version. An unknown name of an enum, a truth value for
   an enum, bytes that are not base64, or a truth value of a query that is none, the lenient parser would take for
   something else: they are refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2
from a2a.utils.errors import InvalidParamsError, InvalidRequestError
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from a2a_canvas.server.protocols.guard.checks import MAX_VALUES, BodyLimits, Refusal, invalid, too_deep

M = TypeVar("M", bound=Message)
Parser = Callable[[Mapping[str, Any], Message], object]
"""Reads an object of JSON, or a query, into a message; raises if it does not fit."""

_BASE64 = re.compile(r"(?:[\w+/-]{4})*(?:[\w+/-]{2,3}={0,2})?", re.ASCII)
_NO_FIT: Final = "Not what A2A defines for this field: check its type, its range and that only one alternative is set."


def parse_json(fields: Mapping[str, Any], message: Message) -> None:
    """The `Parser` of an object of JSON."""
    ParseDict(dict(fields), message, ignore_unknown_fields=True)


def parse_params(params: object, kind: type[M], limits: BodyLimits, parse: Parser = parse_json) -> M | Refusal:
    """The message of a request, or why its params are none."""
    if not isinstance(params, Mapping):
        return Refusal(InvalidParamsError, "Invalid params: send an object")
    message = kind()
    if not _fits(params, message, parse):
        return invalid(((_fault_path(params, kind, parse), _NO_FIT),))
    if refusal := check_message(message, limits, from_json=True):
        return refusal
    misread = next(_misread(params, message.DESCRIPTOR), None)
    return invalid((misread,)) if misread else message


def _fits(params: Mapping[str, Any], message: Message, parse: Parser) -> bool:
    try:
        parse(params, message)
    # json_format lets out whatever goes wrong inside it (TypeError, AttributeError, ...), not only its ParseError.
    except Exception:
        return False
    return True


def _fault_path(params: Mapping[str, Any], kind: type[Message], parse: Parser) -> str:
    """The innermost field that does not parse by itself; empty if each does, as two alternatives of a oneof do."""
    for field, name, value in _fields(params, kind.DESCRIPTOR):
        if not _fits({name: value}, kind(), parse):
            return _fault_in(field, name, value, kind)
    return ""


def _fault_in(field: FieldDescriptor, name: str, value: Any, kind: type[Message]) -> str:
    index = None
    if field.is_repeated and isinstance(value, list):
        index = next((n for n, item in enumerate(value) if not _fits({name: [item]}, kind(), parse_json)), None)
    item = value if index is None else value[index]
    inner = _inner(field)
    below = _fault_path(item, GetMessageClass(inner), parse_json) if inner and isinstance(item, dict) else ""
    return _path(field, index, below)


def _misread(params: Mapping[str, Any], descriptor: Descriptor | Any) -> Iterator[tuple[str, str]]:
    """What the lenient parser takes for something else (rule 4)."""
    for field, _, given in _fields(params, descriptor):
        for index, value in _items(field, given):
            inner = _inner(field)
            if field.enum_type and not _is_member(value, field.enum_type):
                yield _path(field, index), f"Not one of {', '.join(field.enum_type.values_by_name)}."
            elif field.type == field.TYPE_BOOL and isinstance(value, str) and value.lower() not in ("true", "false"):
                yield _path(field, index), "Not true or false."
            elif field.type == field.TYPE_BYTES and isinstance(value, str) and not _BASE64.fullmatch(value):
                yield _path(field, index), "Not base64."
            elif inner and isinstance(value, dict):
                yield from ((_path(field, index, path), fault) for path, fault in _misread(value, inner))


def _fields(params: Mapping[str, Any], descriptor: Descriptor | Any) -> Iterator[tuple[FieldDescriptor, str, Any]]:
    """The known fields of an object: ProtoJSON takes a field by its JSON name and by its name in the definition."""
    fields = {name: field for field in descriptor.fields for name in (field.json_name, field.name)}
    return ((fields[name], name, value) for name, value in params.items() if name in fields)


def _items(field: FieldDescriptor, value: Any) -> Iterator[tuple[int | None, Any]]:
    return enumerate(value) if field.is_repeated and isinstance(value, list) else iter(((None, value),))


def _path(field: FieldDescriptor, index: int | None, below: str = "") -> str:
    at = field.json_name if index is None else f"{field.json_name}[{index}]"
    return f"{at}.{below}" if below else at


def _inner(field: FieldDescriptor) -> Descriptor | None:
    """The message that a field holds, if it is A2A's and not one of protobuf's with a JSON form of its own."""
    inner = field.message_type
    return None if inner is None or inner.file.package.startswith("google.") else inner


def _is_member(value: object, enum: EnumDescriptor) -> bool:
    """Whether the JSON value is a name or a number of the enum, or null. Python takes a bool for a number."""
    if isinstance(value, str):
        return value in enum.values_by_name or (value.isdecimal() and int(value) in enum.values_by_number)
    return value is None or (value in enum.values_by_number and not isinstance(value, bool))


_PARTS = {a2a_pb2.Part: "content", a2a_v0_3_pb2.Part: "part"}


def check_message(message: Message, limits: BodyLimits, *, from_json: bool = False) -> Refusal | None:
    """Refuses what could be neither stored nor sent on as JSON, in whatever binding the message came.

    Numbers that are not finite, times outside years 1 to 9999, parts without content, more than `max_depth` levels,
    more than MAX_VALUES values. Free-form JSON that `check_json` has checked is not checked again (`from_json`).
    """
    todo = [(message, 1, "")]
    seen = 0
    while todo:
        node, depth, path = todo.pop()
        seen += 1
        if depth > limits.max_depth:
            return too_deep(limits)
        if seen > MAX_VALUES:
            return Refusal(InvalidRequestError, f"More than {MAX_VALUES} values in one request")
        if fault := _fault_of(node):
            return invalid(((path, fault),))
        if not (from_json and isinstance(node, Struct | Value)):
            todo.extend(_children(node, depth, path))
    return None


def _fault_of(node: Message) -> str:
    if isinstance(node, Value) and not math.isfinite(node.number_value):
        return "Not a finite number; send null or a string."
    if isinstance(node, Timestamp):
        return "" if _is_time(node) else "Not a time between the years 1 and 9999."
    content = _PARTS.get(type(node))
    no_content = content and node.WhichOneof(content) is None
    return "A part has none of its contents; set exactly one of them." if no_content else ""


def _is_time(node: Timestamp) -> bool:
    try:
        node.ToJsonString()
    except ValueError:
        return False
    return True


def _children(node: Message, depth: int, path: str) -> Iterator[tuple[Message, int, str]]:
    """The messages in `node`, their depth in levels of JSON and their paths. A `Value` is no level of its own."""
    for field, value in node.ListFields():
        kind = field.message_type
        if kind is None:
            continue
        here = f"{path}.{field.json_name}".lstrip(".")
        if kind.GetOptions().map_entry:
            if kind.fields_by_name["value"].message_type is not None:
                yield from ((child, depth, f"{here}[{key}]") for key, child in value.items())
        elif field.is_repeated:
            down = depth if kind is Value.DESCRIPTOR else depth + 2
            yield from ((child, down, f"{here}[{number}]") for number, child in enumerate(value))
        else:
            yield value, depth if kind is Value.DESCRIPTOR else depth + 1, here
