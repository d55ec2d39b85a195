"""docs/first-five-minutes.md: its sessions."""

from __future__ import annotations

import pytest

from tests.docs.examples import assert_goes_as_shown
from tests.docs.pages import blocks, page


def test_the_sessions_go_as_they_are_shown(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    sessions = blocks(page("first-five-minutes"), "console")
    assert len(sessions) == 2
    for session in sessions:
        assert_goes_as_shown(session, address, capsys)
