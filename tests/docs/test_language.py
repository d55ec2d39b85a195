"""The pages read as native technical English: subject first, active, with the standard term.

The phrases below mark prose that sounds translated.
"""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import PAGES, prose

REFUSED = (
    r"(?:go|goes|going|went) on",
    r"stands?",
    r"anew",
    r"of before",
    r"any more",
    r"as (?:many|much|long) as may be",
    r"who(?:m|so)?ever",
    r"belongs? into",
    r"in place of",
    r"(?:is|are) left out",
    r"at the latest",
    r"(?:there )?that there (?:is|are)",
    r"told",
    r"mended",
    r"nobody's business",
    r"knows? no(?! more)",
    r"signs? of life",
    r"what becomes of",
    r"others than",
    r"br(?:eak|eaks|oke) off",
    r"then comes?",
    r"learns? of",
    r"nothing of (?:it|a|the)",
    r"somebody",
)
"""Phrases, each with a plainer equivalent: continues, is, again, earlier, no longer, anyone, instead of, reports,
has no access to, progress, how it is handled, users other than, is interrupted, follows, is notified, none of it."""

WHO = r"(?:^|(?<=[.:;] )|(?<=\| ))Who\b[^?]*?(?:[.|]|$)"
"""A relative clause as the subject of a sentence, as in “Who has a link cannot revoke it”."""


def sentences(page: str) -> str:
    """The page's prose in one line per paragraph, without code, headings and link targets."""
    text = re.sub(r"^#.*$|^    .*$|`[^`\n]*`|\]\([^)]*\)", "", prose(PAGES[page]), flags=re.MULTILINE)
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in re.split(r"\n{2,}|\n(?=[-|*\d])", text))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_phrase_that_sounds_translated(page: str) -> None:
    shape = rf"(?i:\b(?:{'|'.join(REFUSED)})\b)|{WHO}"
    assert [found[0] for found in re.finditer(shape, sentences(page), re.MULTILINE)] == []


def test_a_question_may_begin_with_who_and_a_statement_may_not() -> None:
    assert not re.search(WHO, "Keys are safe. Who may read them? Only their owner.")
    assert re.search(WHO, "Keys are safe. Who has a link cannot revoke it.")
