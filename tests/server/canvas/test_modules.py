"""The modules of the page that need no browser: their tests are `*.test.mjs` beside this file, run by node itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.canvas.node_tools import ROOT, run_node

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.test.mjs"))


@pytest.mark.parametrize("file", FILES, ids=[path.relative_to(HERE).as_posix() for path in FILES])
def test_its_tests_pass(file: Path) -> None:
    run_node("--test", file.relative_to(ROOT), installed="jsdom")
