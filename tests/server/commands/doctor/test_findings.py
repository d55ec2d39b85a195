"""The report of the doctor: a line for each finding, what to do below it, and the same as JSON."""

from __future__ import annotations

import json

from a2a_canvas.server.commands.doctor.findings import as_json, as_lines, exit_code, failure, ok, warning

FOUND = [ok("settings", "Valid."), warning("disk", "Nearly full.", "Free some space.")]
BROKEN = [*FOUND, failure("model", "It refuses the key.")]


def test_each_finding_is_a_line_with_what_to_do_below_it() -> None:
    assert [*as_lines(BROKEN)] == [
        "ok       settings  Valid.",
        "warning  disk      Nearly full.",
        "                   Free some space.",
        "failed   model     It refuses the key.",
        "1 ok, 1 to look at, 1 failed.",
    ]


def test_json_has_the_same() -> None:
    found = json.loads(as_json(BROKEN))
    assert found["ok"] is False
    assert found["checks"][1] == {
        "check": "disk",
        "status": "warning",
        "message": "Nearly full.",
        "advice": "Free some space.",
    }


def test_only_a_failure_is_an_exit_code() -> None:
    assert (exit_code(FOUND), exit_code(BROKEN)) == (0, 1)
