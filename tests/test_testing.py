"""`a2a_canvas.testing`: what a test of an agent can do and see."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from a2a_canvas import File, ToolError, Turn
from a2a_canvas import agent as mark
from a2a_canvas.testing import agent


async def writes(turn: Turn) -> None:
    await turn.progress("Writing tides.md…")
    await turn.artifact("tides").append("The tide is high.\n", name="tides.md")
    await turn.say(f"Written for {turn.caller}: {turn.text}")


def test_a_loop_is_tested_and_its_document_edited_and_undone() -> None:
    with agent(loop=writes, model="rehearsal") as it:
        answer = it.send("tides")
        assert (answer.state, answer.artifacts) == ("completed", {"tides": "The tide is high.\n"})
        assert "Writing tides.md…" in answer.statuses
        edited = it.edit("tides", "upper case", "high")
        assert edited.artifacts == {"tides": "The tide is HIGH.\n"}
        assert it.versions("tides") == ("The tide is high.\n", "The tide is HIGH.\n")
        assert it.undo("tides").artifacts == {"tides": "The tide is high.\n"}
        assert it.versions("tides") == ("The tide is high.\n",)
        with pytest.raises(ValueError, match="contains the passage 0 times"):
            it.edit("tides", "shorter", "low")


def test_edits_are_off_as_when_it_is_served_unless_the_loop_or_a_model_answers_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")  # a test calls no provider
    with agent(loop=writes) as it:
        it.send("tides")
        with pytest.raises(RuntimeError, match="Edits of a selection are off"):
            it.edit("tides", "upper case", "high")

    editing = mark(writes)

    @editing.edit
    async def edit(turn: Turn) -> str:
        return turn.edit.passage[::-1]

    with agent(loop=editing) as it:
        it.send("tides")
        assert it.edit("tides", "backwards", "high").artifacts == {"tides": "The tide is hgih.\n"}


def test_the_results_of_a_loops_tools_are_those_that_clients_see() -> None:
    async def calls(turn: Turn) -> None:
        for name in ("read", "fail"):
            with suppress(ToolError):
                async with turn.tool(name, {}) as call:
                    if name == "fail":
                        raise ToolError("There is no tide.")
                    await call.run(read)

    async def read() -> list[float]:
        return [5.9, 1.2]

    with agent(loop=calls) as it:
        assert it.send("tides").tool_results == ("[5.9, 1.2]", "There is no tide.")
        assert it.send("again").tool_results == ("[5.9, 1.2]", "There is no tide.")


def test_files_are_sent_and_received() -> None:
    async def copies(turn: Turn):
        yield File("copy.bin", content=b"\x00\x01")
        yield f"Copied {[each.name for each in turn.message.files]}."

    with agent(loop=copies) as it:
        answer = it.send("copy", files={"map.png": b"\x89PNG"})
    assert answer.text == "Copied ['map.png']."
    assert answer.files == {"copy.bin": b"\x00\x01"}


def test_a_task_is_cancelled() -> None:
    async def waits(turn: Turn) -> None:
        from asyncio import Event

        await Event().wait()

    with agent(loop=waits) as it:
        begun = it.begin("wait")
        assert begun.state in ("submitted", "working")
        assert it.cancel(begun).state == "canceled"


def test_users_have_conversations_of_their_own_and_share_them() -> None:
    with agent(loop=writes, model="rehearsal", users=("ann", "bob")) as it:
        it.send("tides")
        assert it.as_user("bob").http.get("/artifacts").json()["contexts"] == []
        it.http.post(f"/artifacts/{it.context_id}/shares", json={"user": "bob", "level": "edit"}).raise_for_status()
        shared = it.as_user("bob", it.context_id)
        assert shared.versions("tides") == ("The tide is high.\n",)
        assert shared.edit("tides", "upper case", "high").state == "completed"
        listed = it.http.get(f"/artifacts/{it.context_id}/tides/versions").json()["versions"]
        assert [each["by"] for each in listed] == ["ann", "bob"]


def test_a_refused_request_says_why(tmp_path: Path) -> None:
    with agent() as it, pytest.raises(RuntimeError, match="The server refused the"):
        it.undo("nothing")
