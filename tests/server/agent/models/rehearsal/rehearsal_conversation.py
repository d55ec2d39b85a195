"""A conversation with the rehearsal model, over artifacts of one text each."""

import json

from a2a_canvas.server.agent.model import ModelMessage, ModelRequest, ModelText, ToolResult, ToolSpec, ToolUse
from a2a_canvas.server.agent.models.rehearsal import plan
from a2a_canvas.store.text.spans import Span, splice
from a2a_canvas.tools.artifact_edit import ArtifactEditInput
from a2a_canvas.tools.artifact_update import ArtifactUpdateInput
from a2a_canvas.tools.find_quote import find_once

TOOLS = (
    "artifact_update",
    "artifact_edit",
    "artifact_restore",
    "artifact_list",
    "artifact_read",
    "ask_user",
    "decline_task",
)


class Conversation:
    """Plays turns as the server does, over artifacts of one text each."""

    def __init__(self, tools=TOOLS, **texts) -> None:
        self.messages: list[ModelMessage] = []
        self.tools = tuple(ToolSpec(name, "", {}) for name in tools)
        self.texts: dict[str, str] = texts
        self.calls: list[str] = []
        self.media_type: str | None = "text/x-tea"
        self.broken: dict[str, str] = {}

    def plan(self):
        return plan(ModelRequest("", tuple(self.messages), self.tools))

    def say(self, *content) -> str:
        """The reply to a message; the conversation goes on until the model calls no tool."""
        self.messages.append(ModelMessage("user", tuple(ModelText(c) if isinstance(c, str) else c for c in content)))
        while True:
            blocks = self.plan()
            self.messages.append(ModelMessage("assistant", blocks))
            calls = [block for block in blocks if isinstance(block, ToolUse)]
            if not calls:
                (reply,) = blocks
                return reply.text
            if calls[0].name in ("ask_user", "decline_task"):
                self.calls.append(calls[0].name)
                return str(*calls[0].input.values())
            self.messages.append(ModelMessage("user", tuple(self.run(call) for call in calls)))

    def run(self, call: ToolUse) -> ToolResult:
        self.calls.append(call.name)
        if call.name in self.broken:
            return ToolResult(call.id, self.broken[call.name], is_error=True)
        return ToolResult(call.id, json.dumps(getattr(self, call.name)(call.input)))

    def artifact_list(self, given):
        assert given == {}
        return [{"artifact_id": key, "name": f"{key}.md", "version": 1, "size": 1} for key in self.texts]

    def artifact_read(self, given):
        key = given["artifact_id"]
        parts = [{"kind": "text", "mimeType": self.media_type, "text": self.texts[key]}, {"kind": "data", "data": {}}]
        return {"artifact_id": key, "name": f"{key}.md", "version": 1, "parts": parts}

    def artifact_update(self, given):
        call = ArtifactUpdateInput.model_validate(given)
        assert call.last_chunk
        (part,) = call.artifact.parts
        key = call.artifact.artifact_id
        self.media_type = part.mimeType
        self.texts[key] = (self.texts.pop(key, "") if call.append else "") + part.text
        return {"ok": True}

    def artifact_restore(self, given):
        return f"{given} done"

    def artifact_edit(self, given):
        assert list(given) == ["artifact_id", "old_text", "new_text"]
        call = ArtifactEditInput.model_validate(given)
        text = self.texts[call.artifact_id]
        span = find_once(text, call.old_text)
        assert isinstance(span, Span), span
        assert call.new_text != call.old_text
        self.texts[call.artifact_id] = splice(text, span, call.new_text)
        return {"ok": True}
