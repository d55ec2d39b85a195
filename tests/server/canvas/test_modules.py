"""The modules of the page that need no browser: their tests are `*.test.mjs` beside this file, run by node itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.node_tools import ROOT, run_node

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.test.mjs"))
SLOW = ("selection", "markdown", "blocks", "unsaved", "undo_line")
"""Those that go through many documents."""


def _parameter(path: Path) -> ParameterSet:
    marks = [pytest.mark.slow] if path.name.removesuffix(".test.mjs") in SLOW else []
    return pytest.param(path, id=path.relative_to(HERE).as_posix(), marks=marks)


@pytest.mark.parametrize("file", [*map(_parameter, FILES)])
def test_its_tests_pass(file: Path) -> None:
    run_node("--test", file.relative_to(ROOT), installed="jsdom")
