"""What an agent's own loop does with comments and suggestions."""

import pytest

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.store.annotations.annotation import AGENT
from a2a_canvas.store.models import Ref
from a2a_canvas.tools.annotations.listed_annotation import ListedAnnotation, ListedRemark
from a2a_canvas.tools.functions.results import ToolError
from tests.server.agent.loops.agent_life import AgentLife, ended

TEXT = "One two.\nThree four.\n"


async def take_part(turn: Turn) -> None:
    async def write() -> None:
        await turn.artifact("doc").append(TEXT)

    await turn.once("write", write)
    await turn.artifact("doc").edit("One", "1")
    number = await turn.comment("doc", "Three", "Needs a source.")
    await turn.reply("doc", number, "Found one.")
    await turn.suggest("doc", "four", "4", "A number.")
    await turn.resolve("doc", number)
    await turn.say("Done.")


async def stored(life: AgentLife) -> list[tuple]:
    found = await life.annotations.list("context", "doc")
    return [(each.number, each.kind, each.state, [remark.text for remark in each.thread]) for each in found]


MADE = [
    (1, "comment", "resolved", ["Needs a source.", "Found one."]),
    (2, "suggestion", "open", ["A number."]),
]


async def test_it_comments_replies_suggests_and_resolves_as_the_agent() -> None:
    life = await ended(take_part)
    assert await stored(life) == MADE
    found = await life.annotations.list("context", "doc")
    assert {each.writer for each in found} == {AGENT}
    assert (found[1].replacement, found[1].quote.exact) == ("4", "four")
    assert life.reply == "Done."


async def test_wherever_it_is_cut_off_nothing_is_made_twice() -> None:
    life = AgentLife(take_part)
    cuts = await life.run_to_end()
    assert len(cuts) > 5
    for _, cut in cuts:
        late = life.crash(cut)
        await late.run_to_end()
        assert await stored(late) == MADE
        assert (late.record.state, late.reply) == (State.COMPLETED, "Done.")


async def test_it_reads_the_annotations_with_their_lines() -> None:
    listed: list[ListedAnnotation] = []

    async def agent(turn: Turn) -> None:
        await turn.artifact("doc").append(TEXT)
        await turn.comment("doc", "Three", "Why?")
        await turn.artifact("doc").edit("One two.\n", "")
        listed.extend(await turn.comments("doc"))

    await ended(agent)
    thread = (ListedRemark("agent", "", "Why?"),)
    assert listed == [ListedAnnotation(1, "comment", "open", "agent", "", (1, 1), "Three", None, thread)]


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda turn: turn.comment("doc", "o", "?"), "quote occurs 2 times"),
        (lambda turn: turn.comment("doc", "", "?"), "quote must not be empty"),
        (lambda turn: turn.comment("gone", "x", "?"), "gone"),
        (lambda turn: turn.suggest("doc", "x", "y"), "old_text does not occur"),
        (lambda turn: turn.reply("doc", 1, "?"), "no comments"),
        (lambda turn: turn.comments("gone"), "gone"),
    ],
)
async def test_what_cannot_be_is_a_tool_error_and_changes_nothing(act, says) -> None:
    async def agent(turn: Turn) -> None:
        await turn.artifact("doc").append(TEXT)
        with pytest.raises(ToolError, match=says):
            await act(turn)

    life = await ended(agent)
    assert life.record.state is State.COMPLETED
    assert await stored(life) == []


async def test_within_a_step_it_is_an_error() -> None:
    async def agent(turn: Turn) -> None:
        await turn.artifact("doc").append(TEXT)
        with pytest.raises(RuntimeError, match="comment was called in the step 'step'"):
            await turn.once("step", lambda: turn.comment("doc", "Three", "?"))

    assert (await ended(agent)).record.state is State.COMPLETED


# -------------------------------------------------------- agents suggest, people decide


async def change(turn: Turn) -> None:
    doc = turn.artifact("doc")

    async def extend() -> None:
        await doc.append("Five")
        await doc.append(" six.\n")

    await doc.edit("One", "1")
    await turn.once("extend", extend)
    await turn.artifact("new").append("New.")
    await doc.append("Seven.\n")
    await turn.say("Done.")


async def test_wherever_a_function_is_cut_off_that_suggests_its_changes_nothing_is_lost_or_made_twice() -> None:
    before = await ended(write_doc)
    life = AgentLife(change, before.store.documents)
    life.suggests = True
    cuts = await life.run_to_end()
    for _, cut in [(life, None), *cuts]:
        late = life.crash(cut) if cut else life
        late.suggests = True
        await late.run_to_end()
        found = await late.annotations.list("context", "doc")
        assert [(each.quote.exact, each.replacement) for each in found] == [
            ("One", "1"),
            ("", "Five six.\nSeven.\n"),
        ]
        assert (await late.store.get(late_ref("doc"))).text == TEXT
        assert (await late.store.get(late_ref("new"))).version == 1


async def write_doc(turn: Turn) -> None:
    await turn.artifact("doc").append(TEXT)


def late_ref(artifact_id: str) -> Ref:
    return Ref("context", artifact_id, "task")
