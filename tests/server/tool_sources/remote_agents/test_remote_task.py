"""One call of another agent: what its events become here, and what each kind of break leaves."""

import asyncio
from copy import deepcopy
from dataclasses import replace

import pytest
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.agent.events import ArtifactChanged, State, ToolStep, Transcript
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.store.changes import AppendParts
from a2a_canvas.store.models import Limits, Ref, text_part
from a2a_canvas.tools.functions.running import HANDED_OVER
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import FakeLLM, Hold, answer, said, text
from tests.fakes import tool as call
from tests.server.agent.turn.cut_harness import YieldingModel, items_of
from tests.server.agent.turn.turn_harness import TurnHarness
from tests.server.agent.turn.turn_life import Life
from tests.server.agent.turn.turn_scripts import START
from tests.server.tool_sources.remote_agents.asking import result, texts
from tests.server.tool_sources.remote_agents.fake_agent import (
    PLAN,
    REPORT,
    TURNS,
    WRITTEN,
    FakeAgent,
    asking_tool,
    check_every_cut,
    chunk,
    completed,
    status,
    whole,
    working,
)


def harness(agent, *shared, given=None, **options) -> TurnHarness:
    calls = answer(call("T1", "ask_weather", given or {"message": "Go"})), answer(text("Done."))
    limits = {"artifact_limits": options.pop("artifact_limits", None), "store": options.pop("store", None)}
    limits["earlier"] = options.pop("earlier", ())
    return TurnHarness(*calls, tools=(*TOOLS, asking_tool(agent, *shared, **options)), **limits)


async def run(agent, *shared, **options) -> TurnHarness:
    turn = harness(agent, *shared, **options)
    await turn.run()
    return turn


def transcript_of(turn: TurnHarness) -> Transcript:
    return (to_user_input(said("m-0", "Go")), *items_of(turn.told.events))


async def test_its_status_is_our_label_its_artifacts_grow_here_and_its_last_message_is_the_result() -> None:
    turn = await run(FakeAgent(REPORT))
    assert "Looking at the sky…" in turn.told.tool_labels
    changes = [(event.append, event.last_chunk) for event in turn.told.of(ArtifactChanged)]
    assert changes == [(False, False), (True, False), (True, False), (True, True)]
    assert await texts(turn) == {"report": WRITTEN}
    assert result(turn) == (
        "It rains.\n[Its artifacts here: 'report']\n[To continue this conversation: context_id 'there']"
    )


async def test_files_and_data_come_too() -> None:
    event = whole("report", "Rain.", name="report.md")
    event.artifact_update.artifact.parts.add(raw=b"\x89PNG", filename="sky.png", media_type="image/png")
    event.artifact_update.artifact.parts.add().data.struct_value.update({"rain": 3})
    turn = await run(FakeAgent([event, completed()]))
    [report] = await turn.store.list("context")
    _, file, data = report.parts
    assert (file.content, file.name, file.media_type) == (b"\x89PNG", "sky.png", "image/png")
    assert data.data == {"rain": 3}
    assert report.name == "report.md"


async def test_artifacts_without_a_name_are_called_like_the_agent_and_keep_that_name() -> None:
    ids = [f"{number}{'0' * 31}" for number in range(2)]
    events = [whole(ids[0], "Rain"), whole(ids[1], "Sun."), chunk(ids[0], "."), whole(ids[0], "Rain."), completed()]
    turn = await run(FakeAgent(events))
    assert {each.name: each.text for each in await turn.store.list("context")} == {
        "Weather": "Rain.",
        "Weather 2": "Sun.",
    }


OPAQUE = "0" * 32


@pytest.mark.parametrize(
    "events",
    [
        [whole(OPAQUE, "# Tide pools\nHigh.")],
        [whole(OPAQUE, "# Ti"), chunk(OPAQUE, "de"), chunk(OPAQUE, " pools\nHigh.")],
        [whole(OPAQUE, "# Ti"), whole(OPAQUE, "# Tide pools\nHigh."), chunk(OPAQUE, "\n# Other")],
        [whole(OPAQUE, "# Tide pools")],
    ],
    ids=["at once", "in pieces", "replaced", "without a line break"],
)
@pytest.mark.parametrize("streams", [True, False])
async def test_an_artifact_without_a_name_is_called_by_its_first_heading_once_it_is_complete(events, streams) -> None:
    agent = FakeAgent([*deepcopy(events), completed()])
    agent.streams = streams
    turn = await run(agent)
    assert [each.name for each in await turn.store.list("context")] == ["tide-pools.md"]


