"""An edit of several selections by the model: one call whose reply has the new texts of all of them.

Rule 1: each passage streams as an edit of its own, from the start to the end of all; they are completed together, as
        one version. The rules of a single passage (`rewrite.py`) hold for each.
Rule 2: a reply that lacks a passage, or has one twice, is requested again like one that is interrupted; after the last
        attempt nothing is changed (`passages_reply.py`, rule 3).
Rule 3: what writes one passage at a time, such as an agent's function, is called for each, in the order of the text.
        A passage in which it finds nothing to change stays as it is.
Rule 4: a passage whose new text equals the old one is not part of the version; without any other there is none.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.agent.answer import Answer, AnswerBlock
from a2a_canvas.server.agent.blocks import Progress
from a2a_canvas.server.agent.edit.edit_prompt import edit_request
from a2a_canvas.server.agent.edit.edit_reply import EditReply
from a2a_canvas.server.agent.edit.passages_prompt import passages_request
from a2a_canvas.server.agent.edit.passages_reply import PassagesReply, Texts
from a2a_canvas.server.agent.edit.rewrite import (
    EditContext,
    check_reply,
    is_in_fence,
    prompt_of,
)
from a2a_canvas.server.agent.endings import MAX_ATTEMPTS, Ending, ending_from_stop_reason, retry_delay
from a2a_canvas.server.agent.intent import SelectionEdit
from a2a_canvas.server.agent.listener import shield
from a2a_canvas.server.agent.model import EditPrompt, EditRefusal, ModelError, NothingToChange, TextReplaced, Usage
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.models import Artifact, JsonValue
from a2a_canvas.store.text.spans import format_lines
from a2a_canvas.store.text.wording import choice
from a2a_canvas.tools.change_report import describe_suggestions
from a2a_canvas.tools.edit_stream import EditStream, EditTarget, complete_together

logger = logging.getLogger(__name__)

NOT_ALL_PASSAGES = (
    "The agent did not answer each of the passages once, so nothing was changed. "
    "Ask again, in other words or for fewer passages at a time."
)
"""The failure reason of rule 2."""


@dataclass(slots=True)
class _SelectedPassage:
    """One passage, and what has been written of it in this attempt."""

    prompt: EditPrompt
    inside_fence: bool
    start_edit: partial[EditStream]
    stream: EditStream = field(init=False)
    reply: EditReply = field(init=False)
    stays: str | None = None

    async def begin(self) -> None:
        self.stream, self.reply = self.start_edit(), EditReply(self.prompt, inside_fence=self.inside_fence)
        await self.stream.start()

    @property
    def is_changed(self) -> bool:
        return self.stays is None and not self.stream.changes_nothing

    @property
    def where(self) -> str:
        return format_lines(self.stream.target.text, self.stream.target.span)


async def rewrite_passages(
    edit: SelectionEdit,
    artifact: Artifact,
    targets: Sequence[EditTarget],
    message_id: str,
    context: EditContext,
    progress: Progress,
    *,
    separately: bool = False,
) -> Ending:
    """Let the model rewrite the texts at `targets`; returns the ending of the task.

    Args:
        progress: that of the task so far.
        separately: rule 3.

    Raises:
        StoreError: the change was refused; the edits have been aborted.
        asyncio.CancelledError: the edits have been aborted.
    """
    in_order = sorted(zip(targets, edit.selections, strict=True), key=lambda pair: pair[0].span.start)
    passages = [
        _SelectedPassage(
            prompt := prompt_of(edit, artifact, target, by_lines=selection.line_start is not None),
            is_in_fence(prompt, target),
            partial(EditStream, context.workspace, target, edit.strategy),
        )
        for target, selection in in_order
    ]
    groups = [[passage] for passage in passages] if separately else [passages]
    run = _PassagesEdit(passages, message_id, context, progress)
    try:
        for passage in passages:
            await passage.begin()
        for group in groups:
            if ending := await run.write(group):
                await shield(run.abort(passages))
                return ending
        return await run.complete()
    except BaseException:
        await shield(run.abort(passages))
        raise


class _PassagesEdit:
    """One run of the edit."""

    def __init__(
        self, passages: Sequence[_SelectedPassage], message_id: str, context: EditContext, progress: Progress
    ) -> None:
        self._passages = passages
        self._message_id = message_id
        self._context = context
        self._progress = progress
        self._remarks: list[str] = []

    async def write(self, group: Sequence[_SelectedPassage]) -> Ending | None:
        """Have the texts of some passages written; the ending if that failed."""
        self._progress = self._progress.next_round()
        had_empty_reply = False
        attempts_left = MAX_ATTEMPTS - 1
        while True:
            try:
                return await self._call(group, once_more=not had_empty_reply)
            except NothingToChange as answered:
                if len(group) == len(self._passages):
                    return Ending(ev.State.COMPLETED, str(answered))
                group[0].stays = str(answered)
                return None
            except EditRefusal as refusal:
                return Ending(ev.State.REJECTED, str(refusal))
            except TextReplaced:
                await self._begin_again(group)
            except ModelError as error:
                logger.warning("The model call of an edit failed: %s", error)
                had_empty_reply = had_empty_reply or any(each.reply.empty for each in group)
                if not (attempts_left and error.retryable):
                    return Ending(ev.State.FAILED, error.reason)
                await self._begin_again(group)
                await self._context.sleep(retry_delay(attempts_left, error, random.random()))
                attempts_left -= 1

    async def _call(self, group: Sequence[_SelectedPassage], *, once_more: bool) -> Ending | None:
        """One call. Raises `ModelError` for a reply that cannot be used."""
        prompts, instructions = [each.prompt for each in group], self._context.instructions
        together = PassagesReply(prompts, [each.reply for each in group]) if len(group) > 1 else None
        request = (
            passages_request(prompts, self._message_id, instructions)
            if together
            else edit_request(prompts[0], self._message_id, instructions)
        )
        answer = _PassagesAnswer(self._progress, self._context, group, together)
        try:
            try:
                await answer.read(self._context.llm.stream(request))
            except NothingToChange:
                await answer.end("end_turn", Usage())
                raise
            finally:
                await answer.end("error", Usage())
                self._progress = answer.progress
            await answer.show(together.finish() if together else [(0, group[0].reply.finish())])
        finally:
            self._progress = answer.progress
        if ending := ending_from_stop_reason(answer.stop_reason):
            return ending
        if together and not together.complete:
            raise ModelError(NOT_ALL_PASSAGES, retryable=True)
        for each in group:
            check_reply(each.reply, once_more=once_more)
        self._remarks += filter(None, (each.reply.remarks for each in group))
        self._remarks += filter(None, [together.remarks if together else ""])
        return None

    async def _begin_again(self, group: Sequence[_SelectedPassage]) -> None:
        for passage in group:
            await shield(passage.stream.abort(again=True))
            await passage.begin()

    async def abort(self, passages: Sequence[_SelectedPassage]) -> None:
        """End the edits without a change."""
        begun = [passage for passage in passages if hasattr(passage, "stream")]
        for passage in begun:
            await passage.stream.abort(again=passage is not begun[-1])

    async def complete(self) -> Ending:
        """Make the version."""
        name = self._passages[0].prompt.name
        changed = [passage for passage in self._passages if passage.is_changed]
        same = [passage for passage in self._passages if not passage.is_changed]
        if not changed:
            await shield(self.abort(self._passages))
            target = same[0].stream.target
            text = f"Nothing has changed: the agent left {name} as it is in version {target.version}."
            now: dict[str, JsonValue] = {"artifactId": target.artifact_id, "artifactVersion": target.version}
            return Ending(ev.State.COMPLETED, self._with_remarks(text), {CANVAS: now})
        for passage in same:
            await passage.stream.abort(again=True)
        applied = await complete_together([passage.stream for passage in changed])
        where = choice([passage.where for passage in changed], "and")
        text = f"Edited {name} at {where}: version {applied.version} is saved."
        if applied.suggestions:
            text = f"Suggested changes to {where} of {name} ({describe_suggestions(applied.suggestions)})."
        if same:
            text = f"{text} Unchanged: {choice([passage.where for passage in same], 'and')}."
        return Ending(ev.State.COMPLETED, self._with_remarks(text))

    def _with_remarks(self, text: str) -> str:
        return "\n\n".join((text, *self._remarks))


class _PassagesAnswer(Answer[AnswerBlock]):
    """The model's answer: its text goes into the edits. There are no tools."""

    def __init__(
        self,
        progress: Progress,
        context: EditContext,
        group: Sequence[_SelectedPassage],
        together: PassagesReply | None,
    ) -> None:
        super().__init__(progress, context.emit, context.llm.thinking, AnswerBlock)
        self._group = group
        self._together = together

    async def _text(self, block: AnswerBlock, delta: str) -> None:
        await self.show(self._together.feed(delta) if self._together else [(0, self._group[0].reply.feed(delta))])

    async def show(self, texts: Texts) -> None:
        """Texts of passages have come."""
        for at, text in texts:
            await self._group[at].stream.feed(text)
