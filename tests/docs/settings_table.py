"""The table of settings in docs/settings.md, generated from `Settings`: `python -m tests.docs.settings_table`."""

from __future__ import annotations

import re

from a2a_canvas.server.settings.settings import PREFIX, Settings, bounds_of, option_name
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/settings.md"
_GENERATED = re.compile(r"(?<=by `make docs`\. -->\n).*(?=<!-- End of what)", re.DOTALL)


def table() -> str:
    """All settings, one line each: option, environment variable, default, and what it means."""
    lines = ["| option | environment variable | default | what |", "|---|---|---|---|"]
    for field, info in Settings.model_fields.items():
        options, default = f"`{option_name(field)}`", "–" if info.default is None else _shown(info.default)
        if info.annotation is bool:
            options, default = f"{options}, `--no-{option_name(field)[2:]}`", "on" if info.default else "off"
        # Quotation marks around a value, not the apostrophe of a word.
        what = re.sub(r"(?<!\w)'([^']+)'", r"`\1`", info.description or "")
        told = "; ".join(filter(None, (what, bounds_of(field))))
        lines.append(f"| {options} | `{PREFIX}{field.upper()}` | {default} | {told} |")
    return "\n".join(lines) + "\n"


def _shown(default: object) -> str:
    return "none" if default == () else f"`{default}`"


def generated(page: str) -> str:
    """The page with the table of the current settings."""
    # Blank lines around it: next to a comment, a table is not one.
    return _GENERATED.sub(lambda _: f"\n{table()}\n", page)


if __name__ == "__main__":
    PAGE.write_text(generated(PAGE.read_text()))
