"""What clients were told of a scripted task, held against its script. Pure.

What is shown must at any time be what the script makes it, up to some point that is not before the last result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.server.faults.crash_scripts import ScriptedTask, reached, repeated
from tests.server.faults.fault_scripts import PAUSED
from tests.server.faults.observed_task import FaultKind, ObservedTask

ENDS = tuple(f"TASK_STATE_{name}" for name in ("COMPLETED", "FAILED", "CANCELED", "REJECTED"))


@dataclass(frozen=True, slots=True)
class Fault:
    kind: FaultKind
    what: str


class JudgedTask(ObservedTask):
    """The fold of all events of a task; violations are collected in `faults`."""

    def __init__(self, script: ScriptedTask) -> None:
        super().__init__()
        self.faults: list[Fault] = []
        self._script = script
        self._completed: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many things were told that must last."""
        return len(self.messages) + len(self.versions) + len(self.results) + (self.state in ENDS)

    @property
    def ended(self) -> bool:
        return self.state in ENDS

    @property
    def paused(self) -> bool:
        return self.state == PAUSED

    def fault(self, kind: FaultKind, what: str) -> None:
        self.faults.append(Fault(kind, f"task {self.task_id} ({self._script.says}): {what}"))

    def check_snapshot(self) -> None:
        for artifact, completed in self._completed.items():
            if (self._reached(artifact) or 0) < completed:
                self.fault("missing", f"what a completed call wrote to {artifact}: {self.texts.get(artifact)!r}")
        for artifact in self.texts:
            self.check_text(artifact)

    def check_text(self, artifact: str) -> None:
        if self._reached(artifact) is None and self.texts[artifact] != self._script.before:
            twice = repeated(self.texts[artifact])
            self.fault("twice" if twice else "text", f"{artifact} is {self.texts[artifact]!r}")

    def check_result(self, content: Any) -> None:
        if len(self.results) == self._script.calls + 1:
            self.fault("twice", f"{len(self.results)} calls had a result: {content}")
        for artifact in self.texts:
            self._completed[artifact] = self._reached(artifact) or 0

    def _reached(self, artifact: str) -> int | None:
        return reached(self._script.states[artifact], self.texts.get(artifact, ""))
