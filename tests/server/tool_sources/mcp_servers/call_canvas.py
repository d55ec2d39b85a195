"""The canvas of one call, for tests of tools without a turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from a2a_canvas.tools.functions.canvas import Canvas
from a2a_canvas.tools.functions.function_tool import FunctionTool
from a2a_canvas.tools.functions.recorded_call import CallPaused
from a2a_canvas.tools.functions.results import ToolError


@dataclass
class CallCanvas:
    """Answers questions as recorded; one that has no answer yet pauses the call."""

    answers: Sequence[str] = ()
    kept: dict[str, str] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    question_count: int = 0

    async def progress(self, label: str) -> None:
        self.labels.append(label)

    async def ask(self, question: str, *, authentication: bool = False) -> str:
        self.questions.append(question)
        self.question_count += 1
        if self.question_count > len(self.answers):
            raise CallPaused(question, authentication)
        return self.answers[self.question_count - 1]

    def skip_question(self) -> None:
        self.question_count += 1

    def recall(self, name: str) -> Any:
        return json.loads(self.kept.get(name, "null"))

    async def remember(self, name: str, value: Any) -> None:
        self.kept[name] = json.dumps(value)


async def outcome(tool: FunctionTool, given: Mapping[str, Any], canvas: CallCanvas | None = None) -> Any:
    """What a call returns, or the text of its error, or `CallPaused`."""
    try:
        return await tool.run(given, cast(Canvas, canvas or CallCanvas()))
    except ToolError as error:
        return f"ToolError: {error}"
    except CallPaused:
        return CallPaused
