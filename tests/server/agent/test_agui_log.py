"""What an agent's function may send to AG-UI clients, and what clients that join late are sent of it."""

import ast
from pathlib import Path

import pytest
from ag_ui import core

from a2a_canvas.server.agent.agui_log import (
    MAX_EVENT_BYTES,
    MAX_KEPT,
    MAX_STATE,
    OWN_NAMES,
    AguiEventError,
    AguiView,
    checked_event,
)
from a2a_canvas.server.protocols.a2a_v1.projection import turn_ext
from a2a_canvas.server.protocols.agui import run_events

CUSTOM = {"type": "CUSTOM", "name": "n", "value": 1}
SNAPSHOT = {"type": "STATE_SNAPSHOT", "snapshot": {"a": []}}
ACTIVITY = {"messageId": "m", "activityType": "PLAN"}


def delta(**operation) -> dict:
    return {"type": "STATE_DELTA", "delta": [operation]}


def view_of(*events) -> AguiView:
    view = AguiView()
    for event in events:
        view = view.after(checked_event(event))
    return view


# ---------------------------------------------------------------------- one event


@pytest.mark.parametrize(
    ("model", "event"),
    [
        (core.CustomEvent(name="n", value={"a": None}), {"type": "CUSTOM", "name": "n", "value": {"a": None}}),
        (core.StateSnapshotEvent(snapshot=[1]), {"type": "STATE_SNAPSHOT", "snapshot": [1]}),
        (
            core.ActivitySnapshotEvent(message_id="m", activity_type="PLAN", content={}, replace=False),
            {"type": "ACTIVITY_SNAPSHOT", **ACTIVITY, "content": {}, "replace": False},
        ),
    ],
)
def test_an_event_is_a_dict_or_a_model_of_ag_ui(model, event) -> None:
    assert checked_event(model) == checked_event({**event, "timestamp": 1}) == event


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        ("TEXT_MESSAGE_CONTENT", r"turn\.stream"),
        ("TEXT_MESSAGE_START", r"turn\.say"),
        ("TOOL_CALL_START", r"turn\.tool"),
        ("REASONING_MESSAGE_CONTENT", r"turn\.think"),
        ("STEP_STARTED", r"turn\.progress"),
        ("RUN_STARTED", "the server sends them itself"),
        ("RUN_FINISHED", "return from the function"),
        ("RUN_ERROR", r"turn\.decline"),
        ("MESSAGES_SNAPSHOT", r"turn\.say"),
        ("RAW", "It takes CUSTOM, STATE_SNAPSHOT, STATE_DELTA, ACTIVITY_SNAPSHOT, ACTIVITY_DELTA"),
    ],
)
def test_the_servers_own_events_are_errors_that_name_the_method_to_use(kind, instead) -> None:
    with pytest.raises(AguiEventError, match=instead):
        checked_event({"type": kind})


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (7, "takes an AG-UI event, as a dict or a model, not int"),
        ({"type": "CUSTOM", "name": "n"}, "CUSTOM needs value"),
        ({"type": "CUSTOM", "name": 1, "value": 1}, "CUSTOM needs name, a string"),
        ({"type": "STATE_DELTA", "delta": {}}, "STATE_DELTA needs delta, a list"),
        ({"type": "ACTIVITY_SNAPSHOT", **ACTIVITY, "content": []}, "needs content, an object"),
        ({**CUSTOM, "value": float("nan")}, "CUSTOM is not JSON"),
        ({**CUSTOM, "value": object()}, "CUSTOM is not JSON"),
        ({**CUSTOM, "value": {1: 2}}, "CUSTOM is not JSON"),
        ({**CUSTOM, "name": "n" * 257}, "may have 256 characters"),
    ],
)
def test_a_malformed_event_is_an_error(event, reason) -> None:
    with pytest.raises(AguiEventError, match=reason):
        checked_event(event)


