"""Parses JSON into A2A's protobuf messages, and checks the messages. Pure.

Rules:
1. A message is parsed once, by protobuf's own parser, and checked: handlers use it unchanged.
2. protobuf's parser describes its failures in prose. The field at fault is found by parsing the fields one by one.
3. Errors name fields as the sender did, otherwise by their JSON names, with the index in a list.
4. Unknown fields are ignored, for clients of a later minor version; they are named where a field is missing. What the
   lenient parser would misread is refused: an unknown name of an enum, a boolean for an enum, a string for an object,
   bytes that are not base64, a boolean in a query that is neither true nor false.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2
from google.api.field_behavior_pb2 import FieldBehavior, field_behavior  # type: ignore[import-untyped]
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from a2a_canvas.server.protocols.guard.checks import (
    MAX_ITEMS,
    MAX_VALUES,
    BodyLimits,
    Refusal,
    invalid,
    too_deep,
    too_many_items,
    too_many_values,
)
from a2a_canvas.server.protocols.guard.parsing import SMALL_BODY_BYTES
from a2a_canvas.store.text.wording import choice, format_value

M = TypeVar("M", bound=Message)
Parser = Callable[[Mapping[str, Any], Message], object]
"""Reads an object of JSON, or a query, into a message; raises if it does not fit."""

_BASE64 = re.compile(r"([\w+/-]*+)(={0,2})", re.ASCII)
_TYPES: Final[Mapping[int, str]] = {
    FieldDescriptor.CPPTYPE_STRING: "a string",
    FieldDescriptor.CPPTYPE_BOOL: "true or false",
    FieldDescriptor.CPPTYPE_INT32: "a whole number of 32 bits",
    FieldDescriptor.CPPTYPE_MESSAGE: "an object",
}
"""The values of a field, by its type in protobuf; the only other type that A2A has is enums."""


def parse_json(fields: Mapping[str, Any], message: Message) -> None:
    """The `Parser` of an object of JSON."""
    ParseDict(dict(fields), message, ignore_unknown_fields=True)


def parse_params(params: object, kind: type[M], limits: BodyLimits, parse: Parser = parse_json) -> M | Refusal:
    """The message of a request, or why its params cannot be read."""
    if not isinstance(params, Mapping):
        return invalid([("params", f"is {format_value(params)} and must be an object")])
    message = kind()
    if refusal := _check_list_lengths(params, message.DESCRIPTOR):
        return refusal
    if too_long := _find_long_text(params, message.DESCRIPTOR, limits.max_text_bytes):
        return invalid([too_long])
    if not _fits(params, message, parse):
        return invalid([_fault(params, kind, parse)])
    if misread := next(_find_misread(params, message.DESCRIPTOR), None):
        return invalid([misread])
    return check_message(message, limits, from_json=True) or message


def _check_list_lengths(params: Mapping[str, Any], descriptor: Descriptor | Any, above: str = "") -> Refusal | None:
    """The refusal of a list with too many messages: protobuf's parser would take too long."""
    for field, name, given in _fields(params, descriptor):
        inner = _inner(field)
        if inner and isinstance(given, list) and len(given) > MAX_ITEMS:
            return too_many_items(f"{above}{name}", len(given))
        if inner and isinstance(given, dict) and (refusal := _check_list_lengths(given, inner, f"{above}{name}.")):
            return refusal
    return None


def _find_long_text(params: Mapping[str, Any], descriptor: Descriptor | Any, most: int) -> tuple[str, str] | None:
    """The text that takes a request far beyond its limit: protobuf's parser would take too long.

    Once the message is parsed, its text is counted exactly. Its other strings are less than SMALL_BODY_BYTES.
    """
    size = 0
    for path, text in _texts(params, descriptor):
        size += len(text)
        if size > most + SMALL_BODY_BYTES:
            return path, f"goes beyond the {most} bytes of text that a request may have; send it as a file"
    return None


def _texts(params: Mapping[str, Any], descriptor: Descriptor | Any) -> Iterator[tuple[str, str]]:
    """The strings in all fields except bytes, with their paths."""
    for field, name, given in _fields(params, descriptor):
        inner = _inner(field)
        for index, value in _items(field, given):
            if isinstance(value, str) and field.type != field.TYPE_BYTES:
                yield _path(name, index), value
            elif inner and isinstance(value, dict):
                yield from ((_path(name, index, path), text) for path, text in _texts(value, inner))


def _fits(params: Mapping[str, Any], message: Message, parse: Parser) -> bool:
    try:
        parse(params, message)
    # json_format raises any error from inside it (TypeError, AttributeError, ...), not only its ParseError.
    except Exception:
        return False
    return True


