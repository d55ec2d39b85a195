"""Turns of models behind the chat completions API: calls act while they are written, thinking is told once, and the
message that a model marks as final is the task's."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest

from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    AssistantOutput,
    TextAdded,
    ThinkingAdded,
    ToolInputCompleted,
    TranscriptAppended,
)
from a2a_canvas.server.agent.model import ModelText, Thinking
from a2a_canvas.server.agent.models.openai_compatible import OpenAIModel
from tests.fakes import EventRecorder
from tests.server.agent.models.chat_chunks import Json, body, calling, chunk, piece, usage
from tests.server.agent.models.strict_messages_api import Wire
from tests.server.agent.turn.turn_harness import TurnHarness

TEXT = "Pools are left behind by the tide. " * 20
INPUT = json.dumps(
    {"append": True, "artifact": {"artifact_id": "doc", "name": "Tides", "parts": [{"kind": "text", "text": TEXT}]}}
)
DONE = [chunk({"content": "Done."}), chunk(finish="stop"), usage()]


class Replay:
    """A provider that gives one answer after the other."""

    def __init__(self, *answers: bytes) -> None:
        self.requests: list[Json] = []
        self._answers = list(answers)

    def reply(self, content: bytes) -> tuple[int, bytes, bool]:
        self.requests.append(json.loads(content))
        return 200, self._answers.pop(0), False


async def turn(*answers: bytes, **options: Any) -> tuple[EventRecorder, Replay, TurnHarness]:
    replay, harness = Replay(*answers), TurnHarness()
    client = openai.AsyncOpenAI(
        api_key="k", base_url="http://provider.test/v1", http_client=httpx2.AsyncClient(transport=Wire(replay))
    )
    harness.llm = OpenAIModel(model="m", context_window=128_000, client=client, **options)  # type: ignore[assignment]
    await harness.start()
    return harness.told, replay, harness


def writes(size: int) -> bytes:
    """An answer that calls `artifact_update`, in pieces of so many characters."""
    pieces = [calling(piece(INPUT[at : at + size], index=0)) for at in range(0, len(INPUT), size)]
    begins = calling(piece("", "artifact_update", index=0, id="call_1"))
    return body(begins, *pieces, chunk(finish="tool_calls"), usage())


@pytest.mark.parametrize(("size", "grows"), [(10, True), (len(INPUT), False)])
async def test_an_artifact_grows_while_its_call_is_written_if_that_comes_in_pieces(size: int, grows: bool) -> None:
    told, _, harness = await turn(writes(size), body(*DONE))
    complete = told.events.index(told.of(ToolInputCompleted)[0])
    changes = [n for n, event in enumerate(told.events) if isinstance(event, ArtifactChanged)]
    assert (len([n for n in changes if n < complete]) > 10) is grows
    assert (await harness.store.list("context"))[0].text == TEXT


async def test_the_result_of_a_call_goes_back_under_its_id() -> None:
    _, replay, _ = await turn(writes(100), body(*DONE))
    answer, result = replay.requests[1]["messages"][-2:]
    assert [answer["role"], result["role"]] == ["assistant", "tool"]
    assert answer["tool_calls"][0]["id"] == result["tool_call_id"] == "call_1"
    assert json.loads(answer["tool_calls"][0]["function"]["arguments"]) == json.loads(INPUT)


async def test_of_thinking_that_is_sent_again_and_again_only_what_is_new_is_told_and_kept() -> None:
    so_far = [chunk({"reasoning_content": text}) for text in ("Hm", "Hm, tides", "Hm, tides", "Hm, tides!")]
    beside = [chunk({"reasoning_content": "Hm, tides!", "content": "Done."}), chunk(finish="stop")]
    told, _, _ = await turn(body(*so_far, *beside), sends_thinking="accumulated")
    assert [event.content for event in told.of(ThinkingAdded)] == ["Hm", ", tides", "!"]
    [output] = [item for event in told.of(TranscriptAppended) for item in event.items]
    assert isinstance(output, AssistantOutput)
    assert output.blocks == (Thinking("Hm, tides!"), ModelText("Done."))


@pytest.mark.parametrize("mark", [{"channel": "final"}, {"phase": "final_answer"}])
async def test_the_message_that_is_marked_as_final_is_the_tasks(mark: Json) -> None:
    told, _, _ = await turn(
        body(chunk({"content": "I count. "}), chunk({"content": "42", **mark}), chunk(finish="stop"))
    )
    assert told.statuses == [("completed", "42")]


async def test_a_refusal_is_the_end_and_is_shown() -> None:
    told, _, _ = await turn(body(chunk({"refusal": "I will not."}), chunk(finish="stop")))
    assert [event.text for event in told.of(TextAdded)] == ["I will not."]
    assert told.statuses[-1] == ("rejected", "The model declined to answer this request.")
