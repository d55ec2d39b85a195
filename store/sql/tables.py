"""The tables of artifacts, each keyed by `context_id` first. `rows.py` says what their columns mean together.

`metadata` has all tables of a database; those of tasks are in `server/tasks/sql/journal/journal_tables.py`.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import sqlalchemy
from sqlalchemy import BigInteger, Boolean, Column, DateTime, Integer, MetaData, Table, TypeDecorator, func

from a2a_canvas.store.text.unicode import replace_unstorable

metadata = MetaData()


class Text(TypeDecorator[str]):
    """Any text, after `replace_unstorable`, so that no character makes a transaction fail."""

    impl = sqlalchemy.Text
    cache_ok = True

    def bind_processor(self, dialect: Any) -> Callable[[str | None], str | None]:
        return _storable


def _storable(value: str | None) -> str | None:
    return value if value is None else replace_unstorable(value)


_PACKED = "z1:"
"""How a packed text begins in a column that takes no bytes: Base64 follows."""
_TYPICAL = (
    b'{"task_id":"","context_id":"","owner":"","changed_at":"2026-01-01T00:00:00.000000+00:00","state":'
    b'"input-required","message":{"message_id":"","text":""},"history":[{"message_id":"","parts":[{"body":"","_type":'
    b'"TextPart"}],"_type":"UserMessage"},{"message_id":"","text":"","_type":"AgentMessage"}],"progress":{"blocks":'
    b'{"count":2},"round":2,"call":2,"phase":"assistant"},"generation":[{"message_id":"","content":[{"text":"","_type":'
    b'"Text"}],"_type":"UserSaid"},"_type":"FinalMessageStarted"}],"_type":"MessageDelta"}],"state":"completed",'
    b'{"state":"working","message":{"message_id":"","text":"Writing ","label":true,"of_tool":true,"_type":'
    b'"AgentMessage"},"_type":"StatusChanged"},{"event":{"round":1,"_type":"MessageStarted"}},{"kind":"thinking","_type":"TextBlockStarted"},'
    b'{"content":"","_type":"ThinkingAdded"},"name":"artifact_update","_type":"ToolUseStarted"},"partial_json":'
    b'"{\\"append\\": false, \\"artifact\\": {\\"artifact_id\\": \\"","_type":"ToolInputAdded"},'
    b'"_type":"BlockStopped"},'
    b'"input":{"append":false,"artifact":{"artifact_id":"","parts":[{"kind":"text","text":"","_type":'
    b'"ToolInputCompleted"},{"items":[{"call":1,"blocks":[{"text":"","_type":"Text"},{"id":"toolu_","name":"",'
    b'"input":{},"_type":"ToolUse"}],"_type":"AssistantSaid"},{"tool_use_id":"","content":"","_type":"ToolResult"}],'
    b'"_type":"Remembered"},"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1},"_type":'
    b'"LlmCallCompleted"},{"edit_id":"","chunk":"","_type":"EditChunk"},{"place":{"index":0,"round":1,"llm_index":0},'
    b'"text":"","_type":"TextAdded"}],{"artifact_id":"doc","name":"","description":"","append":true,'
    b'"last_chunk":false,"version":1,"author":"agent","parent":0,"parts":[{"body":"","_type":"TextPart"}],"_type":'
    b'"ArtifactChanged"}],[2,"2026-01-01T00:00:00.000000+00:00",'
)
"""What texts usually have in common. What was packed with it is read with it, so it never changes."""
PACKED_AT_MOST = 128 * 1024
"""Characters of a text that is packed. One of this length takes some milliseconds, in which nothing else happens."""


class PackedText(TypeDecorator[str]):
    """JSON that is compressed where that makes it shorter. What was written before is read as it is.

    SQLite stores the bytes, whatever the column's type is; PostgreSQL stores them as Base64.
    """

    impl = sqlalchemy.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> Any:
        return None if value is None else pack(replace_unstorable(value), as_bytes=dialect.name == "sqlite")

    def process_result_value(self, value: Any, dialect: Any) -> str | None:
        return None if value is None else unpack(value)


def pack(text: str, *, as_bytes: bool) -> str | bytes:
    """The text, shorter if that can be."""
    if len(text) > PACKED_AT_MOST:
        return text
    plain = text.encode()
    compress = zlib.compressobj(wbits=-zlib.MAX_WBITS, zdict=_TYPICAL)
    packed = compress.compress(plain) + compress.flush()
    if as_bytes:
        return packed if len(packed) < len(plain) else text
    encoded = _PACKED + b64encode(packed).decode()
    return encoded if len(encoded) < len(plain) else text


def unpack(stored: str | bytes) -> str:
    """The text that was packed; a damaged one as it is, so that it fails where one task's JSON is decoded."""
    if isinstance(stored, str) and not stored.startswith(_PACKED):
        return stored
    try:
        packed = stored if isinstance(stored, bytes) else b64decode(stored[len(_PACKED) :])
        return zlib.decompressobj(-zlib.MAX_WBITS, _TYPICAL).decompress(packed).decode()
    except (ValueError, zlib.error):
        return stored if isinstance(stored, str) else stored.decode(errors="replace")


def incarnation() -> Column[int]:
    """Tells a row from a removed one with the same key (`new_incarnation`); 0 in rows of schema 0001."""
    return Column("incarnation", BigInteger, nullable=False, server_default=sqlalchemy.text("0"))


artifacts = Table(
    "artifacts",  # a row may exist before its artifact, which has a version or a draft
    metadata,
    Column("context_id", Text, primary_key=True),
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
    Column("context_id", Text, primary_key=True),
    Column("artifact_id", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("parent", Integer, nullable=False),
    Column("author", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("incomplete", Boolean, nullable=False),
    Column("edited_start", Integer),  # of the parent's text, in code points; these three are set or null together
    Column("edited_end", Integer),
    Column("edited_length", Integer),
    Column("content", PackedText),  # JSON of the whole; or
    Column("replacement", PackedText),  # JSON of the text that replaced the range; both null: pruned
    Column("made_at", DateTime(timezone=True), nullable=False, default=func.now()),  # UTC
)

drafts = Table(
    "drafts",
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("artifact_id", Text, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("kind", Text, nullable=False),  # "whole" or "append"
    Column("content", Text, nullable=False),  # JSON of the whole, or of the parts to be appended
)
