"""The examples in the docstrings of the public names run, and do what they say."""

from __future__ import annotations

import doctest
import os
from typing import Any

import pytest

import a2a_canvas
from a2a_canvas.server.settings.settings import PREFIX
from tests.fakes import answer, text
from tests.fakes import tool as call
from tests.server.agent.turn.turn_harness import TurnHarness

NAMES = [name for name in a2a_canvas.__all__ if name != "__version__"]


def left_by_the_examples(name: str) -> dict[str, Any]:
    """The names that the examples of a public name define; none of the examples fails."""
    found = [each for each in doctest.DocTestFinder().find(getattr(a2a_canvas, name), name) if each.examples]
    runner = doctest.DocTestRunner()
    for each in found:
        runner.run(each, clear_globs=False)
    assert (runner.summarize().failed, bool(found)) == (0, True)
    return {name: value for each in found for name, value in each.globs.items()}


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_public_name_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in tuple(os.environ):
        if variable.startswith(PREFIX):
            monkeypatch.delenv(variable)
    left_by_the_examples(name)


async def test_the_tool_in_the_example_of_the_canvas_writes_what_it_says() -> None:
    count_to = left_by_the_examples("Canvas")["count_to"]
    turn = TurnHarness(answer(call("T1", "count_to", {"last": 3})), answer(text("Done.")), tools=[count_to.tool])
    await turn.run()
    assert [each.text for each in await turn.store.list("context")] == ["1 2 3 "]
    assert turn.results()[0].content == "The numbers up to 3 are in the artifact numbers."
    assert "Writing 1 of 3…" in turn.told.tool_labels
