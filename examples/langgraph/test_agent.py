"""The agent, without a port and a provider: `python -m pytest examples/langgraph`."""

from pathlib import Path

import pytest

from a2a_canvas.testing import agent

FOLDER = Path(__file__).parent


def test_it_writes_a_note_whose_passages_can_be_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)  # without a provider
    with agent(FOLDER) as it:
        answer = it.send("Write about tides.")
        assert answer.text == "The note is ready."
        assert "High water in Brest: 5.9 m." in answer.artifacts["tides"]
        assert "LOW WATER" in it.edit("tides", "upper case", "Low water").artifacts["tides"]
        assert "Low water" in it.undo("tides").artifacts["tides"]
