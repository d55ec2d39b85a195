"""The result of a scenario: a table, and figures with their targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Check:
    """A figure that has a target.

    Attributes:
        name: one word or two; the key in the JSON line.
    """

    name: str
    value: float
    bound: Literal["at most", "at least"]
    target: float
    unit: str = ""

    @property
    def holds(self) -> bool:
        return self.value <= self.target if self.bound == "at most" else self.value >= self.target

    def __str__(self) -> str:
        return self.shown("MISS")

    def shown(self, missed: str) -> str:
        """The figure with its target; `missed` is the verdict if it misses it."""
        unit = f" {self.unit}" if self.unit else ""
        verdict = "pass" if self.holds else missed
        return f"{verdict}  {self.name}: {_shown(self.value)}{unit} ({self.bound} {_shown(self.target)}{unit})"


Cell = str | int | float


@dataclass(slots=True)
class Report:
    """One scenario's result; cells are shown with three digits.

    Attributes:
        busy: why the figures say nothing (`quiet.py`); empty on a quiet machine.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: list[Sequence[Cell]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    busy: str = ""

    @property
    def holds(self) -> bool:
        """Whether no figure misses its target, on a quiet machine."""
        return bool(self.busy) or all(check.holds for check in self.checks)

    def __str__(self) -> str:
        table = [tuple(self.columns), *(tuple(_shown(cell) for cell in row) for row in self.rows)]
        widths = [max(len(row[column]) for row in table) for column in range(len(self.columns))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        checks = [check.shown("BUSY" if self.busy else "MISS") for check in self.checks]
        notes = [*self.notes, self.busy] if self.busy else self.notes
        return "\n".join(("", f"== {self.name}: {self.title}", *lines, *checks, *notes))

    def figures(self) -> dict[str, float]:
        """The checked figures by name."""
        return {check.name: round(check.value, 3) for check in self.checks}


def _shown(cell: Cell) -> str:
    if isinstance(cell, float):
        return f"{cell:.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
    return str(cell)


def ratio(one: float, other: float) -> float:
    """`one / other`; infinite if `other` is 0."""
    return one / other if other else math.inf


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of `values` lie; they must not be empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(values: Sequence[float]) -> tuple[float, float, float, float]:
    """The quantiles 0.5, 0.9 and 0.99, and the maximum."""
    return quantile(values, 0.5), quantile(values, 0.9), quantile(values, 0.99), max(values)
