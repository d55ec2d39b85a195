"""Every picture of the page is there, shown, and small enough."""

from __future__ import annotations

import re

import pytest
from PIL import Image

from tests.docs.pages import README, page
from tests.docs.screenshots import DESKTOP, FOLDER, MOVING, PHONE, STATES

NAMES = [draw.__name__ for draw in STATES]
KB = 1024


def test_there_are_eleven_states_and_one_moving_picture_and_nothing_else() -> None:
    assert len(NAMES) == 11
    assert {path.name for path in FOLDER.iterdir()} == {*(f"{name}.png" for name in NAMES), MOVING}


def test_each_state_is_shown_and_says_what_it_shows() -> None:
    shown = re.findall(r"^!\[(.+)\]\(screenshots/(\w+)\.png\)$", page("page"), re.MULTILINE)
    assert [name for _, name in shown] == NAMES
    assert len({text for text, _ in shown}) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_small_and_has_the_size_of_its_window(name: str) -> None:
    path = FOLDER / f"{name}.png"
    with Image.open(path) as image:
        window = PHONE if name == "phone" else DESKTOP
        assert image.size == (window["width"], window["height"])
    assert path.stat().st_size <= 120 * KB


def test_the_readme_opens_with_the_moving_picture() -> None:
    assert f"docs/screenshots/{MOVING}" in README.splitlines()[2]


def test_the_moving_picture_is_short_and_small() -> None:
    path, milliseconds = FOLDER / MOVING, 0
    with Image.open(path) as image:
        for frame in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(frame)
            image.load()
            milliseconds += image.info["duration"]
    assert 4_000 <= milliseconds <= 12_000
    assert path.stat().st_size <= 2 * KB * KB
