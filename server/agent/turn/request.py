"""What a turn is asked to do, and its bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from a2a_canvas.server.agent.events import Transcript, UserMessage
from a2a_canvas.server.agent.progress import Progress


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """When a turn must end by itself."""

    rounds: int = 30
    tool_errors_in_a_row: int = 5


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn: a new one, or one that goes on after a pause or a crash.

    After a crash it begins when `resume.reclaim` has ended what was open, and goes on from the transcript: what was
    completed is not asked for again, what was said after the last completed call is.

    Attributes:
        earlier: the transcripts of the context's earlier tasks, oldest first.
        transcript: this task's own, ending with the message to answer.
        progress: where block indices, rounds and phases stand.
        later: ids of the context's tasks that began after this one: their changes the model has not been told of.
        changed: ids of the artifacts the task has changed so far.
        drafts: ids of those of which it has a draft open, after a crash; the turn goes on with them.
        inbox: takes the user messages that have come since it was last called. When it is called with
            `closing=True` and there are none, the turn takes no more.
    """

    task_id: str
    context_id: str
    earlier: tuple[Transcript, ...]
    transcript: Transcript
    inbox: Callable[[bool], tuple[UserMessage, ...]]
    progress: Progress = field(default_factory=Progress)
    later: frozenset[str] = frozenset()
    changed: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()
    limits: TurnLimits = field(default_factory=TurnLimits)
