"""The values in a script, and filling in the groups of a match.

Rule 1: `{repeat: STRING, times: N}` is allowed wherever a string is, including tool input.
Rule 2: `{name}` is replaced in every string, and where a number is expected, if the rule's match has a group of
        that name. Other braces stay. `{name:capital}` begins with an upper-case letter; `{name:upper}` and
        `{name:lower}` have no others; `{name:number}` is in digits (`ten`, `twice`), at least 1; `{name:slug}` is made
        of lower-case letters, digits and hyphens, for names of files.
Rule 3: a number, and the id of an artifact in tool input, is validated when the script is read; if it depends on a
        group, when it is played.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, PlainValidator, Tag, ValidationInfo
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from a2a_canvas.store.text.unicode import valid_id

Groups = Mapping[str, str]
"""The named groups of a match with their texts; empty for a group that did not participate."""

Json = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

MAX_CHARACTERS = 64_000_000
"""The limit of one repeated string: `times` may come from any user's message."""

_GROUP = re.compile(r"\{(?P<name>\w+)(?::(?P<form>capital|slug|upper|lower|number))?\}")


class BadValue(ValueError):
    """An invalid value in the script. The message says which and why."""


def parse_whole_number(value: object, least: int = 0) -> int:
    """`value` as a whole number.

    Raises:
        BadValue: it is not a whole number, or less than `least`.
    """
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,18}\s*", value, re.ASCII):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadValue(f"a whole number of at least {least} is needed, not {_quote_value(value)}")
    return value


def parse_seconds(value: object) -> float:
    """`value` as a time in seconds.

    Raises:
        BadValue: it is not a finite number, or less than 0.
    """
    number = math.nan
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            number = float(value)
    if not math.isfinite(number) or number < 0:
        raise BadValue(f"a number of seconds of at least 0 is needed, not {_quote_value(value)}")
    return number


def _quote_value(value: object) -> str:
    if isinstance(value, int) and abs(value) >= 10**18:
        return "a number as long as this"
    shown = repr(value)[:60]
    return f"{shown} (the rule has no group of that name)" if _GROUP.search(shown) else shown


def _unless_filled_later(check: Callable[[object], float]) -> PlainValidator:
    def number(value: object, info: ValidationInfo) -> object:
        return value if isinstance(value, str) and _is_filled_later(value, info) else check(value)

    return PlainValidator(number)


def _is_filled_later(value: str, info: ValidationInfo) -> bool:
    names: frozenset[str] = (info.context or {}).get("groups", frozenset())
    return any(hit["name"] in names for hit in _GROUP.finditer(value))


def _kind_of_json(value: object) -> str:
    match value:
        case {"repeat": str() | dict(), "times": _, **others} if not others:
            return "<repeat>"
        case dict():
            return "<object>"
        case list():
            return "<array>"
        case _:
            return "<scalar>"


Count = Annotated[int | str, _unless_filled_later(parse_whole_number)]
Positive = Annotated[int | str, _unless_filled_later(lambda value: parse_whole_number(value, 1))]
Seconds = Annotated[float | str, _unless_filled_later(parse_seconds)]


class Strict(BaseModel):
    """Part of a script: frozen, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Repeat(Strict):
    """`repeat`, `times` times."""

    repeat: Words
    times: Count


Words = Annotated[
    Annotated[str, Tag("<string>")] | Annotated[Repeat, Tag("<repeat>")],
    Discriminator(lambda value: "<repeat>" if isinstance(value, dict | Repeat) else "<string>"),
]
Tree = TypeAliasType(
    "Tree",
    "Annotated[Annotated[bool | int | float | str | None, Tag('<scalar>')]"
    " | Annotated[Repeat, Tag('<repeat>')] | Annotated[list[Tree], Tag('<array>')]"
    " | Annotated[dict[str, Tree], Tag('<object>')], Discriminator(_kind_of_json)]",
)


def _with_valid_ids(given: dict[str, Tree], info: ValidationInfo) -> dict[str, Tree]:
    for path in _IDS:
        value: Tree = given
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and not _is_filled_later(value, info):
            try:
                valid_id(value)
            except ValueError as error:
                raise PydanticCustomError("artifact_id", "{reason}", {"reason": str(error), "path": path}) from error
    return given


_IDS = (("artifact_id",), ("artifact", "artifact_id"))
"""The paths to an artifact's id in tool input."""

Input = Annotated[dict[str, Tree], AfterValidator(_with_valid_ids)]
"""The input of a tool. An error's context has the `path` to the id within it."""


def fill(value: Words, groups: Groups) -> str:
    """The string of `value`.

    Raises:
        BadValue: `times` is not a number, or the string would be longer than `MAX_CHARACTERS`.
    """
    if isinstance(value, str):
        return _GROUP.sub(lambda hit: _format_group(groups.get(hit["name"]), hit), value)
    text, times = fill(value.repeat, groups), parse_whole_number(fill_number(value.times, groups))
    if len(text) * times > MAX_CHARACTERS:
        raise BadValue(f"{times} times {len(text)} characters is more than the limit of {MAX_CHARACTERS}")
    return text * times


def _format_group(text: str | None, hit: re.Match[str]) -> str:
    return hit[0] if text is None else _FORMS.get(hit["form"], str)(text)


def capital(text: str) -> str:
    """`text` with its first letter upper-case."""
    return text[:1].upper() + text[1:]


def slug(text: str) -> str:
    """A file name without extension, at most 48 characters; letters of other scripts stay."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return re.sub(r"[\W_]+", "-", unicodedata.normalize("NFC", plain))[:48].strip("-") or "document"


def parse_number(text: str) -> int:
    """A number in digits or as a word; 1 for anything else."""
    word = text.strip().casefold()
    if re.fullmatch(r"\d{1,3}", word, re.ASCII):
        return int(word)
    return _NUMBERS.index(word) if word in _NUMBERS else 2 if word in ("twice", "both") else 1


_NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]

_FORMS: Mapping[str, Callable[[str], str]] = {
    "capital": capital,
    "slug": slug,
    "upper": str.upper,
    "lower": str.lower,
    "number": lambda text: str(parse_number(text)),
}


def fill_tree(value: Tree, groups: Groups) -> Json:
    """The JSON value of `value`, its keys filled as well.

    Raises:
        BadValue: as `fill`.
    """
    match value:
        case str() | Repeat():
            return fill(value, groups)
        case list():
            return [fill_tree(item, groups) for item in value]
        case dict():
            return {fill(key, groups): fill_tree(item, groups) for key, item in value.items()}
        case _:
            return value


def fill_number(number: float | str, groups: Groups) -> float | str:
    """A number, or its string with the groups filled in."""
    return fill(number, groups) if isinstance(number, str) else number
