"""The messages of a graph: what clients see of those that it streams, and the user's as it reads them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from langchain_core import messages as m

from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.frameworks.canvas_tools import log_unknown
from a2a_canvas.tools.functions.results import File
from a2a_canvas.tools.tool import Done, Failed, Outcome, to_json


@dataclass(slots=True)
class NodeRun:
    """What a run of a node has shown.

    Attributes:
        repeated: of the text that it had shown when it was interrupted, what it has not shown again.
        shown: its text, in pieces.
        messages: the ids of its messages.
        calls: the names of the tools that it calls, by the ids of the calls.
        results: of calls, which are shown when the node has ended.
    """

    turn: Turn
    repeated: str = ""
    shown: list[str] = field(default_factory=list)
    messages: list[str | None] = field(default_factory=list)
    calls: dict[str, str] = field(default_factory=dict)
    results: list[tuple[str, Outcome]] = field(default_factory=list)
    _streams: str | None = None
    _by_index: dict[Any, str] = field(default_factory=dict)

    async def show(self, message: Any) -> None:
        """Show a message, or a chunk of one."""
        if message.id not in self.messages:
            self.messages.append(message.id)
        match message:
            case m.AIMessage():
                await self._show_answer(message)
            case m.ToolMessage(tool_call_id=call_id, status=status, name=name) if not self._is_of_folder(name):
                self.results.append((call_id, (Failed if status == "error" else Done)(_as_text(message.content))))
            case _:
                pass

    def _is_of_folder(self, tool: str | None) -> bool:
        """Whether a tool shows its results itself."""
        return tool in {each.name for each in self.turn.tools}

    async def _show_answer(self, message: m.AIMessage) -> None:
        if message.id != self._streams:
            self._streams = message.id
            self._by_index.clear()
            await self.turn.say("")  # what follows is a paragraph of its own
        if isinstance(message.content, str) and not message.additional_kwargs:
            await self._show_text(message.content)
        else:
            await self._show_blocks(message)
        if isinstance(message, m.AIMessageChunk):
            await self._show_call_chunks(message)
        else:
            for call in message.tool_calls:
                await self._begin_call(call["id"] or "", call["name"])
                await self.turn.model.add_input(call["id"] or "", to_json(call["args"]))
                await self.turn.model.end_call(call["id"] or "")
        count_tokens(self.turn, message)

    async def _show_blocks(self, message: m.AIMessage) -> None:
        for block in message.content_blocks:
            match block:
                case {"type": "text", "text": str(text)}:
                    await self._show_text(text)
                case {"type": "reasoning", "reasoning": str(text)}:
                    await self.turn.think(text)
                case {"type": "tool_call" | "tool_call_chunk" | "invalid_tool_call"}:
                    pass  # shown with the calls of the message
                case {"type": str(kind)}:
                    log_unknown("LangGraph", kind)

    async def _show_text(self, text: str) -> None:
        self.shown.append(text)
        if text and self.repeated.startswith(text):
            self.repeated = self.repeated.removeprefix(text)
        else:
            self.repeated = ""
            await self.turn.stream(text)

    async def _show_call_chunks(self, message: m.AIMessageChunk) -> None:
        for piece in message.tool_call_chunks:
            if piece["id"] and piece["index"] not in self._by_index:
                self._by_index[piece["index"]] = piece["id"]
                await self._begin_call(piece["id"], piece["name"] or "")
            await self.turn.model.add_input(self._by_index.get(piece["index"], ""), piece["args"] or "")
        if message.chunk_position == "last":
            for call_id in self._by_index.values():
                await self.turn.model.end_call(call_id)

    async def _begin_call(self, call_id: str, name: str) -> None:
        self.calls[call_id] = name
        await self.turn.model.begin_call(call_id, name)


def count_tokens(turn: Turn, message: m.AIMessage) -> None:
    """Count the tokens that a message, or a chunk of one, reports."""
    if used := message.usage_metadata:
        cached = used.get("input_token_details", {}).get("cache_read", 0)
        turn.spend(used["input_tokens"] - cached, used["output_tokens"], cached)


async def show_last_answer(turn: Turn, messages: AsyncIterator[Any]) -> None:
    """Show the last one of the answers that stream, in place of those before it."""
    shown: str | None = None
    async for message in messages:
        if isinstance(message, m.AIMessage):
            if message.text and shown not in (None, message.id):
                await turn.take_back()
            shown = message.id if message.text else shown
            await turn.stream(message.text)
            count_tokens(turn, message)


def message_of(turn: Turn) -> m.HumanMessage:
    """The user's message, with its files."""
    text, files = turn.message.content, [*map(_block_of, turn.message.files)]
    return m.HumanMessage([{"type": "text", "text": text}, *files] if files else text)


def _block_of(file: File) -> dict[str, Any]:
    kind = "image" if file.media_type.startswith("image/") else "file"
    if file.content is None:
        return {"type": kind, "url": file.url, "mime_type": file.media_type}
    return {"type": kind, "base64": b64encode(file.content).decode(), "mime_type": file.media_type}


def _as_text(content: Any) -> str:
    return content if isinstance(content, str) else to_json(content)
