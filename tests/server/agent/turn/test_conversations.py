"""Whatever a model answers, however the turn ends: the next request of that conversation is accepted.

Random conversations with a strict provider, of the Messages API or of chat completions: nasty answers, broken and cut
streams, cancels, messages that come meanwhile, questions, crashes, what a person changes between and during turns.
What a conversation is goes through the journal's JSON after every turn and every crash.

A few hundred model calls are made by default; `MODEL_CALLS=2000` makes as many (`make conversations`).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from a2a_canvas.server.agent.edit.run import OperationRequest, run_operation
from a2a_canvas.server.agent.events import (
    MessageReceived,
    State,
    StatusChanged,
    Transcript,
    TranscriptAppended,
    TurnEvent,
    UserMessage,
)
from a2a_canvas.server.agent.intent import Operation, Put, SelectionEdit
from a2a_canvas.server.agent.model import LLM
from a2a_canvas.server.agent.operation_forms import SelectionRequest
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.agent.turn.resume import InterruptedTurn, open_drafts, roll_back_drafts
from a2a_canvas.server.agent.turn.turn import TurnLimits, TurnRequest, run_turn
from a2a_canvas.server.tasks.codec import record_of_json, record_to_json, transcript_of_json, transcript_to_json
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import DataPart, FilePart, Limits, Part, text_of, text_part
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import Clock, ids, no_time
from tests.server.agent.models.strict_chat_completions import ChatCompletionsApi
from tests.server.agent.models.strict_messages_api import Answer, Json, MessagesApi, calls, redacted, says, sealed

CALLS = int(os.environ.get("MODEL_CALLS") or 300)
SEED = 20261122

Random = random.Random
Provider = MessagesApi | ChatCompletionsApi


# ------------------------------------------------------------------ what a model answers

TEXTS = ("Done.", "", " \n", "<think>hm", "A <reasoning> tag", "漢字 👋 \u2028", "```\nx\n", "half \ud83d", "a\x00b")
IDS = ("", None, "functions.artifact_list:0", "same", "toolu 1", "x" * 80, "日本")
NAMES = ("", None, "artifact list", "functions.artifact_list:0", "no_such_tool", "n" * 200, "web.search")
INPUTS = (
    "",
    "{",
    "[1]",
    "null",
    '{"a": NaN}',
    '{"a": [1, -Infinity]}',
    '{"a": 1e999}',
    '{"a": "\\ud800"}',
    "\x00",
    "1",
)
DATA = ("[1, NaN]", "1e999", "{}", str(10**40), '"\\udfff"', "[" * 300 + "]" * 300)
QUOTES = ("Done.", "tag", "漢", "", "half \ud83d", "half \ufffd", "not there")
STOPS = ("end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "stop_sequence", "odd", None)


def block(rng: Random, use_id: Callable[[], str]) -> Json:
    match rng.randrange(12):
        case 0 | 1 | 2:
            return sealed(rng.choice(("Let me see.", "", "漢字", "half \ud83d")))
        case 3:
            return redacted(rng.randrange(9))
        case 4 | 5:
            return says(rng.choice(TEXTS))
        case 6:
            return {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}}
        case 7:
            return calls(rng.choice((use_id(), *IDS)), rng.choice(NAMES), rng.choice(INPUTS))
        case _:
            return called(rng, rng.choice((use_id(), use_id(), *IDS)))


def called(rng: Random, use_id: str | None) -> Json:
    artifact = {"artifact_id": rng.choice(("doc", "other")), "parts": [{"kind": "text", "text": rng.choice(TEXTS)}]}
    data = '{"append": true, "artifact": {"artifact_id": "doc", "parts": [{"kind": "data", "data": %s}]}}'
    many = {"artifact_id": "doc", "parts": [{"kind": "data", "data": n} for n in range(9)]}
    lines = {"first_line": rng.choice((1, 2, 0, 99)), "last_line": rng.choice((None, 1, 3, -1))}
    words = {"old_text": rng.choice(QUOTES), "new_text": rng.choice(TEXTS)}
    match rng.randrange(14):
        case 0 | 1:
            return calls(use_id, "artifact_update", {"append": rng.random() < 0.5, "artifact": artifact})
        case 2:
            return calls(use_id, "artifact_update", data % rng.choice(DATA))
        case 3:
            return calls(use_id, "artifact_update", {"append": True, "artifact": many})
        case 4:
            return calls(use_id, "artifact_read", {"artifact_id": "doc"})
        case 5:
            return calls(use_id, "ask_user", {"question": rng.choice(("Which?", ""))})
        case 6:
            return calls(use_id, "artifact_list", {})
        case 7 | 8:
            return calls(use_id, "artifact_edit", {"artifact_id": "doc", **words})
        case 9:
            return calls(use_id, "artifact_restore", {"artifact_id": "doc", **rng.choice(({}, {"version": 1}))})
        case 10 | 11:
            return calls(use_id, "artifact_read", {"artifact_id": rng.choice(("doc", "other")), **lines})
        case _:
            return calls(use_id, "decline_task" if rng.random() < 0.3 else "artifact_list", {"reason": "No."})


def nasty(rng: Random, use_id: Callable[[], str]) -> Answer:
    blocks = [block(rng, use_id) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 6)))]
    if blocks and rng.random() < 0.2:
        blocks.append(sealed("And so on."))
    made = any(each["type"] == "tool_use" for each in blocks)
    answer = Answer(blocks, "tool_use" if made and rng.random() < 0.6 else rng.choice(STOPS), rng.choice((1, 3, 1000)))
    if rng.random() < 0.1:
        answer = replace(answer, unstopped=frozenset(rng.sample(range(len(blocks)), len(blocks) // 2)))
    if rng.random() < 0.05:
        answer = replace(answer, indices=[rng.randrange(3) for _ in blocks])
    return replace(answer, **rng.choice(({},) * 8 + BREAKS)) if rng.random() < 0.5 else answer


BREAKS: tuple[dict[str, Any], ...] = (
    {"keep": 0.3},
    {"keep": 0.7, "breaks": True},
    {"keep": 0.97},
    {"error": "overloaded_error"},
    {"status": 529},
    {"ends": False},
)

# --------------------------------------------------------------------- what a user says

CHARSETS = ("utf-7", "unicode_escape", "idna", "a\x00b", "no-such", "utf-16", "punycode", "hex", "")
FILES = (
    FilePart(content=b"# Title", name="notes.md"),
    FilePart(content=b'{"a": 1}', name="a.json", media_type="application/json"),
    FilePart(content=b"\xff\xfe\x00", name="a.json"),
    FilePart(content=b"\x89PNG\r\n\x1a\n", name="a\x00.png", media_type="image/png"),
    FilePart(content=b"no image", name="a.png", media_type="image/png"),
    FilePart(content=b"%PDF-1.7", media_type="application/pdf"),
    FilePart(content=b" ", name="blank.txt", media_type="text/plain"),
    FilePart(url="https://example.com/x"),
)


def part(rng: Random) -> Part:
    match rng.randrange(6):
        case 0:
            content = rng.choice((b"+2AA-", rb"\ud800 \N", b"xn--\xff", "Grüße".encode("utf-16")))
            return FilePart(content=content, name="t", media_type=f"text/plain; charset={rng.choice(CHARSETS)}")
        case 1:
            return rng.choice(FILES)
        case 2:
            return DataPart(rng.choice(({}, [], "x", {"größe": [1.5, None]})))
        case _:
            return text_part(rng.choice(("Go.", "", "  ", *TEXTS)))


def message(rng: Random, message_id: str) -> UserMessage:
    return UserMessage(message_id, tuple(part(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))))


PUTS = ("", "Mine.\n", "Done.\nA tag\n", "漢字 👋 \u2028", "half \ud83d", "One.\r\nTwo.\r\nThree.\r\n" * 50)


def operation(rng: Random, artifact_id: str, length: int) -> Operation:
    """What a person does with an artifact of so many characters."""
    if rng.random() < 0.7:
        return Put(artifact_id, rng.choice(PUTS), None)
    start, end = sorted(rng.randrange(length + 1) for _ in range(2))
    strategy = rng.choice(("replace", "insert_before", "insert_after"))
    said = rng.choice(("Louder.", *TEXTS))
    return SelectionEdit(artifact_id, SelectionRequest(start, end, "codepoint"), strategy, said, None)


# ------------------------------------------------------------------------- the driver


async def operate(rng: Random, llm: LLM, store: Any, new_id: Any) -> TaskRecord | None:
    """A person's own change, or an edit of a selection, as a task; None if there is nothing that could be changed."""
    artifacts = [each for each in await store.list("context") if text_of(each.parts) is not None]
    if not artifacts:
        return None
    artifact = rng.choice([each for each in artifacts if not each.open] or artifacts)
    wanted = operation(rng, artifact.artifact_id, len(artifact.text))
    said = UserMessage(new_id(), (text_part("Please."),))
    record = TaskRecord(new_id(), "context", "", Clock()(), history=(said,), transcript=(to_user_input(said),))

    async def emit(event: TurnEvent) -> None:
        nonlocal record
        record = fold(record, Entry(1, record.generation + 1, Clock()(), event))

    request = OperationRequest(wanted, said.message_id, record.task_id, "context")
    await run_operation(request, llm=llm, store=store, emit=emit, new_id=new_id, sleep=no_time)
    return record


