"""The table of settings in docs/settings.md, generated from `Settings`: `python -m tests.docs.settings_table`."""

from __future__ import annotations

import re

from a2a_canvas.server.settings.settings import PREFIX, Settings, bounds_of, option_name
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/settings.md"
UNLIMITED = "; unlimited by default"
LEAST = "at least 1"
"""The bound of a number unless another one is named."""
_GENERATED = re.compile(r"(?<=by `make docs`\. -->\n).*(?=<!-- End of what)", re.DOTALL)


def table() -> str:
    """All settings, one line each: option, default, and what it means."""
    lines = ["| option | default | what |", "|---|---|---|"]
    for field, info in Settings.model_fields.items():
        option, default = option_name(field), "–" if info.default is None else _shown(info.default)
        names = [option]
        if info.annotation is bool:
            names, default = [option, f"--no-{option[2:]}"], "on" if info.default else "off"
        if variable_of(option) != PREFIX + field.upper():
            names.append(PREFIX + field.upper())
        # Quotation marks around a value, not the apostrophe of a word.
        what = re.sub(r"(?<!\w)'([^']+)'", r"`\1`", info.description or "")
        if what.endswith(UNLIMITED):
            what, default = what.removesuffix(UNLIMITED), "unlimited"
        bounds = bounds_of(field)
        told = "; ".join(filter(None, (what, "" if bounds == LEAST else bounds)))
        lines.append(f"| {', '.join(f'`{name}`' for name in names)} | {default} | {told} |")
    return "\n".join(lines) + "\n"


def variable_of(option: str) -> str:
    """The environment variable of an option, as the page has the rule."""
    return PREFIX + re.sub(r"\W", "_", option.removeprefix("--")).upper()


def _shown(default: object) -> str:
    return "none" if default in ((), {}) else f"`{default}`"


def generated(page: str) -> str:
    """The page with the table of the current settings."""
    # Blank lines around it: next to a comment, a table is not one.
    return _GENERATED.sub(lambda _: f"\n{table()}\n", page)


if __name__ == "__main__":
    PAGE.write_text(generated(PAGE.read_text()))
