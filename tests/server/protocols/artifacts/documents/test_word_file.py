"""The Word file of a text with suggestions and comments: what is in it, and what LibreOffice makes of it.

`make office` runs the tests with LibreOffice, which takes too long for others: without the variable `TESTS_NEED_OFFICE`
they are skipped.
"""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from a2a_canvas.server.protocols.artifacts.documents.document_formats import DOCUMENT_FORMATS
from a2a_canvas.server.protocols.artifacts.documents.pandoc import Pandoc
from a2a_canvas.server.protocols.artifacts.documents.paragraph_ends import end_marker, write_paragraph_ends
from a2a_canvas.server.protocols.artifacts.documents.word_review import ReviewMark
from a2a_canvas.server.protocols.artifacts.documents.word_tree import Signature, WordComment
from a2a_canvas.store.text.spans import Span
from tests.pandoc_program import need_pandoc

NEEDS_OFFICE = "TESTS_NEED_OFFICE"
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
ANN, BOB = Signature("ann", "2026-01-02T03:04:05.000Z"), Signature("bob <b>", "2026-02-03T04:05:06.000Z")
TEXT = """\
# Tide pools

They are small. They are deep.

A paragraph that goes.

- one
- two

```py
old = 1
```
"""


def on(number: int, old: str, new: str | None, by: Signature, *comments: WordComment) -> ReviewMark:
    start = TEXT.index(old)
    return ReviewMark(number, Span(start, start + len(old)), by, new, False, comments)


MARKS = (
    on(1, "small", "**tiny**", ANN, WordComment(ANN, "shorter")),
    on(2, "are deep", None, BOB, WordComment(BOB, "Sure?\nWho says so?"), WordComment(ANN, "I do.")),
    on(3, "A paragraph that goes.\n\n", "", BOB),
    on(4, "- two\n", "- two\n- three\n", ANN),
    on(5, "old = 1", "new = 1", BOB),
)


@pytest.fixture
async def file() -> bytes:
    need_pandoc()
    pandoc = Pandoc()
    return await pandoc.convert(await pandoc.find(), TEXT, DOCUMENT_FORMATS["docx"], "Title", MARKS)


def part(file: bytes, name: str) -> ElementTree.Element:
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        return ElementTree.fromstring(archive.read(f"word/{name}.xml"))


def texts(element: ElementTree.Element) -> str:
    return "".join(each.text or "" for each in element.iter() if each.tag in (f"{W}t", f"{W}delText"))


def tracked(file: bytes, tag: str) -> list[tuple[str | None, str | None, str]]:
    """(author, time, text) of the changes of text."""
    found = [each for each in part(file, "document").iter(f"{W}{tag}") if len(each)]
    return [(each.get(f"{W}author"), each.get(f"{W}date"), texts(each)) for each in found]


async def test_suggestions_are_tracked_changes_with_author_and_time(file: bytes) -> None:
    deleted = [("ann", "small"), ("bob <b>", "A paragraph that goes."), ("bob <b>", "old = 1")]
    assert [(by, text) for by, _, text in tracked(file, "del")] == deleted
    inserted = [("ann", ANN.at, "tiny"), ("ann", ANN.at, "three"), ("bob <b>", BOB.at, "new = 1")]
    assert tracked(file, "ins") == inserted


async def test_no_deleted_text_would_stay(file: bytes) -> None:
    assert not [each for gone in part(file, "document").iter(f"{W}del") for each in gone.iter(f"{W}t")]


async def test_the_ends_of_deleted_and_inserted_paragraphs_are_changes(file: bytes) -> None:
    ends = {}
    for paragraph in part(file, "document").iter(f"{W}p"):
        if (marks := paragraph.find(f"{W}pPr/{W}rPr")) is not None:
            ends[texts(paragraph)] = marks[0].tag.removeprefix(W), marks[0].get(f"{W}author")
    assert ends == {
        "A paragraph that goes.": ("del", "bob <b>"),
        "three": ("ins", "ann"),
        "old = 1": ("del", "bob <b>"),
        "new = 1": ("ins", "bob <b>"),
    }