class Task:
    """One task, over as many runs of its turn as it takes."""

    def __init__(self, rng: Random, earlier: tuple[Transcript, ...], llm: LLM, store: Any, new_id: Any) -> None:
        said = message(rng, new_id())
        self.record = TaskRecord(
            new_id(), "context", "", Clock()(), history=(said,), transcript=(to_user_input(said),), state=State.WORKING
        )
        self.ends: Counter[str] = Counter()
        self._rng, self._earlier, self._llm, self._store, self._new_id = rng, earlier, llm, store, new_id
        self._inbox: list[UserMessage] = []
        self._dead = False
        self.later: list[TaskRecord] = []
        self._operating: asyncio.Task[None] | None = None

    async def live(self) -> None:
        """To its end, or to a question that nobody answers."""
        await self._run()
        for _ in range(20):
            if self.record.state.terminal:
                return
            if self.record.state is State.INPUT_REQUIRED:
                if self._rng.random() < 0.3:
                    return
                await self._operate()
                answered = message(self._rng, self._new_id())
                self._tell(
                    MessageReceived(answered),
                    TranscriptAppended((to_user_input(answered),)),
                    StatusChanged(State.WORKING),
                )
            else:
                await self._restart()
            await self._run()

    def _tell(self, *events: TurnEvent) -> None:
        for event in events:
            entry = Entry(1, self.record.generation + 1, Clock()(), event)
            self.record = fold(self.record, entry)

    async def _emit(self, event: TurnEvent) -> None:
        if self._dead:
            raise asyncio.CancelledError
        self._tell(event)
        self._left -= 1
        if self._left == 0:
            self._disturb()

    def _disturb(self) -> None:
        match self._kind:
            case "crash":  # what is said between two waits is kept together
                asyncio.get_running_loop().call_soon(self._die)
            case "cancel":
                self._running.cancel()
            case "message":
                said = message(self._rng, self._new_id())
                self._inbox.append(said)
                self._tell(MessageReceived(said))
            case "operation":
                self._operating = asyncio.create_task(self._operate())

    async def _operate(self) -> None:
        if record := await operate(self._rng, self._llm, self._store, self._new_id):
            self.later.append(record)

    def _die(self) -> None:
        if not self._running.done():
            self._dead = True
            self._running.cancel()

    async def _run(self) -> None:
        self._kind = self._rng.choice(("", "crash", "cancel", "message", "message", "operation", "operation"))
        self._left, self._dead = self._rng.choice((1, 3, 6, 12, 25)), False
        self._running = asyncio.create_task(self._turn())
        await asyncio.wait([self._running])
        if self._operating:
            await self._operating
        self.ends[self._kind if self._left <= 0 else "undisturbed"] += 1
        if not self._running.cancelled():
            self._running.result()
        elif not self._dead:
            late = tuple(to_user_input(said) for said in self._take(True))
            self._tell(*([TranscriptAppended(late)] if late else []), StatusChanged(State.CANCELED))

    async def _turn(self) -> None:
        record = self.record
        await run_turn(
            TurnRequest(
                task_id=record.task_id,
                context_id="context",
                earlier=self._earlier,
                transcript=record.transcript,
                new_messages=self._take,
                progress=record.progress,
                later=frozenset(each.task_id for each in self.later),
                changed=tuple(record.artifacts),
                drafts=await open_drafts(self._store, "context", record.task_id),
                limits=TurnLimits(rounds=6, tool_errors_in_a_row=4),
            ),
            llm=self._llm,
            tools=TOOLS,
            store=self._store,
            emit=self._emit,
            new_id=self._new_id,
            sleep=no_time,
        )

    def _take(self, closing: bool) -> tuple[UserMessage, ...]:
        messages, self._inbox = tuple(self._inbox), []
        return messages

    async def _restart(self) -> None:
        """What whoever takes the task up after a crash does."""
        self._dead, self._left = False, 0
        record = self.record = record_of_json(record_to_json(self.record))
        edits = tuple((e.edit_id, e.artifact_id, e.selection, e.mode) for e in record.open_edits.values())
        drafts = await open_drafts(self._store, "context", record.task_id)
        open_round = record.progress.round if record.call_open else None
        interrupted = InterruptedTurn(record.task_id, "context", open_round, edits, drafts)
        await roll_back_drafts(interrupted, self._store, self._emit, tuple(record.artifacts))