async def test_an_answer_without_a_word_says_so() -> None:
    turn = await run(FakeAgent([status(pb.TASK_STATE_COMPLETED)]))
    assert result(turn).startswith("It said nothing.")


async def test_a_message_instead_of_a_task_is_the_result_with_its_files() -> None:
    class Replies(FakeAgent):
        async def send(self, message):
            reply = pb.StreamResponse()
            reply.message.parts.add(text="Rain.")
            reply.message.parts.add(raw=b"sky", filename="sky.bin")
            yield reply

    turn = await run(Replies())
    assert result(turn).startswith("Rain.\n[The file 'sky.bin'")
    assert list(await texts(turn)) == ["sky.bin"]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (pb.TASK_STATE_FAILED, "The task of Weather failed: No sky."),
        (pb.TASK_STATE_REJECTED, "The task of Weather was rejected: No sky."),
        (pb.TASK_STATE_CANCELED, "The task of Weather was cancelled by the agent: No sky."),
    ],
)
async def test_a_task_that_fails_is_told_and_what_it_has_written_stays(state, told) -> None:
    turn = await run(FakeAgent([whole("report", "half"), status(state, "No sky.")]))
    assert result(turn).startswith(f"ERROR {told}\n[Its artifacts here: 'report']")
    assert await texts(turn) == {"report": "half"}


async def test_our_artifacts_are_sent_along_and_may_be_changed() -> None:
    agent = FakeAgent([whole("report", "better"), completed()])
    turn = harness(agent, "report")
    await turn.store.apply(Ref("context", "report", "other"), AppendParts((text_part("good"),), "report.md", done=True))
    await turn.store.close(Ref("context", "report", "other"))
    await turn.run()
    [message] = agent.messages.values()
    assert [part.text for part in message.parts] == ["Go", "report.md:\n\ngood"]
    assert await texts(turn) == {"report": "better"}


async def test_a_stream_that_had_events_is_subscribed_to_again_also_after_a_lasting_fault() -> None:
    class Faulty(FakeAgent):
        subscriptions = 0

        async def subscribe(self, task_id):
            self.subscriptions += 1
            async for event in super().subscribe(task_id):
                yield event
                if self.subscriptions < 3 and event.HasField("artifact_update"):
                    raise AgentFault("its answer is not A2A", retryable=self.subscriptions < 2)

    agent = Faulty(REPORT)
    turn = await run(agent)
    assert agent.subscriptions == 3
    assert await texts(turn) == {"report": WRITTEN}


async def test_an_artifact_that_is_not_there_cannot_be_sent_along() -> None:
    agent = FakeAgent([completed()])
    assert result(await run(agent, "nothing")) == "ERROR There is no artifact 'nothing'."
    assert not agent.messages


async def test_an_id_that_is_another_artifacts_gets_the_agents_name_in_front() -> None:
    turn = harness(FakeAgent(REPORT))
    await turn.store.apply(Ref("context", "report", "other"), AppendParts((text_part("ours"),), done=True))
    await turn.store.close(Ref("context", "report", "other"))
    await turn.run()
    assert await texts(turn) == {"report": "ours", "weather-report": WRITTEN}
    assert "'weather-report'" in result(turn)


async def test_in_the_same_conversation_with_the_agent_an_id_is_the_same_artifact() -> None:
    first = await run(FakeAgent(REPORT))
    agent = FakeAgent([whole("report", "Sun."), completed()])
    given = {"message": "And now?", "context_id": "there"}
    turn = await run(agent, store=first.store, given=given, earlier=(transcript_of(first),))
    [message] = agent.messages.values()
    assert message.context_id == "there"
    assert await texts(turn) == {"report": "Sun."}


class Answers(FakeAgent):
    """Answers with a message."""

    async def send(self, message):
        self.messages[message.message_id] = message
        reply = pb.StreamResponse()
        reply.message.parts.add(text="Rain.")
        reply.message.context_id = "there"
        yield reply


async def test_so_it_is_after_an_answer_without_a_task() -> None:
    first, agent = await run(Answers()), Answers()
    await run(agent, given={"context_id": "there"}, earlier=(transcript_of(first),))
    assert [message.context_id for message in agent.messages.values()] == ["there"]


