"""`rehearsal`: a small deterministic writer, for trying the server offline and without a key.

It is not a language model, and says so. It reads English key words only (`commands.py`) and uses the
same tools, one call per round, as a real model would.

Rule 1: what it says next is a pure function of the request (`plan`): the newest message, the calls made since
        and their results. Nothing is stored between requests.
Rule 2: the newest message is what it works on, also when it came along with tool results; an answer to
        `ask_user` is no new message.
Rule 3: only tools that the request offers are called. A failed call ends the turn with the tool's result.
Rule 4: the last round of the turn has text and no call. `NOTICE` ends the first reply of a conversation: that
        text, or a question or refusal that comes before it.
Rule 5: to an edit it replies with the new text and nothing else (`editing.py`), or with the mark that deletes it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal, assert_never

from a2a_canvas.server.agent.model import ModelEvent, ModelRequest, ModelText, Thinking, ToolUse
from a2a_canvas.server.agent.models.playback import AssistantBlock, NewId, Sleep, answer, fresh_tool_id, paced
from a2a_canvas.server.agent.models.rehearsal.commands import (
    AddCommand,
    AskCommand,
    ChatCommand,
    DeclineCommand,
    DraftCommand,
    NoCommand,
    ReplaceCommand,
    UndoCommand,
    read_command,
)
from a2a_canvas.server.agent.models.rehearsal.conversation_state import (
    CompletedCall,
    conversation_state,
    entries_in,
    entry_of,
    looked_at,
    mapping,
    name_of,
    named,
    was_said,
)
from a2a_canvas.server.agent.models.rehearsal.editing import edited
from a2a_canvas.server.agent.models.rehearsal.find_passages import PassageEdit, read_edit
from a2a_canvas.server.agent.models.rehearsal.outlines import (
    addressed,
    call,
    listing,
    outline,
    reading,
    say,
    section,
    slug,
    substituted,
)
from a2a_canvas.server.agent.models.rehearsal.revising import revise

NOTICE = (
    "This is the rehearsal model, a small program that follows fixed rules, not a language model. "
    "Set ANTHROPIC_API_KEY, or choose a model with --model, to get a real one."
)
"""Said at start-up, in the card and in the first reply."""

HELP = (
    "I can draft an outline (“Write about tea”), add to it (“Add a section on milk”), "
    "replace words in it (“Replace tea by coffee”), take that back (“Undo that”) "
    "and ask you something (“Ask me my name”). "
    "Select a passage, and I make it “shorter”, “longer” or “upper case”, delete it or replace words in it; "
    "or tell me which one (“Make the second paragraph shorter”)."
)

MAX_READ_CHARACTERS = 10_000
"""Characters of a message that are read; its rules would take 0.1 s for a megabyte."""

_MARKDOWN = "text/markdown"
_NEEDS: Mapping[type[ChatCommand | PassageEdit], tuple[str, ...]] = {
    PassageEdit: ("artifact_list", "artifact_read", "artifact_edit", "ask_user"),
    DraftCommand: ("artifact_update",),
    AddCommand: ("artifact_list", "artifact_update"),
    ReplaceCommand: ("artifact_list", "artifact_read", "artifact_update"),
    UndoCommand: ("artifact_list", "artifact_restore"),
    AskCommand: ("ask_user",),
    DeclineCommand: ("decline_task",),
    NoCommand: (),
}


class Rehearsal:
    """An `LLM` without a language model.

    Args:
        chunk: the shortest and the longest delta, in characters; lengths go up from one to the other, again
            and again.
        delay: seconds between deltas.
        sleep: waits for a time in seconds.
        new_id: makes the id of each tool call.
    """

    name = "rehearsal"
    thinking: Literal["delta", "accumulated"] = "delta"

    def __init__(
        self,
        *,
        chunk: tuple[int, int] = (4, 8),
        delay: float = 0.02,
        sleep: Sleep = asyncio.sleep,
        new_id: NewId = fresh_tool_id,
    ) -> None:
        self._sizes = range(chunk[0], chunk[1] + 1)
        self._delay = delay
        self._sleep = sleep
        self._new_id = new_id

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Say what `plan` says, at a human pace. Never fails."""
        blocks = [replace(b, id=self._new_id()) if isinstance(b, ToolUse) else b for b in plan(request)]
        events = answer(request, blocks, itertools.cycle(self._sizes))
        async with aclosing(paced(events, self._delay, self._sleep)) as stream:
            async for event in stream:
                yield event


def plan(request: ModelRequest) -> tuple[AssistantBlock, ...]:
    """What comes next in the conversation. Calls have no id yet: that is given when they are said."""
    if request.edit is not None:
        return say(edited(request.edit) or request.edit.deletion_mark)
    text, steps = conversation_state(request.messages)
    blocks = _next(*looked_at(text), steps, frozenset(tool.name for tool in request.tools))
    if was_said(NOTICE, request.messages):
        return blocks
    return tuple(_with_notice(block, blocks) for block in blocks)


def _next(focus: str, text: str, steps: Sequence[CompletedCall], tools: frozenset[str]) -> tuple[AssistantBlock, ...]:
    text = text[:MAX_READ_CHARACTERS]
    command = read_edit(text) or read_command(text)
    missing = [name for name in _NEEDS[type(command)] if name not in tools]
    if missing:
        return say(f"I would need the tool {missing[0]} for that, and it is not there.")
    last = steps[-1] if steps else None
    if last is not None and last.is_error:
        return say(f"That did not work: {last.content[:300]}")
    return _step(command, focus, steps)


