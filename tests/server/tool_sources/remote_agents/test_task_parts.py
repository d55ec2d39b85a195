"""What another agent names, as we can have it."""

import pytest

from a2a_canvas.server.tool_sources.remote_agents.task_parts import line


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (" report.md ", "report.md"),
        ("a\nb\0c\u202ed", "a_b_c_d"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 200),
        ("", ""),
    ],
)
def test_a_name_is_one_line_of_200_characters_at_most(given: str, kept: str) -> None:
    assert line(given) == kept
