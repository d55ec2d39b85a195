"""JSON Patch: the operations of RFC 6902, and what does not fit."""

import pytest

from a2a_canvas.tools.json_patching import PatchError, apply_patch

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
        {"op": "remove", "path": ""},
        {"op": "add", "path": "/~2", "value": 1},
        {"op": "add", "path": "/a" * 30, "value": 1},
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


def test_the_new_value_shares_what_the_patch_does_not_change() -> None:
    before = {"a": {"b": 1}, "c": [1]}
    after = apply_patch(before, [{"op": "replace", "path": "/a/b", "value": 2}])
    assert after["c"] is before["c"]


def test_a_patch_that_copies_what_it_has_copied_does_not_grow_without_bound() -> None:
    value = {"a": "x" * 1_000}
    doubling = [{"op": "copy", "from": "", "path": f"/{number}"} for number in range(20)]
    with pytest.raises(PatchError, match="copies and moves more than 1,000,000 characters"):
        apply_patch(value, doubling)


def test_a_patch_does_not_nest_a_value_ever_deeper() -> None:
    deeper = [{"op": "copy", "from": "", "path": "/a"}] * 40
    with pytest.raises(PatchError, match="must not nest deeper"):
        apply_patch({}, deeper)