def test_an_event_has_64_kb_of_json_at_most() -> None:
    around = len('{"type": "CUSTOM", "name": "n", "value": ""}')
    checked_event({**CUSTOM, "value": "x" * (MAX_EVENT_BYTES - around)})
    with pytest.raises(AguiEventError, match="65,537 bytes of JSON; an event may have 65,536"):
        checked_event({**CUSTOM, "value": "x" * (MAX_EVENT_BYTES - around + 1)})


def test_no_custom_event_passes_for_one_of_the_server() -> None:
    with pytest.raises(AguiEventError, match="'completed' is the name of an event of the server"):
        checked_event({**CUSTOM, "name": "completed"})


def test_all_names_of_the_server_are_known() -> None:
    trees = [ast.parse(Path(module.__file__).read_text()) for module in (turn_ext, run_events)]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    turn = [call.args for call in calls if "turn_event" in ast.unparse(call.func)]
    named = {args[0].value for args in turn if args and isinstance(args[0], ast.Constant)}
    custom = [each.value for call in calls if ast.unparse(call.func) == "core.CustomEvent" for each in call.keywords]
    named |= {value.value for value in custom if isinstance(value, ast.Constant)}
    assert {"rejected", "annotations", "thinking"} <= named
    assert named <= OWN_NAMES


def test_the_function_cannot_change_an_event_that_it_has_sent() -> None:
    value = {"a": 1}
    event = checked_event({**CUSTOM, "value": value})
    value["a"] = 2
    assert event["value"] == {"a": 1}


# ---------------------------------------------------------------- what clients have


def test_a_delta_changes_the_state_of_the_snapshot() -> None:
    view = view_of(SNAPSHOT, delta(op="add", path="/a/-", value=1), delta(op="add", path="/b", value=2))
    assert view.state
    assert view.state.value == {"a": [1], "b": 2}


def test_a_delta_before_a_snapshot_is_an_error() -> None:
    with pytest.raises(AguiEventError, match="STATE_DELTA needs a STATE_SNAPSHOT before it"):
        view_of(delta(op="add", path="/a", value=1))
    with pytest.raises(AguiEventError, match=r"no activity 'm'\. Send its ACTIVITY_SNAPSHOT first"):
        view_of({"type": "ACTIVITY_DELTA", **ACTIVITY, "patch": []})


def test_a_delta_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(AguiEventError, match=r"does not fit: .* Send a snapshot"):
        view_of(SNAPSHOT, delta(op="remove", path="/b"))


def test_a_state_does_not_grow_without_bound() -> None:
    piece = delta(op="add", path="/a/-", value="x" * 50_000)
    with pytest.raises(AguiEventError, match="more than 262,144 characters"):
        view_of(SNAPSHOT, *[piece] * 6)
    with pytest.raises(AguiEventError, match="more than 262,144 characters"):
        view_of(SNAPSHOT, piece, *[delta(op="copy", **{"from": "/a", "path": "/a/-"})] * 4)
    replaced = delta(op="replace", path="/a", value="x" * 50_000)
    assert view_of(SNAPSHOT, *[replaced] * 20).state.size < MAX_STATE  # what was replaced does not count


def test_an_activity_is_an_object_that_deltas_change() -> None:
    begun = {"type": "ACTIVITY_SNAPSHOT", **ACTIVITY, "content": {"steps": []}}
    adds = {"type": "ACTIVITY_DELTA", **ACTIVITY, "patch": [{"op": "add", "path": "/steps/-", "value": 1}]}
    kept = {**begun, "replace": False}
    [event] = view_of(begun, adds, kept).late_events()
    assert event == {**begun, "content": {"steps": [1]}}
    with pytest.raises(AguiEventError, match="is an object"):
        view_of(begun, {**adds, "patch": [{"op": "replace", "path": "", "value": 1}]})


def test_late_clients_get_the_newest_events() -> None:
    numbered = [{**CUSTOM, "value": number} for number in range(MAX_KEPT + 1)]
    assert view_of(*numbered).late_events() == numbered[1:]
    large = [{**CUSTOM, "value": str(number) + "x" * 60_000} for number in range(9)]
    assert view_of(*large).late_events() == large[5:]
