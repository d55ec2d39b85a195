"""docs/architecture.md: every station of a walk is in the file that the page names."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docs.pages import ROOT, page, rows, section

PAGE = page("architecture")
WALKS = re.findall(r"^## (Walk .*)$", PAGE, re.MULTILINE)
STATIONS = [(walk, *row[:2]) for walk in WALKS for row in rows(PAGE, walk)]


def test_there_are_eight_walks() -> None:
    assert len(WALKS) == 8


@pytest.mark.parametrize(("walk", "station", "file"), STATIONS, ids=[f"{walk[5]}-{name}" for walk, name, _ in STATIONS])
def test_every_station_is_in_the_file_that_is_named(walk: str, station: str, file: str) -> None:
    code = [(ROOT / path).read_text() for path in re.findall("`([^`]+)`", file)]
    names = re.findall("`([^`]+)`", station)
    assert names
    assert len(code) in (1, len(names))
    for number, name in enumerate(names):
        if name.endswith(".py"):
            assert file.split(", ")[number].strip("`").endswith(f"/{name}")
            continue
        for part in name.split("."):
            assert re.search(rf"^ *(?:class|(?:async )?def) {part}\b", code[min(number, len(code) - 1)], re.MULTILINE)


@pytest.mark.parametrize(("station", "file"), [row[:2] for row in rows(page("page"), "How it is built")])
def test_every_station_of_the_page_is_in_the_file_that_is_named(station: str, file: str) -> None:
    code = [(ROOT / "server/canvas" / path).read_text() for path in re.findall("`([^`]+)`", file)]
    names = re.findall("`([^`]+)`", station)
    assert len(code) in (1, len(names)) or len(names) == 1
    for number, name in enumerate(names):
        assert re.search(rf"\bfunction {name}\(|^ *{name}\(.*\{{$", code[min(number, len(code) - 1)], re.MULTILINE)


def test_the_folders_are_all_that_there_are() -> None:
    named = {row[0].strip("`") for row in rows(PAGE, "Folders")}
    top = {"store/", "tools/"} | {
        f"{path.parent.relative_to(ROOT)}/" for path in (ROOT / "server").glob("*/__init__.py")
    }
    rooms = {f"{path.parent.relative_to(ROOT)}/" for parent in top for path in (ROOT / parent).rglob("__init__.py")}
    assert all(any(room.startswith(name) for name in named) for room in rooms)
    assert top <= named


def test_the_glossary_is_short_and_says_each_term_once() -> None:
    terms = [row[0] for row in rows(PAGE, "Glossary")]
    assert len(terms) <= 28
    assert len(set(terms)) == len(terms)


def test_the_layers_are_those_of_the_linter() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [contract] = [contract for contract in contracts if contract["name"] == "Rooms import one way"]
    layers = [name.strip().rpartition(".")[2] for layer in contract["layers"] for name in layer.split("|")]
    drawn = section(PAGE, "The drawing").split("\n`commands -> ")[1].split("`")[0]
    assert [layer for layer in layers if layer in drawn] == re.findall(r"\w+", drawn)
