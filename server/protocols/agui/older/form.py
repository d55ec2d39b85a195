"""The older JSON request of `POST /canvas/stream`, as it is on the wire. Pure.

Fields that are not ours are ignored: such clients send more than is meant for us. What is ours is read strictly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic.alias_generators import to_camel

from a2a_canvas.server.protocols.agui.older.view import TEXT_FIELD
from a2a_canvas.store.models import JsonValue

MAX_CONTENTS = 1000
"""Versions of which one request can make an artifact."""


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, alias_generator=to_camel)


class ContentForm(_Form):
    """One version."""

    index: int
    type: Literal["code", "text"]
    code: str | None = None
    full_markdown: str | None = None
    language: str | None = None
    title: str | None = None

    @model_validator(mode="after")
    def _has_its_text(self) -> ContentForm:
        if self._given is None:
            raise ValueError(f"needs {TEXT_FIELD[self.type]}, because its type is {self.type}")
        return self

    @property
    def _given(self) -> str | None:
        return self.code if self.type == "code" else self.full_markdown

    @property
    def text(self) -> str:
        """Its text, under whatever name."""
        return self._given or ""

    @property
    def head(self) -> dict[str, JsonValue]:
        """All that it says but its text."""
        told = {"type": self.type, "language": self.language, "title": self.title}
        return {name: value for name, value in told.items() if value is not None}

    @property
    def kind(self) -> dict[str, JsonValue]:
        """Its type, and its language if it says one: what a text part's metadata keep."""
        return {name: value for name, value in self.head.items() if name != "title"}


class ArtifactForm(_Form):
    """An artifact as the client has it, with every content read."""

    contents: list[ContentForm] = Field(min_length=1, max_length=MAX_CONTENTS)
    current_index: int  # after the contents, which it is checked against

    @property
    def place(self) -> int:
        """Where in `contents` the current one is."""
        return [content.index for content in self.contents].index(self.current_index)

    @property
    def current(self) -> ContentForm:
        return self.contents[self.place]

    @field_validator("contents")
    @classmethod
    def _have_different_indices(cls, contents: list[ContentForm]) -> list[ContentForm]:
        if len({content.index for content in contents}) < len(contents):
            raise ValueError("must each have an index of their own")
        return contents

    @field_validator("current_index")
    @classmethod
    def _is_one_of_them(cls, index: int, info: ValidationInfo) -> int:
        if all(content.index != index for content in info.data.get("contents", ())):
            raise ValueError("must be the index of one of contents")
        return index


class KnownForm(_Form):
    """An artifact that the thread has: of its contents only the one at `currentIndex` is looked at."""

    contents: list[Any] = Field(min_length=1)
    current_index: int

    @property
    def place(self) -> int:
        """Where in `contents` the current one is."""
        return _places(self.contents, self.current_index)[0]

    @field_validator("current_index")
    @classmethod
    def _is_that_of_one(cls, index: int, info: ValidationInfo) -> int:
        if len(_places(info.data.get("contents", ()), index)) != 1:
            raise ValueError("must be the index of one of contents, and of no other")
        return index


def _places(contents: Sequence[Any], index: int) -> list[int]:
    return [place for place, one in enumerate(contents) if isinstance(one, dict) and one.get("index") == index]


class SelectedForm(_Form):
    """A selection, by offsets (UTF-16), by lines, or both. Read as an operation's later: one set of rules."""

    start: int | None = None
    end: int | None = None
    text: str | None = None
    line_start: int | None = None
    line_end: int | None = None


class RequestForm(_Form):
    """The whole request. Its artifact is read when it is known whether the thread has it."""

    message: str
    thread_id: str = Field(alias="thread_id")
    artifact: dict[str, Any] | None = None
    selected_text: SelectedForm | None = None
