"""An A2A agent as the loop: what clients see of its tasks, what it is sent, and what each kind of break leaves."""

import asyncio

import pytest
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.agent.events import ArtifactChanged, State, ToolStep, TranscriptAppended
from a2a_canvas.server.agent.loops.agent_function import AgentDefinitionError, AgentFunction
from a2a_canvas.server.agent.loops.conversation import Message
from a2a_canvas.server.tool_sources.a2a_agents.a2a_loop import a2a_agent, answer, message_parts
from a2a_canvas.server.tool_sources.a2a_agents.agent_conversation import Conversations
from a2a_canvas.server.tool_sources.remote_agents.remote_agent import RemoteAgent
from a2a_canvas.store.models import Limits
from a2a_canvas.tools.functions.results import RESULT_LIMIT, File
from a2a_canvas.tools.functions.running import HANDED_OVER
from tests.fakes import Hold, said
from tests.server.agent.loops.agent_life import AgentLife
from tests.server.agent.turn.cut_harness import WaitingStore
from tests.server.tool_sources.remote_agents.fake_agent import (
    ANSWERS,
    PLAN,
    REPORT,
    TURNS,
    WRITTEN,
    FakeAgent,
    check_every_cut,
    chunk,
    completed,
    no_time,
    status,
    whole,
    working,
)


def loop_of(agent, timeout: float = 600) -> AgentFunction:
    remote = RemoteAgent("weather", "Weather", "http://weather.example", agent, timeout, no_time)

    conversations = Conversations()

    async def run(turn) -> None:
        async with conversations.open(turn, remote.url) as conversation:
            await answer(remote, turn, conversation)

    return AgentFunction("Weather", run, abandon=remote.cancel_recorded)


async def ended(agent, **options) -> AgentLife:
    life = AgentLife(loop_of(agent, **options))
    await life.run()
    return life


async def test_its_status_is_our_progress_its_artifacts_grow_here_and_its_last_message_is_the_reply() -> None:
    life = await ended(FakeAgent(REPORT))
    assert "Looking at the sky…" in life.told.tool_labels
    changes = [(event.append, event.last_chunk) for event in life.told.of(ArtifactChanged)]
    assert changes == [(False, False), (True, False), (True, False), (True, True)]
    assert (life.record.state, life.reply, life.texts()) == (State.COMPLETED, "It rains.", {"report": WRITTEN})


async def test_an_artifact_that_is_sent_whole_again_replaces_the_first() -> None:
    life = await ended(
        FakeAgent([whole("report", "Sun."), chunk("report", "?"), whole("report", "Rain."), completed()])
    )
    assert life.texts() == {"report": "Rain."}


async def test_an_artifact_without_a_name_is_called_by_its_heading_or_the_agent() -> None:
    ids = [f"{number}{'0' * 31}" for number in range(2)]
    life = await ended(FakeAgent([whole(ids[0], "# Tide pools\nHigh."), whole(ids[1], "Low."), completed()]))
    names = {each.artifact.name for each in life.store.documents.values()}
    assert names == {"tide-pools.md", "Weather"}


async def test_a_message_instead_of_a_task_is_the_reply_and_its_files_are_artifacts() -> None:
    class Replies(FakeAgent):
        async def send(self, message):
            reply = pb.StreamResponse()
            reply.message.parts.add(text="Rain.")
            reply.message.parts.add(raw=b"sky", filename="sky.bin")
            yield reply

    life = await ended(Replies())
    assert (life.record.state, life.reply) == (State.COMPLETED, "Rain.")
    [file] = life.store.documents["sky.bin"].artifact.parts
    assert (file.content, file.name) == (b"sky", "sky.bin")


async def test_a_reply_that_is_too_long_is_a_document() -> None:
    text = "# Tide pools\n" + "x" * RESULT_LIMIT
    life = await ended(FakeAgent([completed(text)]))
    assert life.texts() == {"tide-pools.md": text}
    assert life.reply == "The answer is in the document tide-pools.md."


@pytest.mark.parametrize(
    ("state", "here", "default"),
    [
        (pb.TASK_STATE_FAILED, State.FAILED, "The agent's task failed."),
        (pb.TASK_STATE_REJECTED, State.REJECTED, "The agent rejected this request."),
        (pb.TASK_STATE_CANCELED, State.CANCELED, "The agent cancelled its task."),
    ],
)
@pytest.mark.parametrize("text", ["No sky.", ""])
async def test_our_task_ends_as_its_task_and_what_it_has_written_stays(state, here, default, text) -> None:
    life = await ended(FakeAgent([whole("report", "half"), status(state, text)]))
    assert (life.record.state, life.reply, life.texts()) == (here, text or default, {"report": "half"})


async def test_an_artifact_that_is_too_large_is_told_and_the_rest_goes_on() -> None:
    events = [whole("large", "x" * 500), chunk("large", "x" * 501), whole("small", "ok"), completed("Written.")]
    life = AgentLife(loop_of(FakeAgent(events)))
    life.store = WaitingStore(Limits(artifact_bytes=1_000))
    await life.run()
    assert life.reply.startswith("The document 'large' is not complete: ")
    assert life.reply.endswith("Written.")
    assert {name: len(text) for name, text in life.texts().items()} == {"large": 500, "small": 2}


