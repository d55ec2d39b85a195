"""JSON Patch: the operations of RFC 6902, and what does not fit."""

import pytest

from a2a_canvas.server.tool_sources.agui_agents.json_patching import PatchError, apply_patch

DOCUMENT = {"a": {"b": [1, 2]}, "~/": 0}


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ({"op": "add", "path": "/a/b/-", "value": 3}, {"a": {"b": [1, 2, 3]}, "~/": 0}),
        ({"op": "add", "path": "/a/b/0", "value": 3}, {"a": {"b": [3, 1, 2]}, "~/": 0}),
        ({"op": "add", "path": "/a/c", "value": None}, {"a": {"b": [1, 2], "c": None}, "~/": 0}),
        ({"op": "replace", "path": "/~0~1", "value": 5}, {"a": {"b": [1, 2]}, "~/": 5}),
        ({"op": "replace", "path": "", "value": 5}, 5),
        ({"op": "remove", "path": "/a/b/1"}, {"a": {"b": [1]}, "~/": 0}),
        ({"op": "move", "from": "/a/b/0", "path": "/a/b/1"}, {"a": {"b": [2, 1]}, "~/": 0}),
        ({"op": "copy", "from": "/a/b", "path": "/c"}, {"a": {"b": [1, 2]}, "~/": 0, "c": [1, 2]}),
        ({"op": "test", "path": "/a/b", "value": [1, 2]}, DOCUMENT),
    ],
)
def test_an_operation_is_applied(operation, after) -> None:
    before = {"a": {"b": [1, 2]}, "~/": 0}
    assert apply_patch(before, [operation]) == after
    assert before == DOCUMENT


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/x", "value": 1},
        {"op": "remove", "path": "/a/b/2"},
        {"op": "remove", "path": "/a/b/-1"},
        {"op": "remove", "path": "/a/b/-"},
        {"op": "add", "path": "/a/b/x", "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/a"},
        {"op": "move", "from": "/a", "path": "/a/b"},
        {"op": "test", "path": "/~0~1", "value": 1},
        {"op": "jump", "path": "/a"},
        {"op": "add", "path": None, "value": 1},
        7,
    ],
)
def test_what_does_not_fit_is_an_error(operation) -> None:
    with pytest.raises(PatchError):
        apply_patch(DOCUMENT, [operation])


def test_a_patch_is_a_list() -> None:
    with pytest.raises(PatchError):
        apply_patch({}, {"op": "add"})
