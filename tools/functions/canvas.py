"""`Canvas`: the operations available to a running tool."""

from __future__ import annotations

import json

from a2a_canvas.store.models import JsonValue
from a2a_canvas.tools.functions.recorded_call import RecordedCall


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

    def recall_all(self, *names: str) -> list[JsonValue]:
        """The values stored by `remember` under these names, in all calls of the conversation so far, oldest first."""
        return [json.loads(value) for value in self._services.kept(names)]