@pytest.mark.parametrize("context_id", ["there", "remote", "x" * 300])
async def test_a_conversation_with_the_agent_that_is_not_ours_is_not_gone_on_with(context_id: str) -> None:
    """The agent takes our users for one. So another user's conversation is a matter of knowing its id."""
    agent = FakeAgent(REPORT)
    turn = await run(agent, given={"message": "What did I say?", "context_id": context_id})
    assert "is no context_id that Weather has given in this conversation" in result(turn)
    assert not agent.messages


async def test_nor_is_one_with_another_agent() -> None:
    first, agent = await run(FakeAgent(REPORT)), FakeAgent(REPORT)
    kept = [
        replace(item, value=item.value.replace("weather.example", "elsewhere.example"))
        for item in items_of(first.told.events)
        if isinstance(item, ToolStep) and item.kind == "kept"
    ]
    assert "is no context_id" in result(await run(agent, given={"context_id": "there"}, earlier=(tuple(kept),)))
    assert not agent.messages


async def test_in_another_conversation_with_the_agent_it_is_another_artifact() -> None:
    first = await run(FakeAgent(REPORT))
    agent = FakeAgent([whole("report", "Sun."), completed()])
    agent.task.context_id = "elsewhere"
    turn = await run(agent, store=first.store)
    assert await texts(turn) == {"report": WRITTEN, "weather-report": "Sun."}


# ------------------------------------------------------------------------------ breaks


@pytest.mark.parametrize("after", range(len(REPORT) + 2))
async def test_a_stream_that_breaks_is_taken_up_again_and_nothing_is_lost_or_doubled(after) -> None:
    agent = FakeAgent(REPORT)
    agent.breaks = [after, 1, 0, 2]
    turn = await run(agent)
    assert result(turn).startswith("It rains.")
    assert await texts(turn) == {"report": WRITTEN}
    assert len(agent.messages) == 1


async def test_an_agent_without_streams_is_looked_at() -> None:
    agent = FakeAgent(REPORT)
    agent.streams, agent.breaks = False, [1]
    turn = await run(agent)
    assert result(turn).startswith("It rains.")
    assert await texts(turn) == {"report": WRITTEN}
    appended = [event.append for event in turn.told.of(ArtifactChanged)]
    assert appended == [False, True, True, True]


async def test_an_agent_that_refuses_to_be_followed_is_looked_at() -> None:
    class Refuses(FakeAgent):
        async def subscribe(self, task_id):
            if len(self._rest) != len(REPORT):
                self.streams = False
                raise AgentFault("it refuses: no")
            yield pb.StreamResponse(task=self.task)
            yield self._next()

    assert await texts(await run(Refuses(REPORT))) == {"report": WRITTEN}


async def test_an_agent_that_never_comes_back_is_given_up_and_what_it_wrote_stays() -> None:
    class Dies(FakeAgent):
        async def get(self, task_id):
            raise AgentFault("nothing answers there", retryable=True)

    agent = Dies(REPORT)
    agent.breaks = [3] + [0] * 100
    turn = await run(agent)
    assert result(turn).startswith("ERROR The task of Weather did not come to an end: nothing answers there")
    assert await texts(turn) == {"report": "# Weather\n"}
    assert agent.cancelled == 1


async def test_a_message_is_sent_again_under_its_id_when_its_answer_was_lost() -> None:
    sent = []

    class Loses(FakeAgent):
        async def send(self, message):
            sent.append(message.message_id)
            async for event in super().send(message):
                if len(sent) > 2:
                    yield event
                else:
                    raise AgentFault("the connection broke", retryable=True)

    turn = await run(Loses(REPORT))
    assert (len(sent), len(set(sent))) == (3, 1)
    assert await texts(turn) == {"report": WRITTEN}


async def test_chunks_that_are_repeated_are_mended_by_the_last_look() -> None:
    class Repeats(FakeAgent):
        async def send(self, message):
            async for event in super().send(message):
                yield event
                if event.HasField("artifact_update"):
                    yield deepcopy(event)

    turn = await run(Repeats(REPORT))
    assert await texts(turn) == {"report": WRITTEN}


# ------------------------------------------------------------------------------ limits


async def test_a_task_that_never_ends_is_cancelled_and_what_it_wrote_stays() -> None:
    class Endless(FakeAgent):
        async def send(self, message):
            async for event in super().send(message):
                yield event
            await asyncio.Event().wait()

    agent = Endless([whole("report", "half")])
    turn = await run(agent, timeout=0.05)
    assert result(turn).startswith("ERROR The task of Weather took longer than 0.05 seconds and was cancelled")
    assert await texts(turn) == {"report": "half"}
    assert agent.cancelled == 1