async def test_a_task_that_never_ends_is_cancelled_and_what_it_wrote_stays() -> None:
    class Endless(FakeAgent):
        async def send(self, message):
            async for event in super().send(message):
                yield event
            await asyncio.Event().wait()

    agent = Endless([whole("report", "half")])
    life = await ended(agent, timeout=0.05)
    assert (life.record.state, life.texts(), agent.cancelled) == (State.FAILED, {"report": "half"}, 1)
    assert life.reply == "The agent's task took longer than 0.05 seconds and was cancelled."


# ------------------------------------------------------------------------------ what it is sent


def test_it_is_sent_text_files_and_data_and_no_metadata() -> None:
    files = File("sky.png", "image/png", b"png"), File("sky", "", url="https://sky.example")
    parts = message_parts(Message("user", "Look", files, ({"rain": 3},), {"secret": 1}, "m-1", "ann"))
    assert [part.WhichOneof("content") for part in parts] == ["text", "raw", "url", "data"]
    assert (parts[0].text, parts[1].raw, parts[2].url) == ("Look", b"png", "https://sky.example")
    assert dict(parts[3].data.struct_value) == {"rain": 3}
    assert not any(part.HasField("metadata") for part in parts)


async def test_neither_the_clients_ids_nor_the_context_key_leave_the_server() -> None:
    agent = FakeAgent(REPORT)
    await ended(agent)
    [message] = agent.messages.values()
    assert not message.context_id
    assert not message.task_id
    assert message.message_id not in ("m-1", "task", "context")


async def test_a_second_message_of_the_same_task_continues_its_conversation() -> None:
    class Interrupted(FakeAgent):
        async def send(self, message):
            if not self.messages:
                life.send(pending)
            async for event in super().send(message):
                yield event

    pending = said("m-2", "And now?")
    agent = Interrupted([completed("It rains.")], [completed("It does not.")])
    life = AgentLife(loop_of(agent))
    await life.run()
    assert [(each.parts[0].text, each.context_id) for each in agent.messages.values()] == [
        ("Go", ""),
        ("And now?", "there"),
    ]
    assert life.reply == "It does not."


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
    running = asyncio.create_task(AgentLife(loop_of(agent)).run())
    await hold.reached.wait()
    running.cancel(*reason)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert agent.cancelled == cancelled


async def test_its_task_is_cancelled_when_a_limit_ends_ours_while_it_waits() -> None:
    agent = FakeAgent(TURNS[0])
    life = await ended(agent)
    life.answer("at eight")
    life.stop = "The tokens of today are used up."
    await life.run()
    assert (life.record.state, life.reply, agent.cancelled) == (State.FAILED, life.stop, 1)


# ------------------------------------------------------------------------------ questions and crashes


async def test_what_it_asks_is_asked_here_and_the_answer_goes_to_the_same_task() -> None:
    agent = FakeAgent(*TURNS)
    life = await ended(agent)
    assert (life.record.state, life.reply) == (State.INPUT_REQUIRED, "When?")
    assert life.texts() == {"plan": "Table."}
    life.answer("at eight")
    await life.run()
    assert (life.record.state, life.reply) == (State.AUTH_REQUIRED, "Log in.")
    life.answer("I have")
    await life.run()
    assert (life.record.state, life.reply, life.texts()) == (State.COMPLETED, "Booked.", {"plan": PLAN})
    sent = [(each.task_id, each.parts[0].text) for each in agent.messages.values()]
    assert sent == [("", "Go"), ("remote", "at eight"), ("remote", "I have")]


async def test_the_answer_to_a_login_goes_to_the_agent_and_is_not_recorded_here() -> None:
    agent = FakeAgent([status(pb.TASK_STATE_AUTH_REQUIRED, "Log in.")], [completed("Booked.")])
    life = await ended(agent)
    life.answer("password 1")
    await life.run()
    assert (life.record.state, life.reply) == (State.COMPLETED, "Booked.")
    assert [each.parts[0].text for each in agent.messages.values()] == ["Go", "password 1"]
    assert "password 1" not in f"{life.record}{life.told.events}"


async def test_its_id_is_recorded_before_a_message_is_sent() -> None:
    recorded = []

    class Noting(FakeAgent):
        async def send(self, message):
            steps = [item for event in life.told.of(TranscriptAppended) for item in event.items]
            recorded.append(any(message.message_id in item.value for item in steps if isinstance(item, ToolStep)))
            async for event in super().send(message):
                yield event

    life = AgentLife(loop_of(Noting(*TURNS)))
    await life.run_to_end(ANSWERS)
    assert recorded == [True] * 3


@pytest.mark.parametrize("went_on", [False, True], ids=["waits for us", "went on meanwhile"])
async def test_wherever_a_crash_cuts_us_off_its_task_is_followed_on_and_not_begun_again(went_on) -> None:
    agent = FakeAgent(*TURNS)
    first = AgentLife(loop_of(agent))

    def resume(life: AgentLife, there: FakeAgent) -> None:
        life.agent = loop_of(there)

    await check_every_cut(first, agent, resume, went_on=went_on)
    assert [message.parts[0].text for message in agent.messages.values()] == ["Go", "at eight", "I have"]


def test_a_url_that_cannot_be_used_is_a_sentence() -> None:
    with pytest.raises(AgentDefinitionError, match="a2a:http://HOST:PORT"):
        a2a_agent("reef")
