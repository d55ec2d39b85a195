"""The answers and calls of an agent's own model: how they stream, and what is left wherever a crash cuts them off."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from a2a_canvas.server.agent.events import (
    ArtifactChanged,
    State,
    ToolFailed,
    ToolInputAdded,
    ToolSucceeded,
    ToolUseStarted,
)
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.tools.functions.results import ToolError
from a2a_canvas.tools.tool import Done
from tests.server.agent.loops.agent_life import AgentLife, ended


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    input: dict


@dataclass(frozen=True)
class Reply:
    text: str = ""
    calls: tuple[Call, ...] = ()


def update(call_id: str, text: str, artifact_id: str = "report", **fields) -> Call:
    artifact = {"artifact_id": artifact_id, "name": f"{artifact_id}.md", "parts": [{"kind": "text", "text": text}]}
    return Call(call_id, "artifact_update", {"append": True, "artifact": artifact, **fields})


@dataclass
class Framework:
    """A loop of rounds: its model answers by how many rounds there were, its tools run one after the other.

    Attributes:
        asked: the rounds that its model was asked for.
        ran: the calls that its own tools carried out.
    """

    replies: Sequence[Reply]
    asked: list[int] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)

    async def agent(self, turn: Turn) -> None:
        await self.run_as(turn, "model")

    async def run_as(self, turn: Turn, name: str) -> None:
        for number, reply in enumerate(self.replies):
            await turn.model.respond(name, lambda number=number, reply=reply: self._stream(turn, number, reply))
            for call in reply.calls:
                self.read.append(await self._run(turn, call))

    async def _stream(self, turn: Turn, number: int, reply: Reply) -> dict:
        self.asked.append(number)
        for word in reply.text.split(" ") if reply.text else ():
            await turn.stream(f"{word} ")
            await asyncio.sleep(0)
        for call in reply.calls:
            await turn.model.begin_call(call.id, call.name)
            text = json.dumps(call.input)
            for at in range(0, len(text), 7):
                await turn.model.add_input(call.id, text[at : at + 7])
                await asyncio.sleep(0)
            await turn.model.end_call(call.id)
        return {"text": reply.text}

    async def _run(self, turn: Turn, call: Call) -> str:
        if call.name.startswith("artifact_"):
            return await turn.model.run_artifact_call(call.id, call.name, call.input)

        async def run() -> str:
            self.ran.append(call.id)
            if call.name == "broken":
                raise ToolError("The port is closed.")
            return f"{call.name} of {call.input}"

        try:
            return await turn.model.run_call(call.id, call.name, call.input, run)
        except ToolError as error:
            return f"failed: {error}"


SCRIPT = [
    Reply("I write it.", (update("u1", "# Tides\n"), update("u2", "notes", "notes"))),
    Reply("", (Call("s1", "search", {"query": "tides"}), update("u3", "high and low", last_chunk=True))),
    Reply(
        "Now an edit.",
        (Call("e1", "artifact_edit", {"artifact_id": "report", "old_text": "high", "new_text": "HIGH"}),),
    ),
    Reply("", (Call("b1", "broken", {}), Call("r1", "artifact_read", {"artifact_id": "report"}))),
    Reply("All is written."),
]
TEXTS = {"report": "# Tides\nHIGH and low", "notes": "notes"}
SAID = ["I write it.", "Now an edit.", "All is written."]


async def test_an_artifact_grows_while_the_model_writes_the_call() -> None:
    framework = Framework([Reply("", (update("u1", "word " * 20),)), Reply("Done.")])
    life = await ended(framework.agent)
    kinds = [type(event) for event in life.told.events]
    grown = [n for n, kind in enumerate(kinds) if kind is ArtifactChanged]
    written = [n for n, kind in enumerate(kinds) if kind is ToolInputAdded]
    assert len(grown) > 5
    assert grown[3] < written[-1]
    assert life.texts() == {"report": "word " * 20}
    assert life.record.artifacts["report"].closed == 1


async def test_clients_see_the_calls_and_results_of_a_model() -> None:
    framework = Framework(SCRIPT)
    life = await ended(framework.agent)
    assert (life.record.state, life.reply, life.said) == (State.COMPLETED, "All is written.", SAID)
    assert life.texts() == TEXTS
    begun = [(event.tool_use_id, event.name) for event in life.told.of(ToolUseStarted)]
    assert begun == [(call.id, call.name) for reply in SCRIPT for call in reply.calls]
    assert [event.tool_use_id for event in life.told.of(ToolSucceeded)] == ["u1", "u2", "s1", "u3", "e1", "r1"]
    assert [(event.tool_use_id, event.error) for event in life.told.of(ToolFailed)] == [("b1", "The port is closed.")]


@pytest.mark.parametrize("name", ["call s1", "#call s1", "begin s1", "#begin s1"])
async def test_a_step_of_the_function_is_none_of_a_call(name) -> None:
    async def returned(value: str) -> str:
        return value

    async def agent(turn: Turn) -> None:
        kept = await turn.once(name, lambda: returned("kept"))
        found = await turn.model.run_call("s1", "search", {}, lambda: returned("found"))
        await turn.say(f"{kept} and {found}, {await turn.once(name, lambda: returned('again'))}")

    life = await ended(agent)
    assert life.reply == "kept and found, again"


async def test_two_calls_of_one_answer_may_write_the_same_artifact() -> None:
    framework = Framework([Reply("", (update("u1", "a"), update("u2", "b"))), Reply("Done.")])
    assert (await ended(framework.agent)).texts() == {"report": "ab"}


async def test_a_call_that_is_not_run_is_undone() -> None:
    async def agent(turn: Turn) -> None:
        await turn.artifact("report").append("kept ")
        call = update("u1", "lost")

        async def answer() -> None:
            await turn.model.begin_call(call.id, call.name)
            await turn.model.add_input(call.id, json.dumps(call.input))

        await turn.model.respond("model", answer)
        await turn.model.fail_call(call.id, call.name, call.input, "Not now.")
        await turn.say("Done.")

    life = await ended(agent)
    assert life.texts() == {"report": "kept "}
    assert [event.error for event in life.told.of(ToolFailed)] == ["Not now."]


async def test_a_call_that_did_not_stream_is_shown_when_it_runs() -> None:
    async def agent(turn: Turn) -> None:
        call = update("u1", "whole")
        await turn.model.run_artifact_call(call.id, call.name, call.input)
        await turn.say("Done.")

    life = await ended(agent)
    assert life.texts() == {"report": "whole"}
    assert [event.tool_use_id for event in life.told.of(ToolUseStarted)] == ["u1"]


async def test_an_answer_that_fails_takes_back_what_it_showed() -> None:
    async def agent(turn: Turn) -> None:
        async def answer() -> None:
            await turn.stream("Half an ans")
            raise ConnectionError

        with pytest.raises(ConnectionError):
            await turn.model.respond("model", answer)
        await turn.say("Whole.")

    life = await ended(agent)
    assert life.said == ["Whole."]


async def every_cut(life: AgentLife) -> list:
    return [(life, cut) for cut in await life.run()]


@pytest.mark.parametrize("frame", [0.0, 3600.0])
async def test_wherever_a_crash_cuts_it_off_no_recorded_answer_or_call_is_made_again(
    frame: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AgentLife, "frame", frame)
    whole = Framework(SCRIPT)
    cuts = await every_cut(AgentLife(whole.agent))
    resumed = 0
    for interrupted, cut in cuts:
        framework = Framework(SCRIPT)
        life = AgentLife(framework.agent, cut.documents)
        life.told.events = interrupted.told.events[: cut.told]
        if life.record.state.terminal:
            continue
        kept = {item.name for item in life.record.transcript if getattr(item, "kind", "") == "kept"}
        resumed += 1
        await life.run()
        life.check()
        assert (life.record.state, life.texts(), life.said) == (State.COMPLETED, TEXTS, SAID)
        assert framework.read == whole.read
        rounds = ["model", *(f"model#{number}" for number in range(2, len(SCRIPT) + 1))]
        assert framework.asked == [number for number, step in enumerate(rounds) if step not in kept]
        assert framework.ran == [call_id for call_id in ("s1", "b1") if f"#call {call_id}" not in kept]
    assert resumed > 50


@dataclass
class Graph:
    """A framework with checkpoints of its own: it continues after the newest one, and runs its units once.

    Attributes:
        units: what each says, the calls that it makes, and what it appends to an artifact.
        ran: the units that it has run.
    """

    units: Mapping[str, tuple[str, tuple[Call, ...], str]]
    ran: list[str] = field(default_factory=list)

    async def agent(self, turn: Turn) -> None:
        ended = turn.model.resume()
        assert all(value == f"rows of {key}" for key, value in ended.items())
        for key in [each for each in self.units if each not in ended]:
            self.ran.append(key)
            await self._run(turn, key)

    async def _run(self, turn: Turn, key: str) -> None:
        text, calls, written = self.units[key]
        with turn.model.within(key):
            for word in text.split(" ") if text else ():
                await turn.stream(f"{word} ")
                await asyncio.sleep(0)
            if written:
                await turn.artifact("report").append(written)
            for each in calls:
                await turn.model.begin_call(each.id, each.name)
                await turn.model.add_input(each.id, json.dumps(each.input))

        async def rows() -> str:
            await asyncio.sleep(0)
            return f"rows of {key}"

        results = [(each.id, Done("hits")) for called in self.units.values() for each in called[1] if key == "search"]
        await turn.model.checkpoint(key, rows, calls=[each.id for each in calls], results=results)


UNITS = {
    "plan": ("I look for it.", (Call("s1", "search", {"query": "tides"}),), ""),
    "search": ("", (), "# Tides\n"),
    "write": ("", (), "High."),
    "tell": ("All is written.", (), ""),
}


async def test_wherever_a_crash_cuts_it_off_a_framework_with_checkpoints_continues_after_the_newest_one() -> None:
    whole = AgentLife(Graph(UNITS).agent)
    cuts = await every_cut(whole)
    whole.check()
    assert (whole.said, whole.texts()) == (["I look for it.", "All is written."], {"report": "# Tides\nHigh."})
    assert [(event.tool_use_id, event.content) for event in whole.told.of(ToolSucceeded)] == [("s1", "hits")]
    resumed = 0
    for interrupted, cut in cuts:
        graph = Graph(UNITS)
        life = AgentLife(graph.agent, cut.documents)
        life.told.events = interrupted.told.events[: cut.told]
        if life.record.state.terminal:
            continue
        kept = {item.name for item in life.record.transcript if getattr(item, "kind", "") == "kept"}
        resumed += 1
        await life.run()
        life.check()
        assert (life.record.state, life.texts(), life.said) == (State.COMPLETED, whole.texts(), whole.said)
        assert graph.ran == [unit for unit in UNITS if f"#checkpoint {unit}" not in kept]
        assert [event.tool_use_id for event in life.told.of(ToolSucceeded)] == ["s1"]
    assert resumed > 10
