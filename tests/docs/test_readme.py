"""The README's sessions and its program run, and it stays short."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.examples import assert_goes_as_shown, printed
from tests.docs.pages import README, blocks, rows


def test_the_sessions_go_as_they_are_shown_one_after_the_other(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    sessions = blocks(README, "console")
    assert len(sessions) == 2
    for session in sessions:
        assert_goes_as_shown(session, address, capsys)


@pytest.mark.process
def test_the_program_prints_the_artifact_as_it_grows(address: str, tmp_path: Path) -> None:
    [code] = blocks(README, "python")
    said = printed(code, address, tmp_path)
    assert said.startswith("# Tide pools\n\n")
    assert said.count("## ") == 4


def test_the_comparison_has_eight_rows() -> None:
    assert len(rows(README, "Compared with")) == 8


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 180
