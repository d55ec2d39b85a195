"""The bundles of the page: what is committed is what `make page` makes of the sources."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.node_tools import ROOT, run_node
from tests.server.canvas.test_vendor import contents

CANVAS = ROOT / "server/canvas"
BUILT = CANVAS / "built"
KINDS = (".html", ".css", ".js", ".svg")


def digest() -> str:
    """Of the program that bundles, and of all sources, as `page.mjs` computes it."""
    hashed = hashlib.sha256((ROOT / "page.mjs").read_bytes())
    paths = {path.relative_to(CANVAS).as_posix(): path for path in CANVAS.rglob("*") if path.suffix in KINDS}
    for name in sorted(name for name in paths if not name.startswith(("built/", "vendor/"))):
        hashed.update(f"\n{name}\n".encode() + paths[name].read_bytes())
    return hashed.hexdigest()


def test_they_are_up_to_date() -> None:
    assert (BUILT / "SOURCES").read_text() == f"{digest()}\n", "The sources have changed: run `make page`."


def test_they_are_reproducible(tmp_path: Path) -> None:
    run_node("page.mjs", tmp_path / "built", installed="esbuild")
    made, committed = contents(tmp_path / "built"), contents(BUILT)
    assert made.keys() == committed.keys()
    assert [name for name in made if made[name] != committed[name]] == []


def test_nothing_of_them_evaluates_text() -> None:
    """The page's policy would refuse it."""
    modules = {name: body for name, body in contents(BUILT).items() if name.endswith(".js")}
    assert [name for name, body in modules.items() if b"new Function(" in body or b"eval(" in body] == []
