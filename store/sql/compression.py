"""Compresses texts with zstd and a dictionary of typical content.

A page of a draft is a few hundred bytes: without the dictionary it would not shrink. Level 3 is six times as fast as
zlib, and a page is 5% longer.
"""

from __future__ import annotations

import threading

from zstandard import (
    DICT_TYPE_RAWCONTENT,
    ZstdCompressionDict,
    ZstdCompressor,
    ZstdDecompressor,
    ZstdError,
    frame_content_size,
)

_TYPICAL = (
    b'{"task_id":"","context_id":"","owner":"","changed_at":"2026-01-01T00:00:00.000000+00:00","state":'
    b'"input-required","message":{"message_id":"","text":""},"history":[{"message_id":"","parts":[{"body":"","_type":'
    b'"TextPart"}],"_type":"UserMessage"},{"message_id":"","text":"","_type":"AgentMessage"}],"progress":{"blocks":'
    b'{"count":2},"round":2,"call":2,"phase":"assistant"},"generation":[{"message_id":"","content":[{"text":"","_type":'
    b'"ModelText"}],"_type":"UserInput"},"_type":"FinalMessageStarted"}],"_type":"MessageDelta"}],"state":"completed",'
    b'{"state":"working","message":{"message_id":"","text":"Writing ","label":true,"of_tool":true,"_type":'
    b'"AgentMessage"},"_type":"StatusChanged"},{"event":{"round":1,"_type":"MessageStarted"}},{"kind":"thinking","_type":"TextBlockStarted"},'
    b'{"content":"","_type":"ThinkingAdded"},"name":"artifact_update","_type":"ToolUseStarted"},"partial_json":'
    b'"{\\"append\\": false, \\"artifact\\": {\\"artifact_id\\": \\"","_type":"ToolInputAdded"},'
    b'"_type":"BlockStopped"},'
    b'"input":{"append":false,"artifact":{"artifact_id":"","parts":[{"kind":"text","text":"","_type":'
    b'"ToolInputCompleted"},{"items":[{"call":1,"blocks":[{"text":"","_type":"ModelText"},{"id":"toolu_","name":"",'
    b'"input":{},"_type":"ToolUse"}],"_type":"AssistantOutput"},{"tool_use_id":"","content":"","_type":"ToolResult"}],'
    b'"_type":"TranscriptAppended"},"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1},"_type":'
    b'"LlmCallCompleted"},{"edit_id":"","chunk":"","_type":"EditChunk"},{"place":{"index":0,"round":1,"llm_index":0},'
    b'"text":"","_type":"TextAdded"}],{"artifact_id":"doc","name":"","description":"","append":true,'
    b'"last_chunk":false,"version":1,"author":"agent","parent":0,"parts":[{"body":"","_type":"TextPart"}],"_type":'
    b'"ArtifactChanged"}],[2,"2026-01-01T00:00:00.000000+00:00",'
)
"""Content common to many texts. Stored texts need this very dictionary, so it never changes."""
COMPRESSED_AT_MOST = 1_000_000
"""The longest text to compress, in characters. That takes 5 to 9 ms, which block the event loop."""
LEVEL = 3
ZSTD_BEGIN = b"\x28\xb5\x2f\xfd"
"""The first bytes of zstd's output; no text begins with them."""


class _Zstd(threading.local):
    """Compressor and decompressor of a thread: they are not thread-safe, and take long to make."""

    def __init__(self) -> None:
        dictionary = ZstdCompressionDict(_TYPICAL, dict_type=DICT_TYPE_RAWCONTENT)
        self.compressor = ZstdCompressor(LEVEL, dict_data=dictionary)
        self.decompressor = ZstdDecompressor(dict_data=dictionary)


_zstd = _Zstd()


def compress(text: str) -> bytes | None:
    """The text as bytes, if that makes it shorter."""
    if len(text) > COMPRESSED_AT_MOST:
        return None
    plain = text.encode()
    compressed = _zstd.compressor.compress(plain)
    return compressed if len(compressed) < len(plain) else None


def compress_bytes(data: bytes) -> bytes:
    """Any bytes, compressed if that makes them shorter; `decompress_bytes` returns them."""
    if len(data) > COMPRESSED_AT_MOST and not data.startswith(ZSTD_BEGIN):
        return data
    compressed = _zstd.compressor.compress(data)
    return compressed if len(compressed) < len(data) or data.startswith(ZSTD_BEGIN) else data


def decompress_bytes(data: bytes) -> bytes:
    """What `compress_bytes` was given.

    Raises:
        ZstdError: the bytes are damaged.
    """
    return _zstd.decompressor.decompress(data) if data.startswith(ZSTD_BEGIN) else data


def decompress(data: bytes) -> str:
    """The text of bytes that may be compressed.

    Damaged bytes give a text that is not JSON, so only their task fails.
    """
    if data.startswith(ZSTD_BEGIN):
        try:
            return _zstd.decompressor.decompress(data).decode()
        except (ValueError, ZstdError):
            pass
    return data.decode(errors="replace")


def text_size(data: bytes) -> int:
    """The bytes of the text that `decompress` makes of these, without making it."""
    if data.startswith(ZSTD_BEGIN):
        try:
            return max(len(data), frame_content_size(data))
        except ZstdError:
            pass
    return len(data)
