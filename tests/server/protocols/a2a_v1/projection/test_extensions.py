"""Which extensions a request activates. Their echo, over every binding, is in tests/server/test_app.py."""

from a2a_canvas.server.protocols.a2a_v1.projection.extensions import ActivatedExtensions
from a2a_canvas.server.protocols.pipeline.extension_headers import SUPPORTED, activated_header
from a2a_canvas.server.wire import AGENTSTACK, CANVAS, TURN


def test_canvas_is_supported_under_both_names() -> None:
    assert {CANVAS, AGENTSTACK} < SUPPORTED
    assert activated_header([f"urn:x, {AGENTSTACK}", CANVAS]) == f"{AGENTSTACK}, {CANVAS}"


def test_only_our_own_name_asks_for_our_events() -> None:
    assert ActivatedExtensions.from_uris({AGENTSTACK}) == ActivatedExtensions()
    assert ActivatedExtensions.from_uris({CANVAS}) == ActivatedExtensions(canvas=True)
    assert ActivatedExtensions.from_uris({TURN, CANVAS}) == ActivatedExtensions(turn=True, canvas=True)
