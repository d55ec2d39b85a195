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
"""How a packed text begins: compressed with `_TYPICAL`, which therefore never changes, and written as Base64."""
_TYPICAL = (
    b'{"state":"working","message":{"message_id":"","text":"Writing ","label":true,"_type":"AgentMessage"},"_type":'
    b'"StatusChanged"},{"event":{"round":1,"_type":"MessageStarted"}},{"kind":"thinking","_type":"TextBlockStarted"},'
    b'{"content":"","_type":"ThinkingAdded"},"name":"artifact_update","_type":"ToolUseStarted"},"partial_json":'
    b'"{\\"append\\": false, \\"artifact\\": {\\"artifact_id\\": \\"","_type":"ToolInputAdded"},'
    b'"_type":"BlockStopped"},'
    b'"input":{"append":false,"artifact":{"artifact_id":"","parts":[{"kind":"text","text":"","_type":'
    b'"ToolInputCompleted"},{"items":[{"call":1,"blocks":[{"text":"","_type":"Text"},{"id":"toolu_","name":"",'
    b'"input":{},"_type":"ToolUse"}],"_type":"AssistantSaid"},{"tool_use_id":"","content":"","_type":"ToolResult"}],'
    b'"_type":"Remembered"},"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1},"_type":'
    b'"LlmCallCompleted"},{"edit_id":"","chunk":"","_type":"EditChunk"},{"place":{"index":0,"round":1,"llm_index":0},'
    b'"text":"","_type":"TextAdded"}],{"artifact_id":"doc","name":"doc.md","description":"","append":true,'
    b'"last_chunk":false,"version":1,"author":"agent","parent":0,"parts":[{"body":"","_type":"TextPart"}],"_type":'
    b'"ArtifactChanged"}],[2,"2026-01-01T00:00:00.000000+00:00",'
)


class PackedText(TypeDecorator[str]):
    """JSON that is compressed where that makes it shorter. What was written before is read as it is."""

    impl = sqlalchemy.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        return None if value is None else _pack(replace_unstorable(value))

    def process_result_value(self, value: str | None, dialect: Any) -> str | None:
        return _unpack(value) if value and value.startswith(_PACKED) else value


def _pack(text: str) -> str:
    # The fastest level: the others save a tenth, for twice the time.
    compress = zlib.compressobj(1, wbits=-zlib.MAX_WBITS, zdict=_TYPICAL)
    packed = _PACKED + b64encode(compress.compress(text.encode()) + compress.flush()).decode()
    return packed if len(packed) < len(text) else text


def _unpack(text: str) -> str:
    """The text that was packed; a damaged one as it is, so that it fails where one task's JSON is decoded."""
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS, _TYPICAL).decompress(b64decode(text[len(_PACKED) :])).decode()
    except (ValueError, zlib.error):
        return text


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
    Column("content", Text),  # JSON of the whole; or
    Column("replacement", Text),  # JSON of the text that replaced the range; both null: pruned
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
