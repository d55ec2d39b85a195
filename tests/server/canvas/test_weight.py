"""What the page loads, and when: its start is one module without libraries, and each view is one module more."""

from __future__ import annotations

import posixpath
import re

import pytest

from a2a_canvas.server.protocols.page.assets import Asset, read_assets
from a2a_canvas.server.protocols.page.routes import FOLDERS

MOST = 60_000
"""Bytes, compressed with gzip, which every browser can read."""
MOST_FRAMED = 40_000
"""The same for the documents in a frame of another page, where they are not what the reader came for."""
STARTS = ("main.js", "embed/embed.js")
HEADERS = 300
"""Bytes of the headers of an answer, with room."""

_IMPORT = re.compile(r'(?:^|[;}])(?:import|export)\b[^;"()]*"(\.[^"]+)"')

assets = read_assets(FOLDERS)


def imported(name: str, found: set[str]) -> set[str]:
    """The modules that a module needs before it runs, itself included."""
    if name not in found:
        found.add(name)
        for address in _IMPORT.findall(assets.files[name].body.decode()):
            imported(posixpath.normpath(posixpath.join(posixpath.dirname(name), address)), found)
    return found


def weight(asset: Asset) -> int:
    return len(asset.encode("gzip")) + HEADERS


@pytest.mark.parametrize("start", STARTS)
def test_a_start_is_one_module(start: str) -> None:
    assert imported(start, set()) == {start}


def test_the_start_takes_less_than_60_kilobytes() -> None:
    assert weight(assets.index) + weight(assets.files["main.js"]) < MOST


def test_the_start_in_a_frame_takes_less_than_40_kilobytes() -> None:
    assert weight(assets.embed) + weight(assets.files["embed/embed.js"]) < MOST_FRAMED


def test_the_documents_in_a_frame_load_nothing_of_the_page_but_libraries() -> None:
    framed = [name for name in assets.files if name.startswith("embed/") and name.endswith(".js")]
    needed = {each for name in framed for each in imported(name, set())}
    assert len(framed) > 3
    assert [name for name in needed if not name.startswith(("embed/", "vendor/"))] == []


def test_a_view_needs_the_start_its_libraries_and_at_most_one_module_more() -> None:
    others = ("vendor/", "chunks/", "embed/chunks/")
    views = [name for name in assets.files if name.endswith(".js") and not name.startswith(others)]
    own = {
        name: [each for each in imported(name, set()) - {name, *STARTS} if not each.startswith("vendor/")]
        for name in views
    }
    assert len(views) > 5
    assert {name: more for name, more in own.items() if len(more) > 1} == {}
