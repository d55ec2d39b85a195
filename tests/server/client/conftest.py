"""Commands of the client remember nothing outside of their test."""

from pathlib import Path

import pytest

from a2a_canvas.server.wire import URL_VARIABLE


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv(URL_VARIABLE, raising=False)
