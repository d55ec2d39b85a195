"""An edit of a selection by the model: one model call whose reply is the new text of the selection.

Rule 1: the reply streams into an `EditStream`. Only the selection changes, and only when the reply is complete.
Rule 2: a broken stream is retried after a delay, at most twice; each attempt is a separate edit.
Rule 3: a reply that mixes the passage with remarks inseparably (`edit_reply.py`) is retried in the same way.
Rule 4: a reply without text is retried once: nothing is deleted without the deletion mark.
Rule 5: text that an agent's function shows and then replaces (`TextReplaced`) is a separate edit, too, which does not
        count as an attempt.
Rule 6: a reply equal to the passage makes no version.
Rule 7: an error, a cancellation or a truncated reply aborts the edit. Between the change and the final status nothing
        waits.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.agent.answer import Answer, AnswerBlock
from a2a_canvas.server.agent.blocks import Progress
from a2a_canvas.server.agent.edit.edit_prompt import edit_prompt, edit_request
from a2a_canvas.server.agent.edit.edit_reply import EditReply
from a2a_canvas.server.agent.endings import MAX_ATTEMPTS, Ending, ending_from_stop_reason, retry_delay
from a2a_canvas.server.agent.intent import SelectionEdit
from a2a_canvas.server.agent.listener import shield
from a2a_canvas.server.agent.model import (
    LLM,
    EditPrompt,
    EditRefusal,
    ModelError,
    ModelRequest,
    NothingToChange,
    TextReplaced,
    Usage,
)
from a2a_canvas.server.agent.text.file_language import is_markdown, language_of
from a2a_canvas.server.agent.text.markdown_code import inside_fence
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.models import AppliedChange, Artifact, JsonValue, text_of
from a2a_canvas.store.text.spans import format_lines
from a2a_canvas.tools.change_report import describe_suggestions
from a2a_canvas.tools.edit_stream import EditStream, EditTarget
from a2a_canvas.tools.tool import Workspace

logger = logging.getLogger(__name__)

NOT_ONLY_THE_PASSAGE = (
    "The agent did not return the passage alone, so nothing was changed. "
    "Ask again, in other words or for less at a time."
)
"""The failure reason of rule 3."""

NO_TEXT = (
    "The agent returned no text, so nothing was changed. "
    "Ask again, in other words; if the passage is to go, ask to delete it."
)
"""The failure reason of rule 4: the reply was thinking alone, a tool call, or empty."""


@dataclass(frozen=True, slots=True)
class EditContext:
    """The collaborators of an edit. `sleep` waits before a retry, `instructions` are the agent's."""

    llm: LLM
    workspace: Workspace
    emit: ev.Emit
    sleep: Callable[[float], Awaitable[object]]
    instructions: str = ""


async def rewrite(
    edit: SelectionEdit,
    artifact: Artifact,
    target: EditTarget,
    message_id: str,
    context: EditContext,
    progress: Progress,
) -> Ending:
    """Let the model rewrite the text at `target`; returns the ending of the task.

    Args:
        progress: that of the task so far.

    Raises:
        StoreError: the change was refused; the edit has been aborted.
        asyncio.CancelledError: the edit has been aborted.
    """
    prompt = prompt_of(edit, artifact, target, by_lines=edit.selection.line_start is not None)
    request = edit_request(prompt, message_id, context.instructions)
    fenced = is_in_fence(prompt, target)
    progress = progress.next_round()
    had_empty_reply = False
    attempts_left = MAX_ATTEMPTS - 1
    while True:
        stream = EditStream(context.workspace, target, edit.strategy)
        reply = EditReply(prompt, inside_fence=fenced)
        answer = _EditAnswer(progress, context, reply, stream)
        try:
            await stream.start()
            await _write(request, answer, reply, stream, context.llm)
            if ending := ending_from_stop_reason(answer.stop_reason):
                await shield(stream.abort())
                return ending
            check_reply(reply, once_more=not had_empty_reply)
            if stream.changes_nothing:
                await shield(stream.abort())
                return _unchanged_ending(stream.target, prompt.name, reply.remarks)
            return _edited_ending(await stream.complete(), stream.target, prompt.name, reply.remarks)
        except NothingToChange as answered:
            await shield(stream.abort())
            return Ending(ev.State.COMPLETED, str(answered))
        except EditRefusal as refusal:
            await shield(stream.abort())
            return Ending(ev.State.REJECTED, str(refusal))
        except TextReplaced:
            await shield(stream.abort(again=True))
        except ModelError as error:
            logger.warning("The model call of an edit failed: %s", error)
            again = bool(attempts_left) and error.retryable
            had_empty_reply = had_empty_reply or error.reason == NO_TEXT
            await shield(stream.abort(again=again))
            if not again:
                return Ending(ev.State.FAILED, error.reason)
            await _pause(retry_delay(attempts_left, error, random.random()), context, stream)
            attempts_left -= 1
        except BaseException:
            await shield(stream.abort())
            raise
        finally:
            progress = answer.progress