def _step(command: ChatCommand | PassageEdit, focus: str, steps: Sequence[CompletedCall]) -> tuple[AssistantBlock, ...]:
    last = steps[-1] if steps else None
    if last is None and "artifact_list" in _NEEDS[type(command)]:
        return listing()
    match command:
        case PassageEdit():
            return revise(command, focus, steps)
        case DraftCommand():
            return _wrote(last, "drafted") if last else _draft(command.topic)
        case AddCommand():
            return _add(command, focus, steps[-1])
        case ReplaceCommand():
            return _replace(command, focus, steps)
        case UndoCommand():
            return _undo(command, focus, steps[-1])
        case AskCommand():
            return _ask(command, last)
        case DeclineCommand():
            return say("I have declined.") if last else (call("decline_task", reason="You asked me to decline."),)
        case NoCommand():
            return say(HELP)
        case _:
            assert_never(command)


def _draft(topic: str, opening: str = "") -> tuple[AssistantBlock, ...]:
    return (
        Thinking(f"Planning an outline on {topic}.", signature="rehearsal"),
        ModelText(opening or f"I am drafting an outline on {topic}."),
        _update(slug(topic), f"{slug(topic)}.md", outline(topic), _MARKDOWN, f"An outline on {topic}."),
    )


def _add(command: AddCommand, focus: str, last: CompletedCall) -> tuple[AssistantBlock, ...]:
    if last.name != "artifact_list":
        return _wrote(last, "added to" if last.input.get("append") else "drafted")
    entries = entries_in(last.content)
    if not entries:
        return _draft(command.topic_without_place or "notes", "There is no document yet, so I start one.")
    placed = named(entries, command.place)
    topic = command.topic if placed else command.topic_without_place
    entry = placed or named(entries, command.before) or entry_of(entries, focus) or entries[-1]
    added = f"\n{command.text}\n" if command.text else section(topic)
    update = _update(entry["artifact_id"], name_of(entry), added, append=True)
    return ModelText(f"I am adding to “{name_of(entry)}”."), update


def _replace(command: ReplaceCommand, focus: str, steps: Sequence[CompletedCall]) -> tuple[AssistantBlock, ...]:
    match steps:
        case [*_, CompletedCall(name="artifact_list")]:
            entries = entries_in(steps[-1].content)
            if not entries:
                return say("There is no document yet in which I could replace something. Ask me to write one.")
            placed = named(entries, command.place) or named(entries, command.before)
            return reading(placed or entry_of(entries, focus) or entries[-1])
        case [*earlier, CompletedCall(name="artifact_read")]:
            listed = entries_in(earlier[-1].content) if earlier else []
            new = command.new if named(listed, command.place) else command.new_without_place
            return _rewrite(command.old, new, mapping(steps[-1].content))
        case _:
            return _wrote(steps[-1], f"replaced “{command.old}” in")


def _rewrite(old: str, new: str, artifact: Mapping[str, Any]) -> tuple[AssistantBlock, ...]:
    parts = [part for part in artifact.get("parts", ()) if part["kind"] == "text"]
    text = "".join(str(part.get("text", "")) for part in parts)
    name = name_of(artifact)
    text, count = substituted(text, old, new)
    if not count:
        return say(f'“{old}” does not stand in “{name}”. Quote the whole of it: replace "old" by "new".')
    media_type = str(parts[0].get("mimeType", ""))
    return ModelText(f"I am rewriting “{name}”."), _update(artifact.get("artifact_id", ""), name, text, media_type)


def _undo(command: UndoCommand, focus: str, last: CompletedCall) -> tuple[AssistantBlock, ...]:
    if last.name != "artifact_list":
        return say(last.content)
    entries = entries_in(last.content)
    if not entries:
        return say("There is no document yet, so there is nothing to undo.")
    entry = named(entries, command.message) or entry_of(entries, focus) or entries[-1]
    sentence = f"I am undoing what was done last in “{name_of(entry)}”."
    return ModelText(sentence), call("artifact_restore", artifact_id=entry["artifact_id"])


def _ask(command: AskCommand, last: CompletedCall | None) -> tuple[AssistantBlock, ...]:
    if last:
        return say(f"You answered: {last.content[:300]}")
    what = f"Please tell me {addressed(command.what.removeprefix('for '))}." if command.what else "What shall I know?"
    return (call("ask_user", question=command.question or what),)


def _wrote(last: CompletedCall, did: str) -> tuple[AssistantBlock, ...]:
    artifact = last.input.get("artifact")
    name = name_of(artifact) if isinstance(artifact, Mapping) else "the document"
    return say(f"I have {did} “{name}”. Ask me to add to it, or to replace words in it.")


def _update(
    artifact_id: str, name: str, text: str, media_type: str = "", description: str = "", *, append: bool = False
) -> ToolUse:
    part = {"kind": "text", **({"mimeType": media_type} if media_type else {}), "text": text}
    about = {"description": description} if description else {}
    artifact = {"artifact_id": artifact_id, "name": name, **about, "parts": [part]}
    return call("artifact_update", append=append, last_chunk=True, artifact=artifact)


def _with_notice(block: AssistantBlock, blocks: Sequence[AssistantBlock]) -> AssistantBlock:
    match block:
        case ModelText(text=text) if len(blocks) == 1:
            return ModelText(f"{text}\n\n{NOTICE}")
        case ToolUse(name="ask_user" | "decline_task"):
            return replace(block, input={key: f"{text}\n\n{NOTICE}" for key, text in block.input.items()})
        case _:
            return block