def _fault(params: Mapping[str, Any], kind: type[Message], parse: Parser) -> tuple[str, str]:
    """The innermost field that does not parse by itself, and what is wrong with it.

    The path is empty if each field parses by itself, for example two alternatives of a oneof.
    """
    for field, name, value in _fields(params, kind.DESCRIPTOR):
        if not _fits({name: value}, kind(), parse):
            return _fault_in(field, name, value, kind)
    given = [name for field, name, _ in _fields(params, kind.DESCRIPTOR) if field.containing_oneof]
    return (
        "",
        f"has {choice(given, 'and')}; only one of them may be set" if given else "does not match A2A's definition",
    )


def _fault_in(field: FieldDescriptor, name: str, value: Any, kind: type[Message]) -> tuple[str, str]:
    index = None
    if field.is_repeated and isinstance(value, list):
        index = next((n for n, item in enumerate(value) if not _fits({name: [item]}, kind(), parse_json)), None)
    item = value if index is None else value[index]
    inner = _inner(field)
    if inner and isinstance(item, dict):
        below, reason = _fault(item, GetMessageClass(inner), parse_json)
        return _path(name, index, below), reason
    return _path(name, index), f"is {format_value(item)} and must be {_expected_value(field, item)}"


def _expected_value(field: FieldDescriptor, value: Any) -> str:
    if field.is_repeated and not isinstance(value, list | dict) and field.message_type is None:
        return "a list"
    if field.message_type is Timestamp.DESCRIPTOR:
        return "a time such as 2026-01-31T12:00:00Z"
    if field.enum_type and field.enum_type.name == "Role":
        return USER_ROLE
    if field.enum_type:
        return choice(_members(field.enum_type))
    return "base64" if field.type == field.TYPE_BYTES else _TYPES[field.cpp_type]


USER_ROLE: Final = "ROLE_USER: only users send messages to an agent"
"""The only valid role of a message in a request."""


def _members(enum: EnumDescriptor) -> list[str]:
    """The names of an enum, without the first, which is `…_UNSPECIFIED`."""
    return [value.name for value in enum.values if value.number]


def _find_misread(params: Mapping[str, Any], descriptor: Descriptor | Any) -> Iterator[tuple[str, str]]:
    """The fields that the lenient parser would misread (rule 4)."""
    for field, name, given in _fields(params, descriptor):
        for index, value in _items(field, given):
            inner = _inner(field)
            if _is_misread(field, value, inner):
                yield _path(name, index), f"is {format_value(value)} and must be {_expected_value(field, value)}"
            elif inner and isinstance(value, dict):
                yield from ((_path(name, index, path), fault) for path, fault in _find_misread(value, inner))


def _is_misread(field: FieldDescriptor, value: Any, inner: Descriptor | None) -> bool:
    if field.enum_type:
        return not _is_member(value, field.enum_type)
    if not isinstance(value, str):
        return False
    match field.type:
        case field.TYPE_BOOL:
            return value.lower() not in ("true", "false")
        case field.TYPE_BYTES:
            return not _is_base64(value)
        case _:
            return inner is not None


def _is_base64(text: str) -> bool:
    """Whether a text is base64 in either alphabet; padding may be missing."""
    found = _BASE64.fullmatch(text)
    if found is None:
        return False
    last = len(found[1]) % 4
    return last in (2, 3) or (last == 0 and not found[2])


def _fields(params: Mapping[str, Any], descriptor: Descriptor | Any) -> Iterator[tuple[FieldDescriptor, str, Any]]:
    """The known fields of an object: ProtoJSON accepts a field's JSON name and its name in the definition."""
    fields = {name: field for field in descriptor.fields for name in (field.json_name, field.name)}
    return ((fields[name], name, value) for name, value in params.items() if name in fields)


def _items(field: FieldDescriptor, value: Any) -> Iterator[tuple[int | None, Any]]:
    return enumerate(value) if field.is_repeated and isinstance(value, list) else iter(((None, value),))


def _path(name: str, index: int | None, below: str = "") -> str:
    at = name if index is None else f"{name}[{index}]"
    return f"{at}.{below}" if below else at


def _inner(field: FieldDescriptor) -> Descriptor | None:
    """The message that a field holds, if it is A2A's and not one of protobuf's with a JSON form of its own."""
    inner = field.message_type
    return None if inner is None or inner.file.package.startswith("google.") else inner


def _is_member(value: object, enum: EnumDescriptor) -> bool:
    """Whether the JSON value is a name or a number of the enum, or null. In Python, a bool is a number, too."""
    if isinstance(value, str):
        return value in enum.values_by_name or (value.isdecimal() and int(value) in enum.values_by_number)
    return value is None or (value in enum.values_by_number and not isinstance(value, bool))


def check_required(message: Message, given: Mapping[str, Any] | None = None) -> Refusal | None:
    """Refuses a message without the fields that A2A requires.

    Args:
        given: the JSON that it was read from; an unknown name in it may be a misspelt field.
    """
    paths = [_json_name(path) for path in missing_fields(message)]
    if not paths:
        return None
    return invalid(
        [_missing_fault(path, message, given) if given is not None else (path, "must not be empty") for path in paths]
    )