async def test_remarks_are_comments_on_their_passages(file: bytes) -> None:
    comments = [
        (each.get(f"{W}author"), each.get(f"{W}date"), texts(each))
        for each in part(file, "comments").iter(f"{W}comment")
    ]
    assert comments == [
        ("ann", ANN.at, "shorter"),
        ("bob <b>", BOB.at, "Sure?Who says so?"),
        ("ann", ANN.at, "I do."),
    ]
    passages: dict[str | None, str] = {}
    open_now: set[str | None] = set()
    for each in part(file, "document").iter():
        if each.tag == f"{W}commentRangeStart":
            open_now.add(each.get(f"{W}id"))
        elif each.tag == f"{W}commentRangeEnd":
            open_now.remove(each.get(f"{W}id"))
        for number in open_now if each.tag in (f"{W}t", f"{W}delText") else ():
            passages[number] = passages.get(number, "") + (each.text or "")
    assert passages == {"0": "smalltiny", "1": "are deep", "2": "are deep"}


def test_an_author_cannot_write_xml() -> None:
    marker = end_marker("deletion", 'a"?><w:x/>\x01', "now")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("word/document.xml", f'<w:d xmlns:w="{W[1:-1]}"><w:p><w:r/>{marker}</w:p><w:p/></w:d>')
    (change,) = part(write_paragraph_ends(made.getvalue()), "document").iter(f"{W}del")
    assert change.get(f"{W}author") == 'a"?><w:x/>'


# ------------------------------------------------------------------------------- LibreOffice


@pytest.fixture
def opened(file: bytes, tmp_path: Path) -> str:
    """The file as LibreOffice reads it: flat ODF."""
    if not os.environ.get(NEEDS_OFFICE):
        pytest.skip("make office runs it")
    office = shutil.which("soffice")
    assert office, "LibreOffice is not installed (Debian: apt-get install libreoffice-writer)"
    (tmp_path / "file.docx").write_bytes(file)
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    convert = [office, profile, "--headless", "--convert-to", "fodt", "--outdir", str(tmp_path), "file.docx"]
    subprocess.run(convert, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    return (tmp_path / "file.fodt").read_text()


def plain(xml: str) -> str:
    return re.sub(r"<[^>]*>", "", xml)


async def test_libreoffice_has_the_changes_with_the_ends_of_their_paragraphs(opened: str) -> None:
    found = []
    for region in re.findall(r"<text:changed-region.*?</text:changed-region>", opened, re.DOTALL):
        (number,), (kind,) = re.findall(r' text:id="(\w+)"', region), re.findall(r"<text:(insertion|deletion)>", region)
        (by,), (at,) = re.findall(r"<dc:creator>(.*?)<", region), re.findall(r"<dc:date>(.*?)<", region)
        within = f'<text:change-start text:change-id="{number}"/>(.*?)<text:change-end text:change-id="{number}"/>'
        (content,) = re.findall(within, opened, re.DOTALL)
        shown = re.sub(r"<office:annotation .*?</office:annotation>", "", content, flags=re.DOTALL)
        found.append((kind, html.unescape(by), at, plain(shown).strip(), "</text:p>" in shown))
    ann, bob = (ANN.by, ANN.at[:19]), (BOB.by, BOB.at[:19])
    assert found == [
        ("deletion", *ann, "small", False),
        ("insertion", *ann, "tiny", False),
        ("deletion", *bob, "A paragraph that goes.", True),
        ("insertion", *ann, "three", True),
        ("deletion", *bob, "old = 1", True),
        ("insertion", *bob, "new = 1", False),  # the end of the file
    ]


async def test_libreoffice_has_the_comments(opened: str) -> None:
    notes = re.findall(r"<office:annotation .*?</office:annotation>", opened, re.DOTALL)
    assert len(notes) == 3
    assert all(any(text in plain(each) for each in notes) for text in ("shorter", "Who says so?", "I do."))
    assert opened.count("<office:annotation-end") == 3
