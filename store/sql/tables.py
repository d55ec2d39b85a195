"""The tables of artifacts, each keyed by `context_id` first. `rows.py` has the rules of their columns.

`metadata` has all tables of a database; each other one is in a file with what writes and removes its rows.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import sqlalchemy
from sqlalchemy import BigInteger, Boolean, Column, DateTime, Integer, MetaData, Table, TypeDecorator, func

from a2a_canvas.store.ids import SEPARATOR, shard_of
from a2a_canvas.store.sql.compression import compress, decompress
from a2a_canvas.store.text.unicode import replace_unstorable

metadata = MetaData()


class Text(TypeDecorator[str]):
    """Text, after `replace_unstorable`, so that no character can fail a transaction."""

    impl = sqlalchemy.Text
    cache_ok = True

    def bind_processor(self, dialect: Any) -> Callable[[str | None], str | None]:
        return _storable


def _storable(value: str | None) -> str | None:
    return value if value is None else replace_unstorable(value)


class ContextKeyText(TypeDecorator[str]):
    """The key of a context, stored after its shard: three hexadecimal digits and a separator (`store/ids.py`, rule 3).

    So the rows of a shard are together in each table and index that has the context first.
    """

    impl = sqlalchemy.Text
    cache_ok = True

    def bind_processor(self, dialect: Any) -> Callable[[str | None], str | None]:
        return _stored_key

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[str | None], str | None]:
        return _key_of


@lru_cache(maxsize=4096)
def with_shard(key: str) -> str:
    """The key of a context as it is stored."""
    storable = replace_unstorable(key)
    return f"{shard_of(storable):03x}{SEPARATOR}{storable}"


def _stored_key(key: str | None) -> str | None:
    return key if key is None else with_shard(key)


def without_shard(stored: str) -> str:
    """The key of a context that is stored so."""
    return stored[4:]


def _key_of(stored: str | None) -> str | None:
    return stored and without_shard(stored)


class CompressedText(TypeDecorator[str]):
    """JSON, compressed if that makes it shorter.

    SQLite stores the bytes, whatever the column's type is; PostgreSQL stores them as Base64.
    """

    impl = sqlalchemy.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> Any:
        if value is None:
            return None
        text = replace_unstorable(value)
        compressed = compress(text)
        if compressed is None or dialect.name == "sqlite":
            return compressed or text
        encoded = _BASE64 + b64encode(compressed).decode()
        return encoded if len(encoded) < len(text.encode()) else text

    def process_result_value(self, value: Any, dialect: Any) -> str | None:
        return decompress_column(value)


_BASE64 = "z1:"
"""The prefix of a compressed text in a column without bytes: Base64 follows."""


def decompress_column(value: str | bytes | None) -> str | None:
    """The text that the driver has read from a column of `CompressedText`."""
    if isinstance(value, bytes):
        return decompress(value)
    if value is None or not value.startswith(_BASE64):
        return value
    try:
        return decompress(b64decode(value[len(_BASE64) :], validate=True))
    except ValueError:
        return value  # damaged: decoding the JSON of its one task fails


def incarnation() -> Column[int]:
    """Distinguishes a row from a removed one with the same key (`new_incarnation`)."""
    return Column("incarnation", BigInteger, nullable=False)


artifacts = Table(
    "artifacts",  # a row may exist before its artifact, which has a version or a draft
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("artifact_id", Text, primary_key=True),
    Column("holder", Text),  # the replica whose memory is ahead of these rows; null for none
    Column("revision", Integer, nullable=False),  # +1 whenever any row of the artifact is written
    Column("changed", BigInteger, nullable=False),  # microseconds since 1970
    Column("changed_by", Text, nullable=False),
    Column("current", Integer, nullable=False),
    Column("newest", Integer, nullable=False),  # number of the newest version; 0 for none
    Column("pruned", Integer, nullable=False),  # number of versions whose content was removed
    Column("draft_task", Text),  # null: no draft is open
    Column("draft_author", Text),
    Column("draft_dirty", Boolean, nullable=False),
    Column("draft_completed", Integer),  # number of pieces up to the last completed call; null: no call completed
    incarnation(),
)

versions = Table(
    "versions",
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("artifact_id", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("parent", Integer, nullable=False),
    Column("author", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("incomplete", Boolean, nullable=False),
    Column("edits", CompressedText),  # JSON of `[start, end, length]`, of the parent's text, in code points
    Column("content", CompressedText),  # JSON of the whole; or
    Column("replacement", CompressedText),  # JSON of the text that replaced the range; both null: pruned
    Column("made_at", DateTime(timezone=True), nullable=False, default=func.now()),  # UTC
)

drafts = Table(
    "drafts",
    metadata,
    Column("context_id", ContextKeyText, primary_key=True),
    Column("artifact_id", Text, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("kind", Text, nullable=False),  # "whole" or "append"
    Column("content", CompressedText, nullable=False),  # JSON of the whole, or of the parts to be appended
)
