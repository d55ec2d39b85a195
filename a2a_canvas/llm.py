"""What a model of your own reads and yields: docs/models.md has an example.

    from a2a_canvas.llm import LLM, BlockStart, BlockStop, MessageStop, ModelEvent, ModelRequest, TextDelta

A model has `name`, `thinking` and `stream`, as `LLM` describes. `create_app(settings, model)` takes it.
"""

from __future__ import annotations

from a2a_canvas.server.agent.model import (
    LLM,
    Attachment,
    BlockStart,
    BlockStop,
    InputDelta,
    MessageStart,
    MessageStop,
    ModelError,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelText,
    SignatureDelta,
    StopReasonDelta,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolResult,
    ToolSpec,
    ToolUse,
    Usage,
)

__all__ = [
    "LLM",
    "Attachment",
    "BlockStart",
    "BlockStop",
    "InputDelta",
    "MessageStart",
    "MessageStop",
    "ModelError",
    "ModelEvent",
    "ModelMessage",
    "ModelRequest",
    "ModelText",
    "SignatureDelta",
    "StopReasonDelta",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "ToolResult",
    "ToolSpec",
    "ToolUse",
    "Usage",
]
