"""A task of another server is followed to its end: what an event means, when to try again, and that nothing is lost."""

from __future__ import annotations

from itertools import repeat

import pytest
from a2a.types import a2a_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.a2a_client.agent_fault import AgentFault
from a2a_canvas.server.a2a_client.follower import NEWS, Follower, Persistence, Tries, is_over
from tests.server.tool_sources.remote_agents.fake_agent import (
    LOST,
    FakeAgent,
    asks,
    chunk,
    completed,
    fold_event,
    status,
    whole,
    working,
)

PATIENT = Persistence(delays=(0.5, 1.0), polls=(0.1, 0.2))


@pytest.mark.parametrize(
    ("tries", "pause"),
    [
        (Tries(), 0.1),
        (Tries().after_answer(), 0.1),
        (Tries(quiet=5).after_answer(), 0.2),
        (Tries(quiet=5).after_loss(), 0.5),
        (Tries(lost=1).after_loss(), 1.0),
        (Tries(lost=2).after_loss(), None),
        (Tries(lost=2).after_answer(), 0.1),
        (NEWS, 0.5),
    ],
)
def test_tries_are_further_apart_until_one_succeeds_or_the_server_is_given_up(tries, pause) -> None:
    assert tries.pause(PATIENT) == pause


@pytest.mark.parametrize(
    ("event", "over"),
    [
        (working("Hm…"), False),
        (whole("report", "Rain."), False),
        (completed(), True),
        (status(pb.TASK_STATE_REJECTED), True),
        (asks("When?"), True),
        (status(pb.TASK_STATE_INPUT_REQUIRED, "When?", "answered"), False),
        (status(pb.TASK_STATE_INPUT_REQUIRED), True),
        (pb.StreamResponse(message=pb.Message()), True),
        (pb.StreamResponse(task=pb.Task(status=completed().status_update.status)), True),
    ],
)
def test_a_task_is_over_when_it_has_ended_or_asks_something_that_has_no_answer_yet(event, over) -> None:
    assert is_over(event, answered="answered") == over


async def follow(agent, persistence, meanwhile=()) -> pb.Task:
    """The folded task of an agent that says so many things while nobody listens."""
    task, missed = pb.Task(), iter(meanwhile)

    async def take(event: pb.StreamResponse) -> None:
        fold_event(task, event)

    async def wait(seconds: float, lost: int) -> None:
        agent.go_on(next(missed, 0))

    await Follower(agent, take, wait, persistence).run(pb.Message(message_id="m"))
    return task


IDS, TEXTS = st.sampled_from("ab"), st.sampled_from(["one ", "two ", ""])
EVENTS = st.one_of(
    st.builds(whole, IDS, TEXTS), st.builds(chunk, IDS, TEXTS), st.builds(working, st.sampled_from(["Hm…", "So…"]))
)
COUNTS = st.lists(st.integers(0, 4), max_size=6)


@given(events=st.lists(EVENTS, max_size=8), breaks=COUNTS, meanwhile=COUNTS, flags=st.tuples(*repeat(st.booleans(), 2)))
async def test_wherever_streams_are_cut_the_folded_task_is_that_of_an_uncut_one(events, breaks, meanwhile, flags):
    confirms, streams = flags
    turn = [whole("a"), whole("b"), *events, completed()]
    uncut, cut = FakeAgent(turn), FakeAgent(turn)
    cut.breaks, cut.streams = breaks, streams
    persistence = Persistence((0.0,) * 9, (0.0,) * 9, resends=9, confirms=confirms)
    assert await follow(cut, persistence, meanwhile) == await follow(uncut, persistence)
    assert len(cut.messages) == 1


async def test_a_task_that_is_not_streamed_is_polled_which_is_no_lost_connection() -> None:
    class Streamless(FakeAgent):
        async def subscribe(self, task_id):
            if self.breaks:
                async for event in super().subscribe(task_id):
                    yield event
            self.streams = False
            raise AgentFault("it refuses", streamless=True)

    agent = Streamless([working("Hm…"), *(chunk("a", text, append=False) for text in "bcd"), completed()])
    agent.breaks = [1]
    task = await follow(agent, Persistence((0.0,), (0.0,)))
    assert (task.status.state, task.artifacts[0].parts[0].text) == (pb.TASK_STATE_COMPLETED, "d")


async def test_an_end_that_looks_never_show_is_believed() -> None:
    class Behind(FakeAgent):
        looks = 0

        async def get(self, task_id):
            self.looks += 1
            return pb.Task(status=working("Hm…").status_update.status)

    agent = Behind([completed()])
    task = await follow(agent, Persistence((), (0.0, 0.0), confirms=True))
    assert (task.status.state, agent.looks) == (pb.TASK_STATE_COMPLETED, 3)


@pytest.mark.parametrize("fault", [LOST, AgentFault("it refuses")])
async def test_a_message_is_not_sent_again_to_a_server_that_may_have_it(fault) -> None:
    class Away(FakeAgent):
        sent = 0

        async def send(self, message):
            self.sent += 1
            raise fault
            yield

    agent = Away()
    with pytest.raises(AgentFault, match=str(fault)):
        await follow(agent, Persistence((0.0,), (0.0,)))
    assert agent.sent == 1


async def test_a_stream_that_answers_a_question_with_the_next_one_alone_is_over() -> None:
    class Asking(FakeAgent):
        async def send(self, message):
            yield pb.StreamResponse(task=pb.Task(id=message.task_id, status=asks("And when?").status_update.status))

    async def take(event: pb.StreamResponse) -> None: ...

    async def wait(seconds: float, lost: int) -> None:
        pytest.fail("the connection was not lost")

    await Follower(Asking([]), take, wait, PATIENT).run(pb.Message(message_id="m", task_id="t"))
