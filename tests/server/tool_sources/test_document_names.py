"""What a document without a name is called."""

import pytest

from a2a_canvas.server.tool_sources.document_names import document_name, heading_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hello\n## Tide *pools* & I\n# Other", "tide-pools-i.md"),
        ("#hashtag\nno heading", ""),
        ("# 😀", ""),
        ("# " + "x" * 200, "x" * 80 + ".md"),
    ],
)
def test_a_document_is_named_by_its_first_heading(text: str, name: str) -> None:
    assert heading_name(text) == name


@pytest.mark.parametrize(("agent", "name"), [("my agent", "my-agent.md"), ("😀", "answer.md")])
def test_a_document_without_a_heading_is_named_by_the_agent(agent: str, name: str) -> None:
    assert document_name("Hello", agent) == name
