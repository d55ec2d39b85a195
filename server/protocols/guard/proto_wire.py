"""Counts the fields of a protobuf message in its bytes, before protobuf makes objects of them. Pure.

Rule 1: fields are counted at every level that protobuf would parse, known or not, and counting stops at the limit: ten
        megabytes of empty messages take protobuf a second, in one step, and become half a gigabyte.
Rule 2: protobuf decides whether the bytes are valid: what cannot be read is not counted.
"""

from __future__ import annotations

from typing import Any

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_MAX_VARINT = 10
"""Bytes of a varint."""


def has_more_fields(data: bytes, kind: Any, most: int) -> bool:
    """Whether a message has more than `most` fields in all; `kind` is the descriptor of its type."""
    count = 0
    todo = [(0, len(data), kind)]
    while todo:
        at, end, kind = todo.pop()
        while at < end:
            tag, at = _varint(data, at)
            count += 1
            if count > most:
                return True
            wire = tag & 7
            if wire == _LENGTH:
                size, at = _varint(data, at)
                known = kind.fields_by_number.get(tag >> 3)
                if known is not None and known.message_type is not None:
                    todo.append((at, min(at + size, end), known.message_type))
                at += size
            elif wire == _VARINT:
                _, at = _varint(data, at)
            else:
                at += _SIZES.get(wire, 0)
    return False


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    number = 0
    for position, byte in enumerate(data[at : at + _MAX_VARINT]):
        number |= (byte & 127) << 7 * position
        if byte < 128:
            return number, at + position + 1
    return number, len(data)
