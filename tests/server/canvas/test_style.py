"""The contrast of the page's colours (WCAG 2.2, AA): 4.5 for what is read, 3 for what is only recognised."""

import re
from pathlib import Path

import pytest

STYLE = Path(__file__).parents[3] / "server" / "canvas" / "style"
LIGHT, DARK = re.search(
    r":root \{(.*?)\n\}.*?@media \(prefers-color-scheme: dark\) \{\n  :root \{(.*?)\n  \}",
    (STYLE / "tokens.css").read_text(),
    re.DOTALL,
).groups()  # type: ignore[union-attr]

GROUNDS = ("page", "sunken", "surface", "hover", "active")
PEOPLE = tuple(f"person-{number}" for number in range(12))
CODE = ("comment", "keyword", "string", "number", "name", "type")
READ = [
    *(("text", ground) for ground in (*GROUNDS, "accent-soft", "danger-soft", "warning-soft")),
    *(
        ("text", ground)
        for ground in ("selection", "writing", "added", "added-strong", "removed", "removed-strong", "code")
    ),
    *(("muted", ground) for ground in (*GROUNDS, "accent-soft", "code", "writing")),
    *(("accent", ground) for ground in ("page", "sunken", "surface", "hover", "accent-soft")),
    ("on-accent", "accent"),
    ("on-accent", "accent-hover"),
    ("on-danger", "danger"),
    ("on-danger", "danger-hover"),
    *((kind, ground) for kind in ("danger", "warning", "success") for ground in ("page", "surface")),
    *((kind, f"{kind}-soft") for kind in ("danger", "warning")),
    *(("on-person", person) for person in PEOPLE),
    *((f"code-{kind}", ground) for kind in CODE for ground in ("page", "code")),
]
RECOGNISED = [
    *(
        (line, ground)
        for line in ("line-strong", "focus", "writing-line", *PEOPLE)
        for ground in ("page", "sunken", "surface")
    ),
]


def palette(block: str) -> dict[str, str]:
    return dict(re.findall(r"--color-([\w-]+): (#[0-9a-f]{6});", block))


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("block", [pytest.param(LIGHT, id="light"), pytest.param(DARK, id="dark")])
@pytest.mark.parametrize(("pairs", "least"), [(READ, 4.5), (RECOGNISED, 3.0)], ids=["read", "recognised"])
def test_a_colour_stands_out_from_its_ground(block: str, pairs: list[tuple[str, str]], least: float) -> None:
    colours = palette(block)

    weak = {pair: round(contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs}

    assert not {pair: found for pair, found in weak.items() if found < least}


def test_every_colour_has_a_dark_value() -> None:
    assert palette(LIGHT).keys() == palette(DARK).keys()


@pytest.mark.parametrize("sheet", sorted(STYLE.glob("*.css")), ids=lambda sheet: sheet.name)
def test_colours_are_written_in_one_place(sheet: Path) -> None:
    rules = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)
    if sheet.name != "tokens.css":
        assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?!\w|-)|\b(?:rgb|hsl|oklch)a?\(", rules)


def test_every_property_that_is_used_is_defined() -> None:
    sheets = [sheet.read_text() for sheet in STYLE.glob("*.css")]
    defined = {name for text in sheets for name in re.findall(r"(--[\w-]+):", text)}

    assert {name for text in sheets for name in re.findall(r"var\((--[\w-]+)\)", text)} <= defined