def missing_fields(message: Message) -> Iterator[str]:
    """The paths of the required fields that are empty, in the order of the definition.

    The SDK's `validate_proto_required_fields` finds the same fields, but walks every value of free-form JSON: 0.3 s for
    a list of 10,000 numbers.
    """
    present = {field.number: value for field, value in message.ListFields()}
    for number, name, required, holds_messages in _rules(message.DESCRIPTOR):
        if number not in present:
            if required:
                yield name
        elif holds_messages:
            value = present[number]
            items = [(name, value)] if isinstance(value, Message) else _indexed_items(name, value)
            for path, item in items:
                yield from (f"{path}.{below}" for below in missing_fields(item))


@cache
def _rules(descriptor: Descriptor | Any) -> tuple[tuple[int, str, bool, bool], ...]:
    """The number and name of each field, whether it is required, and whether it holds messages of A2A."""
    rules = []
    for field in descriptor.fields:
        required = FieldBehavior.REQUIRED in field.GetOptions().Extensions[field_behavior]
        rules.append((field.number, field.name, required, _holds_messages(field)))
    return tuple(rule for rule in rules if rule[2] or rule[3])


def _holds_messages(field: FieldDescriptor | Any) -> bool:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        kind = kind.fields_by_name["value"].message_type
    return kind is not None and not kind.file.package.startswith("google.")


def _indexed_items(name: str, values: Any) -> Iterator[tuple[str, Message]]:
    items = values.items() if isinstance(values, Mapping) else enumerate(values)
    return ((f"{name}[{at}]", item) for at, item in items)


def _missing_fault(path: str, message: Message, given: Mapping[str, Any]) -> tuple[str, str]:
    *above, last = path.split(".")
    kind: Any = message.DESCRIPTOR
    for name in above:
        kind = kind.fields_by_camelcase_name[name].message_type
        given = given.get(name) or {}
    if last in given:
        return path, "must not be empty"
    known = {name for field in kind.fields for name in (field.json_name, field.name)}
    unknown = [name for name in given if name not in known]
    return path, f"is missing, and {unknown[0]!r} is not a field here" if unknown else "is missing"


def _json_name(path: str) -> str:
    return re.sub("_([a-z0-9])", lambda letter: letter[1].upper(), path)


_PARTS = {a2a_pb2.Part: "content", a2a_v0_3_pb2.Part: "part"}

SetFields: TypeAlias = Sequence[tuple[FieldDescriptor, Any]]
"""The fields of a message that are set, with their values."""


def check_message(message: Message, limits: BodyLimits, *, from_json: bool = False) -> Refusal | None:
    """Refuses a message that could not be stored or sent as JSON, whatever its binding.

    That is numbers that are not finite, times outside years 1 to 9999, parts without content, more than `max_depth`
    levels, more than MAX_VALUES values. Free-form JSON that `check_json` has checked is not checked again
    (`from_json`).
    """
    todo = [(message, 1, "")]
    seen = 0
    while todo:
        node, depth, path = todo.pop()
        if depth > limits.max_depth:
            return too_deep(limits)
        if fault := _fault_of(node):
            return invalid([(path or "the request", fault)])
        if from_json and isinstance(node, Struct | Value):
            continue
        fields = node.ListFields()
        if not isinstance(node, Struct | Value | ListValue) and (refusal := _check_set_lists(fields, path)):
            return refusal
        for child in _children(fields, depth, path):
            seen += 1
            if seen >= MAX_VALUES:
                return too_many_values()
            todo.append(child)
    return None


def _check_set_lists(fields: SetFields, path: str) -> Refusal | None:
    for field, value in fields:
        if field.message_type and field.is_repeated and len(value) > MAX_ITEMS:
            return too_many_items(f"{path}.{field.json_name}".lstrip("."), len(value))
    return None


def _fault_of(node: Message) -> str:
    if isinstance(node, Value) and not math.isfinite(node.number_value):
        return "is not a finite number; send null or a string"
    if isinstance(node, Timestamp):
        return "" if _is_time(node) else "must be a time between the years 1 and 9999"
    content = _PARTS.get(type(node))
    if content is None or node.WhichOneof(content):
        return ""
    alternatives = (field.json_name for field in node.DESCRIPTOR.oneofs_by_name[content].fields)
    return f"has no content; give it one of {choice(alternatives)}"


def _is_time(node: Timestamp) -> bool:
    try:
        node.ToJsonString()
    except ValueError:
        return False
    return True


def _children(fields: SetFields, depth: int, path: str) -> Iterator[tuple[Message, int, str]]:
    """The messages in a node, with their depth in levels of JSON and their paths. A `Value` does not add a level."""
    for field, value in fields:
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
