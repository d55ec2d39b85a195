"""The checker of AG-UI sequences finds what an AG-UI client would stumble over."""

import shutil
from typing import Any

import pytest

from tests.node_tools import NEEDS_NODE, need_node
from tests.server.protocols.agui.agui_verifier import verify

Json = dict[str, Any]

STARTED: Json = {"type": "RUN_STARTED", "threadId": "c", "runId": "r", "protocolVersion": "1.0"}
FINISHED: Json = {"type": "RUN_FINISHED", "threadId": "c", "runId": "r", "outcome": {"type": "success"}}
STATE: Json = {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}


def delta(op: str, path: str) -> Json:
    return {"type": "STATE_DELTA", "delta": [{"op": op, "path": path, "value": 2}]}


def test_a_good_run_passes() -> None:
    verify([STARTED, STATE, delta("replace", "/a"), FINISHED], [STARTED, FINISHED])


@pytest.mark.parametrize(
    ("middle", "reason"),
    [
        ([{**STATE, "snapshots": 1}], "'/snapshots'"),
        ([{"type": "CUSTOM", "name": "x"}], "value"),
        ([{"type": "CUSTOMS", "name": "x", "value": 1}], "CUSTOMS"),
        ([{"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}], "No active text message"),
        ([{"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}], "text messages are still active"),
        ([delta("replace", "/a")], "no STATE_SNAPSHOT"),
        ([STATE, delta("replace", "/b")], "path"),
        ([FINISHED], "already finished"),
    ],
)
def test_what_is_wrong_in_a_run_is_named(middle: list[Json], reason: str) -> None:
    with pytest.raises(AssertionError, match="Sequence 1, event") as raised:
        verify([STARTED, FINISHED], [STARTED, *middle, FINISHED])
    assert reason in str(raised.value)


def test_a_run_must_end() -> None:
    with pytest.raises(AssertionError, match="Sequence 0 ends with STATE_SNAPSHOT"):
        verify([STARTED, STATE])


@pytest.mark.parametrize("needed", [True, False])
def test_without_node_it_is_skipped_unless_it_is_needed(needed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv(NEEDS_NODE, "1" if needed else "")
    outcome = pytest.fail.Exception if needed else pytest.skip.Exception
    with pytest.raises(outcome, match="node is not installed"):
        verify()


def test_without_its_packages_it_says_how_to_get_them(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setenv(NEEDS_NODE, "1")
    with pytest.raises(pytest.fail.Exception, match="make setup-node"):
        need_node("@ag-ui/client", within=tmp_path)
