"""The table of metrics in docs/observability.md, generated from `Metrics`: `python -m tests.docs.metrics_table`."""

from __future__ import annotations

import re

from a2a_canvas.server.metrics import Metrics
from tests.docs.pages import ROOT
from tests.metric_values import all_series

PAGE = ROOT / "docs/observability.md"
_GENERATED = re.compile(r"(?<=from `Metrics` by `make docs`\. -->\n).*(?=<!-- End of the metrics)", re.DOTALL)


def table() -> str:
    """All metrics, one line each: name, kind, labels, and what it counts."""
    lines = ["| metric | kind | labels | what |", "|---|---|---|---|"]
    for series in all_series(Metrics()):
        labels = ", ".join(f"`{label}`" for label in series.labels) or "–"
        lines.append(f"| `{series.name}` | {series.kind} | {labels} | {series.about} |")
    return "\n".join(lines) + "\n"


def generated(page: str) -> str:
    """The page with the table of the current metrics."""
    return _GENERATED.sub(lambda _: f"\n{table()}\n", page)


if __name__ == "__main__":
    PAGE.write_text(generated(PAGE.read_text()))
