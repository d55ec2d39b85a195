"""Finds the texts of several passages in a model's reply, while it streams in. Pure.

Rule 1: what is between the tags of a passage (`passages_prompt.py`) is its text, read as the reply to an edit of it
        alone (`edit_reply.py`). Everything else is a remark, and thinking at the beginning is nothing.
Rule 2: a line break after the opening tag is removed, unless the selection begins with one; then the one before the
        closing tag is removed, too.
Rule 3: nothing is guessed: a passage that is missing, unfinished or answered twice, a tag within another one, and the
        tag of no passage mean that the reply cannot be used.

Invariant: the joined texts do not depend on how the reply is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from a2a_canvas.server.agent.edit.edit_reply import EditReply, without_thinking
from a2a_canvas.server.agent.edit.passages_prompt import tag_number_of
from a2a_canvas.server.agent.edit.reply_fence import ReplyFindings, finish
from a2a_canvas.server.agent.model import EditPrompt

_LINE_BREAK: Final = re.compile(r"\r?\n")
_LAST_BREAK: Final = re.compile(r"\r?\n?\Z")
MAX_REMARKS: Final = 2_000
"""Characters that are kept of what is no text."""

Texts = list[tuple[int, str]]
"""Pieces of text, each with the index of its passage."""


class PassagesReply:
    """Reads a reply in pieces.

    Args:
        prompts: the passages, as the model was asked for them.
        replies: read the text of each.
    """

    def __init__(self, prompts: Sequence[EditPrompt], replies: Sequence[EditReply]) -> None:
        number = tag_number_of(prompts)
        self._replies = replies
        self._begins_with_break = [bool(_LINE_BREAK.match(prompt.selected)) for prompt in prompts]
        self._tag = re.compile(rf"<(?P<slash>/?)passage-(?P<at>[0-9]{{1,9}})-{number}>")
        self._tags = [f"<{slash}passage-{at}-{number}>" for at in range(1, len(prompts) + 1) for slash in ("", "/")]
        self._echo = re.compile(rf"</?(?:before|after|outline|request)(?:-[0-9]+)?-{number}>")
        self._thinking = without_thinking(prompts[0], ReplyFindings())
        next(self._thinking)
        self._held = self._break = self._remarks = ""
        self._at: int | None = None
        self._is_new = self._on_lines = False
        self._answered: set[int] = set()
        self._is_ambiguous = False

    @property
    def complete(self) -> bool:
        """Whether each passage has one answer (rule 3); available after `finish`."""
        return not self._is_ambiguous and len(self._answered) == len(self._replies)

    @property
    def remarks(self) -> str:
        """What the model wrote outside of the tags; empty if it repeats what it was shown."""
        return "" if self._echo.search(self._remarks) else self._remarks.strip()

    def feed(self, delta: str) -> Texts:
        """The texts that are final after `delta`."""
        return [*self._split(self._thinking.send(delta), last=False)]

    def finish(self) -> Texts:
        """The rest of them. Nothing may be fed after it."""
        texts = [*self._split(finish(self._thinking, ""), last=True)]
        self._is_ambiguous |= self._at is not None
        return texts

    def _split(self, text: str, *, last: bool) -> Iterator[tuple[int, str]]:
        self._held += text
        while tag := self._tag.search(self._held):
            yield from self._pass(self._held[: tag.start()])
            self._held = self._held[tag.end() :]
            yield from self._meet(int(tag["at"]) - 1, closing=bool(tag["slash"]))
        certain = len(self._held) if last else self._certain_length()
        certain_text, self._held = self._held[:certain], self._held[certain:]
        yield from self._pass(certain_text)

    def _certain_length(self) -> int:
        """The length that is certainly no part of a tag."""
        at = self._held.rfind("<")
        may_be_tag = at >= 0 and any(tag.startswith(self._held[at:]) for tag in self._tags)
        return at if may_be_tag else len(self._held)

    def _pass(self, text: str) -> Iterator[tuple[int, str]]:
        if self._at is None:
            self._remarks = (self._remarks + text)[:MAX_REMARKS]
            return
        text, self._break = self._break + text, ""
        if self._is_new:
            if text in ("", "\r"):
                self._break = text
                return
            self._is_new = False
            found = None if self._begins_with_break[self._at] else _LINE_BREAK.match(text)
            self._on_lines, text = found is not None, text[found.end() if found else 0 :]
        if self._on_lines and (found := _LAST_BREAK.search(text)):
            text, self._break = text[: found.start()], text[found.start() :]
        if shown := self._replies[self._at].feed(text):
            yield self._at, shown

    def _meet(self, at: int, *, closing: bool) -> Iterator[tuple[int, str]]:
        if closing and at == self._at:
            rest = "" if self._on_lines and self._break.endswith("\n") else self._break
            text = self._replies[at].feed(rest) + self._replies[at].finish()
            self._at = None
            self._answered.add(at)
            if text:
                yield at, text
        elif closing or self._at is not None or at in self._answered or not 0 <= at < len(self._replies):
            self._is_ambiguous = True
        else:
            self._at, self._break, self._is_new, self._on_lines = at, "", True, False
