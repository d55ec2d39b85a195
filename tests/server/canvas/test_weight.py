"""What the page loads before it paints: its style sheets and the modules that it imports at once, and no library."""

from __future__ import annotations

import posixpath
import re

from a2a_canvas.server.protocols.page.assets import Asset, Assets, read_assets
from a2a_canvas.server.protocols.page.routes import FOLDER

MOST = 100_000
"""Bytes, compressed with gzip, which every browser can read."""
HEADERS = 300
"""Bytes of the headers of an answer, with room."""


def imported(files: Assets, name: str, found: set[str]) -> set[str]:
    """The modules that a module needs before it runs, itself included."""
    if name not in found:
        found.add(name)
        for address in re.findall(
            r'^(?:import|export)\b[^;"(]*"(\.[^"]+)"', files.files[name].body.decode(), re.MULTILINE
        ):
            imported(files, posixpath.normpath(posixpath.join(posixpath.dirname(name), address)), found)
    return found


def weight(asset: Asset) -> int:
    return len(asset.encoded("gzip")) + HEADERS


def test_the_first_paint_takes_less_than_100_kilobytes() -> None:
    assets = read_assets(FOLDER)
    sheets = re.findall(r'rel="stylesheet" href="page/\w+/([^"]+)"', assets.index.body.decode())
    modules = imported(assets, "main.js", set())

    total = weight(assets.index) + sum(weight(assets.files[name]) for name in [*sheets, *modules])

    assert len(sheets) > 5
    assert "chat/thread.js" in modules
    assert total < MOST


def test_no_library_is_loaded_before_the_first_paint() -> None:
    assert not [name for name in imported(read_assets(FOLDER), "main.js", set()) if name.startswith("vendor/")]
