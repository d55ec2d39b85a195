"""The tables of docs/scaling.md that are made by the code: `python -m tests.docs.scaling_table`."""

from __future__ import annotations

import re

import a2a_canvas.server.backend.durable_backend  # noqa: F401  (it enters all tables)
from a2a_canvas.store.sql.tables import metadata
from bench import capacity
from tests.docs.pages import ROOT
from tests.table_files import defining

PAGE = ROOT / "docs/scaling.md"
_CAPACITY = re.compile(r"(?<=<!-- By `python -m bench.capacity`. -->\n).*(?=<!-- End of the capacity)", re.DOTALL)
_GENERATED = re.compile(r"(?<=by `make docs`\. -->\n).*(?=<!-- End of the tables)", re.DOTALL)


def table() -> str:
    """All tables, one line each: primary key, and the file that has everything about it."""
    lines = ["| table | primary key | file |", "|---|---|---|"]
    for file, name in sorted((file, name) for name, files in defining().items() for file in files):
        columns = ", ".join(f"`{column.name}`" for column in metadata.tables[name].primary_key)
        lines.append(f"| `{name}` | {columns} | `{file}` |")
    return "\n".join(lines) + "\n"


def generated(page: str) -> str:
    """The page with the tables of the code, and with those of the model."""
    on_paper = "\n".join(capacity.lines())
    return _CAPACITY.sub(lambda _: f"\n{on_paper}\n\n", _GENERATED.sub(lambda _: f"\n{table()}\n", page))


if __name__ == "__main__":
    PAGE.write_text(generated(PAGE.read_text()))
