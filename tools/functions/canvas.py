"""`Canvas`: the operations available to a running tool."""

from __future__ import annotations

import json
from collections import Counter

from a2a_canvas.store.models import JsonValue
from a2a_canvas.tools.functions.recorded_call import RecordedCall, do_nothing


class Canvas(RecordedCall):
    """The context of one call of a tool: its artifacts, its progress, the user.

    Attributes:
        context_id: the conversation, `contextId` in A2A.
        task_id: the task, `taskId` in A2A.
        caller: the user whose message the model had read last when it made the call; empty for an anonymous caller.

    >>> from a2a_canvas import Canvas, tool
    >>> @tool
    ... async def count_to(last: int, canvas: Canvas) -> str:
    ...     \"\"\"Writes the numbers up to the last one.\"\"\"
    ...     for number in range(1, last + 1):
    ...         await canvas.progress(f"Writing {number} of {last}…")
    ...         await canvas.artifact("numbers").append(f"{number} ", name="numbers.txt")
    ...     return f"The numbers up to {last} are in the artifact numbers."
    >>> count_to.tool.input_schema["required"]
    ['last']
    """

    def recall(self, name: str) -> JsonValue:
        """The value stored by `remember` in this call; None if there is none."""
        value: JsonValue = json.loads(self._kept.get(name, "null"))
        return value

    async def remember(self, name: str, value: JsonValue) -> None:
        """Store a JSON value for this call, also across a crash. It is durable when this returns.

        Raises:
            ValueError: it is not a JSON value.
        """
        await self._keep(name, value, do_nothing)

    # ------------------------------------------------------------- for the turn

    def recall_all(self, name: str) -> list[JsonValue]:
        """The values stored by `remember` under a name, in all calls of the conversation so far."""
        return [json.loads(value) for value in self._services.kept(name)]

    def skip_question(self) -> None:
        """Count the next question as asked: the result of its answer is recorded (rule 4)."""
        self._questions += 1

    def skip_saved_changes(self) -> None:
        """Count the saved changes as made, for a tool that determines itself what remains to be changed."""
        self._changes |= Counter(self._record.changes)
