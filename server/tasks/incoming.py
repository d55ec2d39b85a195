"""Messages as they reach the runtime, and deduplication: one that is sent again joins the task of the first.

Rule 1: the same message has the same caller, `messageId`, `taskId`, `contextId` and content, within 24 hours.
Rule 2: anonymous callers share an identity, so theirs count only with an explicit `contextId`, or with a `messageId`
        that no other caller can have made up: a UUID or a ULID. `m-1` of two callers are two messages.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Container
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import assert_never

from a2a_canvas.server.accounts.access import Level
from a2a_canvas.server.agent.annotation_operations import AcceptAll, Annotate, Decide, Reply
from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.intent import Converse, Intent, Put, SelectionEdit, Upload, VersionStep
from a2a_canvas.server.tasks.kept_files import KeptFile
from a2a_canvas.server.tasks.push_configs import PushConfig
from a2a_canvas.store.changes import AppendParts, Change, ReplaceParts
from a2a_canvas.store.codec import make_converter
from a2a_canvas.store.ids import ContextKey, is_unique

DEDUP_WINDOW = timedelta(hours=24)


def _digest(content: bytes) -> str:
    return content.digest if isinstance(content, KeptFile) else hashlib.sha256(content).hexdigest()


_DIGESTS = make_converter(_digest)


def level_of(intent: Intent) -> Level:
    """What a caller must be allowed to do for what a message asks for. Pure.

    Whatever starts a model needs `EDIT`: it uses the owner's tokens.
    """
    match intent:
        case Annotate() | Reply() | Decide(verb="withdraw"):
            return Level.COMMENT
        case Converse() | SelectionEdit() | VersionStep() | Put() | Upload() | Decide() | AcceptAll():
            return Level.EDIT
        case _:
            assert_never(intent)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message as it reaches the runtime.

    Attributes:
        owner: of the context that it is sent to; `Runtime.send` finds it.
        context_id, task_id: as the sender gave them; empty for none.
        changes: by artifact id, changes that the sender has already made: the task stores them as the user's, before
            anything else. An operation that comes with changes has been checked by the caller.
        push: where the sender wants the notifications of the task that the message goes to; without a task yet.
        level, context: what the sender may do in the context, and its key; found with the owner. None for a new one.
        of_model: a model wrote it: it approves no call and logs nobody in, regardless of the sender.
        generation: of its task when the sender was asked what it answers; 0 for an answer to whatever is asked now.
    """

    message: UserMessage
    owner: str = ""
    context_id: str = ""
    task_id: str = ""
    changes: tuple[tuple[str, Change], ...] = ()
    push: PushConfig | None = None
    level: Level = Level.EDIT
    context: ContextKey | None = None
    of_model: bool = False
    generation: int = 0

    @property
    def required_level(self) -> Level:
        """What its sender must be allowed to do. A push config makes the server send requests: that takes `EDIT`."""
        return Level.EDIT if self.changes or self.push else level_of(self.message.intent)

    @property
    def message_key(self) -> str:
        """The deduplication key (rule 1); empty if the message is always a new one (rule 2)."""
        known = self.owner or self.context_id or is_unique(self.message.message_id)
        return hashlib.sha256(_content(self).encode()).hexdigest() if known else ""

    @property
    def size(self) -> int:
        """Bytes of the message: of its parts and metadata, and of the changes that come with it."""
        changed = [change.parts for _, change in self.changes if isinstance(change, ReplaceParts | AppendParts)]
        metadata = json.dumps(self.message.metadata, ensure_ascii=False)
        parts = chain(self.message.parts, *changed)
        return sum(part.size for part in parts) + len(metadata.encode(errors="replace"))


def _content(incoming: Incoming) -> str:
    """The whole message as text: the same in every process, and for every order of the keys of its objects.

    A file is there by its digest: as Base64, 10 MB would hold the event loop for 0.1 s.
    """
    changes = [(where, type(change).__name__, _DIGESTS.unstructure(change)) for where, change in incoming.changes]
    message = _DIGESTS.unstructure(incoming.message)
    return json.dumps([incoming.owner, incoming.context_id, incoming.task_id, message, changes], sort_keys=True)


class RecentMessages:
    """Stores in memory which task each message went to, by deduplication key."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._seen: OrderedDict[str, tuple[datetime, str]] = OrderedDict()

    def task_of(self, key: str) -> str:
        """The id of the task that the message went to; empty if it is new."""
        oldest = self._now() - DEDUP_WINDOW
        while self._seen and next(iter(self._seen.values()))[0] < oldest:
            self._seen.popitem(last=False)
        return self._seen.get(key, (None, ""))[1]

    def remember(self, key: str, task_id: str) -> None:
        if key:
            self._seen[key] = (self._now(), task_id)

    def forget(self, task_ids: Container[str]) -> None:
        """Take what went to these tasks for new again."""
        self._seen = OrderedDict((key, seen) for key, seen in self._seen.items() if seen[1] not in task_ids)
