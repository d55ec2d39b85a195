"""The messages of a framework's agent between the tasks of a conversation: in `turn.state`, under the adapter's key.

Rule 1: the messages of a task are one turn. If another task has saved its own meanwhile, this task's are added to them.
Rule 2: a turn that would take more than a quarter of the state is kept without its files: their names are in its text.
Rule 3: messages that the framework cannot read, because another version of it has saved them, are replaced: the agent
        then reads the texts of the conversation, as in its first task.
Rule 4: a history that outgrows the state loses its oldest turns, whole. The first time in a conversation is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.server.agent.loops.turn_values import StateConflict, fit_turns
from a2a_canvas.store.models import JsonValue
from a2a_canvas.tools.json_values import json_text

logger = logging.getLogger(__name__)

Messages = list[JsonValue]
M = TypeVar("M")
IsFile = Callable[[Mapping[str, JsonValue]], bool]


class MessageHistory:
    """The messages of one task, after those of the tasks before it.

    Args:
        key: of the adapter, in the state.
        is_file: whether an object in a list is a file with its content.
    """

    def __init__(self, turn: Turn, key: str, is_file: IsFile = lambda value: False) -> None:
        self._turn = turn
        self._key = key
        self._is_file = is_file
        self._state: dict[str, JsonValue] = {}
        self._loaded: Messages = []

    async def load(self, parse: Callable[[Messages], list[M]]) -> list[M] | None:
        """The messages of the tasks before, parsed; None if none has saved any that can be read.

        Args:
            parse: raises a `ValueError` if it cannot read them.
        """
        await self._read()
        if self._key not in self._state:
            return None
        self._loaded = [message for turn in self._turns for message in turn]
        try:
            return parse([*self._loaded])
        except ValueError as error:
            self._loaded, self._state = [], self._with([], dropped=self._dropped)
            logger.warning("The kept messages of this conversation cannot be read: %s", type(error).__name__)
            return None

    async def save(self, messages: Sequence[JsonValue]) -> None:
        """Set the messages: those loaded, then those of this task. A framework may have shortened the ones loaded."""
        count = len(self._loaded)
        follows = [*messages[:count]] == self._loaded
        turn = self._fit([*messages[count:]] if follows else [*messages])
        turns = [*self._turns, turn] if follows else [turn]
        while True:
            try:
                await self._set(turns)
                return
            except StateConflict:
                await self._read()
                turns = [*self._turns, turn]

    def _fit(self, turn: Messages) -> Messages:
        """A turn, without its files if it is large (rule 2)."""
        size = len(json_text(turn, "messages").encode())
        return turn if size <= self._turn.state.max_bytes / 4 else [_without(self._is_file, each) for each in turn]

    async def _read(self) -> None:
        state = await self._turn.state.get()
        self._state = state if isinstance(state, dict) else {}

    async def _set(self, turns: Sequence[Messages]) -> None:
        around = len(json_text(self._with([], dropped=False), "state").encode()) - len("[]")
        kept = fit_turns(turns, self._turn.state.max_bytes - around)
        dropped = len(kept) < len(turns)
        await self._turn.state.set(self._with(kept, dropped=dropped or self._dropped))
        if dropped and not self._dropped:
            logger.warning(
                "The messages of this conversation exceed --max-state-bytes; from now on its oldest turns are dropped."
            )

    def _with(self, turns: Sequence[Messages], *, dropped: bool) -> dict[str, JsonValue]:
        return {**self._state, self._key: {"turns": [*turns], "dropped": dropped}}

    @property
    def _turns(self) -> Sequence[Messages]:
        match self._state.get(self._key):
            case {"turns": list(turns)}:
                return [turn for turn in turns if isinstance(turn, list)]
            case _:
                return []

    @property
    def _dropped(self) -> bool:
        match self._state.get(self._key):
            case {"dropped": bool(dropped)}:
                return dropped
            case _:
                return False


def _without(is_file: IsFile, value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return {key: _without(is_file, each) for key, each in value.items()}
        case list():
            return [_without(is_file, each) for each in value if not (isinstance(each, dict) and is_file(each))]
        case _:
            return value