async def _pause(seconds: float, context: EditContext, stream: EditStream) -> None:
    try:
        await context.sleep(seconds)
    except BaseException:  # there will be no retry
        await shield(stream.show())
        raise


def is_in_fence(prompt: EditPrompt, target: EditTarget) -> bool:
    """Whether the passage is in a fenced block of Markdown."""
    return is_markdown(prompt.language) and inside_fence(target.text[: target.span.start])


def prompt_of(edit: SelectionEdit, artifact: Artifact, target: EditTarget, *, by_lines: bool) -> EditPrompt:
    """The prompt for one passage of the edit; `by_lines`: its sender named its lines."""
    text = text_of(artifact.parts)
    assert text  # a passage of it has been selected
    return edit_prompt(
        target.text,
        target.span,
        name=artifact.title,
        language=language_of(artifact.name, text.media_type, text.metadata),
        instruction=edit.instruction,
        strategy=edit.strategy,
        selected_by_lines=by_lines,
    )


async def _write(request: ModelRequest, answer: _EditAnswer, reply: EditReply, stream: EditStream, llm: LLM) -> None:
    try:
        await answer.read(llm.stream(request))
    except NothingToChange:
        await answer.end("end_turn", Usage())
        raise
    finally:
        await answer.end("error", Usage())
    await stream.feed(reply.finish())


def check_reply(reply: EditReply, *, once_more: bool) -> None:
    """Raises `ModelError` for a reply that is not the passage (rules 3 and 4)."""
    if not reply.alone:
        raise ModelError(NOT_ONLY_THE_PASSAGE, retryable=True)
    if reply.empty:
        raise ModelError(NO_TEXT, retryable=once_more)


def _unchanged_ending(target: EditTarget, name: str, remarks: str) -> Ending:
    """Like a put that changes nothing, the message names the version of the text."""
    where = format_lines(target.text, target.span)
    text = f"Nothing has changed: the agent left {name} at {where} as it is in version {target.version}."
    now: dict[str, JsonValue] = {"artifactId": target.artifact_id, "artifactVersion": target.version}
    return Ending(ev.State.COMPLETED, f"{text}\n\n{remarks}" if remarks else text, {CANVAS: now})


def _edited_ending(applied: AppliedChange, target: EditTarget, name: str, remarks: str) -> Ending:
    where = format_lines(target.text, target.span)
    text = f"Edited {name} at {where}: version {applied.version} is saved."
    if applied.suggestions:
        text = f"Suggested a change to {where} of {name} ({describe_suggestions(applied.suggestions)})."
    return Ending(ev.State.COMPLETED, f"{text}\n\n{remarks}" if remarks else text)


class _EditAnswer(Answer[AnswerBlock]):
    """The model's answer: its text goes into the edit. There are no tools."""

    def __init__(self, progress: Progress, context: EditContext, reply: EditReply, stream: EditStream) -> None:
        super().__init__(progress, context.emit, context.llm.thinking, AnswerBlock)
        self._reply = reply
        self._stream = stream

    async def _text(self, block: AnswerBlock, delta: str) -> None:
        await self._stream.feed(self._reply.feed(delta))
