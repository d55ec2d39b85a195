"""The names and colours of people."""

from __future__ import annotations

from a2a_canvas.server.tasks.presence.roster import COLOURS, PresentPerson, colour_of


def luminance(colour: str) -> float:
    """WCAG 2's relative luminance."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_name_always_has_the_same_colour_and_names_have_different_ones() -> None:
    assert colour_of("ada") == colour_of("ada")
    assert {colour_of(f"user {number}") for number in range(200)} == {*COLOURS}


def test_white_text_can_be_read_on_every_colour() -> None:
    assert all(1.05 / (luminance(colour) + 0.05) >= 4.5 for colour in COLOURS)


def test_a_user_has_a_name_and_a_caller_with_a_link_is_a_guest() -> None:
    assert (PresentPerson("ada").name, PresentPerson("ada").guest) == ("ada", False)
    assert (PresentPerson("link abc").name, PresentPerson("link abc").guest) == ("guest", True)
