"""Finished pages read as native technical English: subject first, active, with the standard term.

A page joins FINISHED once somebody has rewritten it; the phrases below mark prose that sounds translated.
"""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import PAGES, prose

FINISHED = (
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs/first-five-minutes.md",
    "docs/clients.md",
    "docs/agents.md",
    "docs/editing.md",
    "docs/artifacts.md",
    "docs/deploy.md",
    "docs/identity.md",
    "docs/quotas.md",
    "docs/durability.md",
    "docs/observability.md",
    "docs/errors.md",
    "docs/limits.md",
    "docs/scaling.md",
    "docs/architecture.md",
    "CONTRIBUTING.md",
    "docs/extensions.md",
    "docs/turn.md",
    "docs/canvas.md",
    "docs/push.md",
    "docs/mcp.md",
    "docs/models.md",
    "docs/page.md",
    "docs/scripts.md",
    "docs/settings.md",
    "docs/performance.md",
    "docs/a2a.md",
    "docs/ag-ui.md",
)

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
)
"""Phrases, each with a plainer equivalent: continues, is, again, earlier, no longer, anyone, instead of, reports."""

WHO = r"(?:^|(?<=[.:;] )|(?<=\| ))Who\b[^?]*?(?:[.|]|$)"
"""A relative clause as the subject of a sentence, as in “Who has a link cannot revoke it”."""


def sentences(page: str) -> str:
    """The page's prose in one line per paragraph, without code, headings and link targets."""
    text = re.sub(r"^#.*$|^    .*$|`[^`\n]*`|\]\([^)]*\)", "", prose(PAGES[page]), flags=re.MULTILINE)
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in re.split(r"\n{2,}|\n(?=[-|*\d])", text))


@pytest.mark.parametrize("page", FINISHED)
def test_a_finished_page_has_no_phrase_that_sounds_translated(page: str) -> None:
    shape = rf"(?i:\b(?:{'|'.join(REFUSED)})\b)|{WHO}"
    assert [found[0] for found in re.finditer(shape, sentences(page), re.MULTILINE)] == []


def test_a_question_may_begin_with_who_and_a_statement_may_not() -> None:
    assert not re.search(WHO, "Keys are safe. Who may read them? Only their owner.")
    assert re.search(WHO, "Keys are safe. Who has a link cannot revoke it.")
