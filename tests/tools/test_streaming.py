"""The base of streaming tools: what is done of a call that is cut anywhere, and which error counts."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from a2a_canvas.store.errors import ArtifactNotFound, ArtifactTooLarge
from a2a_canvas.tools.json_stream import JsonEvent, Value
from a2a_canvas.tools.streaming import StreamingCall
from a2a_canvas.tools.tool import Done, Failed, Outcome, Tool, Workspace
from tests.store.artifact_builders import result
from tests.tools.tool_calls import call, fragments, workspace


class Steps(BaseModel):
    model_config = ConfigDict(strict=True)

    steps: list[str]
    end: str = "end"


class Recorder(StreamingCall[Steps]):
    """Does one step after the other. "missing" and "large" are errors of the store."""

    label = ""

    def __init__(self, place: Workspace, done: list[str]) -> None:
        super().__init__("steps", Steps, 2, place)
        self.done = done

    async def _act(self, events: Sequence[JsonEvent]) -> None:
        for event in events:
            self._check(event)

    def _take(self, event: JsonEvent) -> None:
        if isinstance(event, Value) and event.path[:1] == ("steps",) and len(event.path) == 2:
            step = str(event.value)
            if step == "missing":
                raise ArtifactNotFound("a")
            if step == "large":
                raise ArtifactTooLarge(2, 1)
            self.done.append(step)

    async def _complete(self, whole: Steps) -> str:
        self.done.append(whole.end)
        return "done"

    async def _undo(self) -> None:
        self.done.append("undone")


def run(pieces: list[str]) -> tuple[Outcome, list[str]]:
    done: list[str] = []
    tool = Tool("steps", "", Steps, lambda place: Recorder(place, done))
    return result(call(tool, pieces, workspace())), done


@given(st.data())
def test_a_call_is_done_step_by_step_however_it_is_cut(data: st.DataObject) -> None:
    text = json.dumps({"steps": ["a", "b"], "end": "c"})
    assert run(data.draw(fragments(text))) == (Done("done"), ["a", "b", "c"])


CASES = {
    "the store's error, of which the first counts": ('{"steps": ["a", "missing", "b", "missing"]}', "no artifact 'a'"),
    "not JSON, after a store error": ('{"steps": ["a", "missing"]]', "not complete, valid JSON"),
    "an invalid field, after a store error": (
        '{"steps": ["a", "missing"], "end": 1}',
        "end: is ",
    ),
    "an unfinished text, after an invalid field": ('{"steps": ["a"], "steps": ["b"]', "not complete, valid JSON"),
    "a field given twice": ('{"steps": ["a"], "steps": ["b"]}', "steps: is given twice"),
}


@pytest.mark.parametrize(("text", "says"), CASES.values(), ids=CASES.keys())
@given(data=st.data())
def test_an_error_of_the_input_precedes_others_and_ends_what_is_done(text: str, says: str, data: st.DataObject) -> None:
    outcome, done = run(data.draw(fragments(text)))
    assert isinstance(outcome, Failed)
    assert says in outcome.content
    assert done in (["a", "undone"], ["undone"])  # an error of JSON hides what came before it in its fragment


def test_a_limit_ends_the_turn() -> None:
    with pytest.raises(ArtifactTooLarge):
        run(['{"steps": ["large"]}'])