async def test_an_artifact_that_is_too_large_is_told_and_the_rest_goes_on() -> None:
    turns = [whole("large", "x" * 500), chunk("large", "x" * 501), whole("small", "ok"), completed()]
    turn = await run(FakeAgent(turns), artifact_limits=Limits(artifact_bytes=1_000))
    assert "[Artifact 'large' is not complete:" in result(turn)
    assert {name: len(text) for name, text in (await texts(turn)).items()} == {"large": 500, "small": 2}


async def test_no_more_than_a_hundred_artifacts_are_taken() -> None:
    turn = await run(FakeAgent([*(whole(f"a{number}", "x") for number in range(120)), completed()]))
    assert len(await texts(turn)) == 100
    assert "there are more than 100" in result(turn)


# ------------------------------------------------------------------------------ stopping


@pytest.mark.parametrize(("reason", "cancelled"), [((), 1), ((HANDED_OVER,), 0)])
async def test_its_task_is_cancelled_with_ours_and_not_when_ours_goes_on_elsewhere(reason, cancelled) -> None:
    hold = Hold()

    class Waits(FakeAgent):
        async def send(self, message):
            async for event in super().send(message):
                yield event
            await hold()

    agent = Waits([working("Looking…")])
    running = harness(agent).start()
    await hold.reached.wait()
    running.cancel(*reason)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert agent.cancelled == cancelled


# ------------------------------------------------------------------------------ questions and crashes

CALLS = [answer(text("I book."), call("T1", "ask_weather", {"message": "Book"}, at=1)), answer(text("Booked."))]


def life_of(agent) -> Life:
    return Life(FakeLLM(CALLS), START, tools=(*TOOLS, asking_tool(agent)))


async def test_what_it_asks_is_asked_here_and_the_answer_goes_to_the_same_task() -> None:
    agent = FakeAgent(*TURNS)
    life = life_of(agent)
    await life.run()
    assert (life.record.state, life.record.message.text) == (State.INPUT_REQUIRED, "When?")
    assert life.texts() == {"plan": "Table."}
    life.answer("at eight")
    await life.run()
    assert (life.record.state, life.record.message.text) == (State.AUTH_REQUIRED, "Log in.")
    life.answer("I have")
    await life.run()
    assert life.record.state is State.COMPLETED
    assert life.texts() == {"plan": PLAN}
    [_, second, third] = agent.messages.values()
    assert [(each.task_id, each.parts[0].text) for each in (second, third)] == [
        ("remote", "at eight"),
        ("remote", "I have"),
    ]


async def test_an_agent_that_went_on_by_itself_after_a_login_gets_no_message() -> None:
    agent = FakeAgent([status(pb.TASK_STATE_AUTH_REQUIRED, "Log in."), whole("plan", "Paid."), completed()])
    life = life_of(agent)
    await life.run()
    agent.go_on()
    life.answer("done")
    await life.run()
    assert life.record.state is State.COMPLETED
    assert len(agent.messages) == 1
    assert life.texts() == {"plan": "Paid."}


async def test_what_the_user_changes_while_it_waits_stays_when_the_agent_does_not_change_it() -> None:
    agent = FakeAgent(TURNS[0], [completed()])
    life = life_of(agent)
    await life.run()
    ref = Ref("context", "plan", "the user's", "user")
    await life.store.apply(ref, AppendParts((text_part(" For two."),), done=True))
    await life.store.close(ref)
    life.answer("at eight")
    await life.run()
    assert life.record.state is State.COMPLETED
    assert {name: each.artifact.text for name, each in life.store.documents.items()} == {"plan": "Table. For two."}


@pytest.mark.parametrize("went_on", [False, True], ids=["waits for us", "went on meanwhile"])
async def test_wherever_a_crash_cuts_us_off_its_task_is_followed_on_and_not_begun_again(went_on) -> None:
    agent = FakeAgent(*TURNS)
    first = life_of(agent)

    def resume(life: Life, there: FakeAgent) -> None:
        begun = any(type(item).__name__ == "ToolStep" for item in life.record.transcript)
        life.llm = YieldingModel(FakeLLM(CALLS[1:] if begun else CALLS))
        life.tools = (*TOOLS, asking_tool(there))

    await check_every_cut(first, agent, resume, went_on=went_on)
    assert [message.parts[0].text for message in agent.messages.values()] == ["Book", "at eight", "I have"]
