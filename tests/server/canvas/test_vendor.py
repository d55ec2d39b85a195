"""The bundled libraries: what is committed is what `make vendor` makes of the pinned packages."""

from __future__ import annotations

import json
from pathlib import Path

from tests.node_tools import ROOT, run_node

VENDOR = ROOT / "server/canvas/vendor"
PINNED = json.loads((ROOT / "package.json").read_text())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_is_reproducible(tmp_path: Path) -> None:
    run_node("vendor.mjs", tmp_path / "vendor", installed="esbuild")
    made, committed = contents(tmp_path / "vendor"), contents(VENDOR)
    assert made.keys() == committed.keys()
    assert [name for name in made if made[name] != committed[name]] == []


def test_every_bundled_package_is_pinned_and_has_its_licence() -> None:
    licences = (VENDOR / "LICENSES.txt").read_text()
    for name, version in PINNED["dependencies"].items():
        assert version[0].isdigit()
        assert f"{name} {version} (" in licences


def test_the_lock_file_names_no_registry() -> None:
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert [name for name, package in packages.items() if "resolved" in package] == []
    assert [name for name, package in packages.items() if name and "integrity" not in package] == []


def test_nothing_of_it_evaluates_text() -> None:
    """The page's policy would refuse it."""
    modules = {name: body for name, body in contents(VENDOR).items() if name.endswith(".js")}
    assert [name for name, body in modules.items() if b"new Function(" in body or b"eval(" in body] == []
