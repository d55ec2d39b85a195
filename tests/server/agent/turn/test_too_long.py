"""Conversations that are really too long for their model, with a provider that counts and refuses what it must."""

from __future__ import annotations

import pytest

from a2a_canvas.server.agent.events import StatusChanged, Transcript, TranscriptAppended
from a2a_canvas.server.agent.models.claude import ClaudeModel
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.agent.turn.turn import TurnRequest, run_turn
from a2a_canvas.server.agent.turn.window import WindowEstimates
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import FilePart, Part, text_part
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import EventRecorder, UserMessage, ids, no_time
from tests.server.agent.models.strict_messages_api import Answer, MessagesApi, calls, says
from tests.server.agent.models.strict_messages_api import tokens as counted

CHINESE = "数据库事务隔离级别与锁的实现，" * 1300
CODE = "for (let i = 0; i < n; i++) { if (a[i] != b[i]) { x += f(a[i], b[i]); } }\n" * 250
ENGLISH = "The quick brown fox jumps over the lazy dog, and nobody knows why it does. " * 250


class Talk:
    """One context, task after task.

    Attributes:
        sizes: what the process knows of it; a new one is what a restart leaves.
    """

    def __init__(self, window: int = 200_000, model_window: int = 200_000, answer: Answer | None = None) -> None:
        self.api = MessagesApi(lambda _: answer or Answer([says("Done.")]), window=window)
        self.llm = ClaudeModel(client=self.api.client(), context_window=model_window)
        self.sizes = WindowEstimates()
        self._earlier: tuple[Transcript, ...] = ()
        self._store = InMemoryArtifactStore()

    async def say(self, *parts: Part) -> str:
        """Ask for a task; how it ended."""
        told = EventRecorder()
        first = (to_user_input(UserMessage("m", parts)),)
        request = TurnRequest("task", "context", self._earlier, first, new_messages=lambda closing: ())
        await run_turn(
            request,
            llm=self.llm,
            tools=TOOLS,
            store=self._store,
            emit=told,
            new_id=ids(),
            window_estimates=self.sizes,
            sleep=no_time,
        )
        items = tuple(item for event in told.of(TranscriptAppended) for item in event.items)
        self._earlier = (*self._earlier, first + items)
        return told.of(StatusChanged)[-1].state.value


@pytest.mark.parametrize("text", [CHINESE, CODE, ENGLISH], ids=["Chinese", "code", "English"])
@pytest.mark.parametrize(
    ("window", "model_window"),
    [(200_000, 200_000), (32_768, 32_768), (32_768, 200_000), (12_000, 200_000)],
    ids=["200k", "32k, said", "32k, not said", "12k, not said"],
)
async def test_a_conversation_goes_on_however_long_it_gets(text: str, window: int, model_window: int) -> None:
    talk = Talk(window, model_window)
    room = window - min(32_000, window // 2)
    piece = text[: len(text) * room // 5 // counted(text)]
    for n in range(15):
        if n == 10:
            talk.sizes = WindowEstimates()
        assert await talk.say(text_part(piece)) == "completed"
    assert len(talk.api.refusals) <= 4
    assert max(talk.api.sizes) > room / 3


async def test_a_conversation_that_was_counted_is_not_refused() -> None:
    talk = Talk()
    for _ in range(15):
        assert await talk.say(text_part(CHINESE)) == "completed"
    assert not talk.api.refusals
    assert max(talk.api.sizes) > 130_000


async def test_what_is_too_long_by_itself_fails_its_task_and_no_other() -> None:
    talk = Talk(window=32_768)
    assert await talk.say(text_part("Hello.")) == "completed"
    assert await talk.say(text_part(CHINESE * 3)) == "failed"
    assert await talk.say(text_part("And now?")) == "completed"


async def test_within_one_task_too_the_oldest_results_go() -> None:
    written = {"append": True, "artifact": {"artifact_id": "doc", "parts": [{"kind": "text", "text": CHINESE}]}}
    answers = [Answer([calls(f"T{n}", "artifact_update", written)], "tool_use") for n in range(12)]
    talk = Talk(window=100_000)
    talk.api.answer = lambda _: answers.pop(0) if answers else Answer([says("Done.")])
    assert await talk.say(text_part("Write.")) == "completed"
    assert len(talk.api.requests) == 13


PICTURE = FilePart(content=b"\x89PNG\r\n\x1a\n".ljust(3_900_000, b"."), name="a.png", media_type="image/png")


@pytest.mark.parametrize("window", [200_000, 1_000_000])
async def test_a_conversation_goes_on_however_many_pictures_there_are(window: int) -> None:
    talk = Talk(1_000_000, window)
    for _ in range(9):
        assert await talk.say(text_part("Look."), PICTURE) == "completed"
    assert set(talk.api.refusals) <= {"Request exceeds the maximum size"}
    assert len(talk.api.refusals) == (window > 200_000)
    assert talk.api.requests[-1]["messages"][-1]["content"][-1]["type"] == "image"


async def test_pictures_of_one_message_that_are_too_much_together_are_named_instead() -> None:
    talk = Talk()
    assert await talk.say(text_part("Look."), *[PICTURE] * 7) == "completed"
    assert {block["type"] for block in talk.api.requests[-1]["messages"][-1]["content"]} == {"text"}
    assert await talk.say(text_part("And this?"), PICTURE) == "completed"
    assert talk.api.requests[-1]["messages"][-1]["content"][-1]["type"] == "image"