def kept(record: TaskRecord) -> Transcript:
    return transcript_of_json(transcript_to_json(record.transcript))


async def converse(seed: int, api: Provider, rng: Random) -> Counter[str]:
    """One conversation of some tasks; how their runs ended."""
    llm, store, new_id = api.model(), InMemoryArtifactStore(Limits(parts=12)), ids()
    earlier: tuple[Transcript, ...] = ()
    ends: Counter[str] = Counter()
    for _ in range(rng.randrange(2, 7)):
        before = [record] if (record := await operate(rng, llm, store, new_id)) else []
        earlier = (*earlier, *map(kept, before))
        task = Task(rng, earlier, llm, store, new_id)
        await task.live()
        earlier = (*earlier, kept(task.record), *map(kept, task.later))
        ends.update(f"operation {each.state.value}" for each in (*before, *task.later))
        ends.update(task.ends)
        ends[task.record.state.value] += 1
        said = task.record.message.text if task.record.message else ""
        assert "Something went wrong in this server" not in said, f"seed {seed}: {said}"
        assert not api.refusals, f"seed {seed}: {api.refusals[0]}"
    ends["told of a change"] += sum(
        "Read it before you rewrite it" in json.dumps(each["messages"][-1]) for each in api.requests
    )
    ends["edit"] += sum("tools" not in each for each in api.requests)
    return ends


@pytest.mark.parametrize("provider", [MessagesApi, ChatCompletionsApi])
async def test_whatever_a_model_answers_the_next_request_is_accepted(provider: type[Provider]) -> None:
    made, ends, seed = 0, Counter[str](), SEED
    while made < CALLS:
        rng, use_id = Random(seed), ids("toolu")
        api = provider(lambda _, rng=rng, use_id=use_id: nasty(rng, use_id))  # type: ignore[misc]
        ends += await converse(seed, api, rng)
        made += len(api.requests)
        seed += 1
    sys.stdout.write(json.dumps({"model calls": made, "conversations": seed - SEED, **ends}) + "\n")
    assert {"crash", "cancel", "message", "completed", "failed", "rejected", "canceled"} <= ends.keys()
    assert {"operation", "operation completed"} <= ends.keys()
    assert "operation rejected" in ends or made < 2000  # one in a hundred calls or so
    assert ends["told of a change"] > 0
    assert ends["edit"] > 0
