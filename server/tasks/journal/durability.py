"""Which entries last: who sees one can rely on it, whatever happens to the server. Pure.

Messages, changes of the state, completed calls, closed versions. Everything else (text and drafts on their way, labels)
is seen at once and written a moment later; a crash may take the last of it back.
"""

from __future__ import annotations

from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    MessageReceived,
    State,
    StatusChanged,
    ToolFailed,
    ToolSucceeded,
    TranscriptAppended,
    TurnEvent,
)
from a2a_canvas.store.edits import EditCompleted


def is_durable(state: State, event: TurnEvent) -> bool:
    """Whether an entry must be durable before it is seen.

    Args:
        state: the task's before the entry.
    """
    match event:
        case StatusChanged(message=message):
            return event.state is not state or (message is not None and not message.label)
        case ArtifactChanged():
            return event.last_chunk
        case MessageReceived() | TranscriptAppended() | ToolSucceeded() | ToolFailed() | EditCompleted():
            return True
        case _:
            return False
