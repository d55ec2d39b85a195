"""Commands of the client leave nothing behind outside of their test."""

import tempfile
from pathlib import Path

import pytest

from a2a_canvas.server.wire import URL_VARIABLE


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv(URL_VARIABLE, raising=False)
