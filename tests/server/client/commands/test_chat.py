"""`chat`, with lines from a pipe, against the whole application on loopback."""

from __future__ import annotations

import asyncio
import sys
from io import StringIO
from pathlib import Path

import click
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from a2a_canvas.server.client.commands.chat import chat as run_chat
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.commands.cli import cli
from tests.server.app_server import serving
from tests.server.client.client_harness import Result, Screen, typed, unused_url
from tests.server.client.commands.test_tasks import SCRIPT


async def chat(tmp_path: Path, *lines: str) -> Result:
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    async with serving(script, grpc=False) as served:
        served.gate.open()
        return await typed("chat", "--url", served.url, stdin="".join(f"{line}\n" for line in lines))


async def test_lines_are_messages_of_one_conversation_and_commands_are_for_its_newest_artifact(tmp_path: Path) -> None:
    got = await chat(tmp_path, "write", "", "/show", "/versions report", "/quit", "never sent")
    assert got.code == 0
    written, _, commands = got.out.partition("Written.\n")
    assert "# T\n" in written
    assert commands.startswith("# T\n")
    *_, version = commands.splitlines()
    assert (version.split()[:2], version.split()[-1]) == (["*", "1"], "write")


async def test_a_question_is_answered_by_the_next_line(tmp_path: Path) -> None:
    got = await chat(tmp_path, "ask", "red", "/tasks")
    assert got.out.startswith("Which colour?\n")
    [task] = got.out.splitlines()[-1:]
    assert task.split()[1] == "completed"
    assert got.out.count("completed") == 1


async def test_advice_in_a_chat_is_what_can_be_typed_there(tmp_path: Path) -> None:
    got = await chat(tmp_path, "write", "/edit upper case", "/edit 'upper case' --match nothere", "/quit")
    assert got.err.splitlines()[-3:] == [
        "a2a-canvas: Use --lines or --match to select the passage",
        "All of it: type it without /edit",
        'a2a-canvas: "nothere" does not occur in version 1. Copy it from what show prints, or give --lines',
    ]


async def test_what_is_no_command_is_one_line_and_the_conversation_goes_on(tmp_path: Path) -> None:
    got = await chat(tmp_path, "/shwo", "/show nothing", "/edit 'open", "/help", "hello")
    assert got.err.splitlines()[:2] == [
        "a2a-canvas: There is no /shwo; /help lists the commands. Did you mean '/show'?",
        "a2a-canvas: This conversation has no artifacts yet: say what to write, or /put a file",
    ]
    assert "No closing quotation" in got.err
    assert "/undo" in got.out
    assert got.out.endswith("Fine.\n")


async def test_at_a_terminal_it_begins_with_who_answers_and_where(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    async with serving(script, grpc=False) as served:
        err = StringIO()
        invocation = Invocation(served.url, out=StringIO(), err=err)
        await asyncio.to_thread(at_a_terminal, invocation, "quit\r")
    assert err.getvalue() == f"a2a-canvas at {served.url}. /help lists the commands, quit or Ctrl+D ends.\n"


def at_a_terminal(invocation: Invocation, keys: str) -> None:
    with pytest.MonkeyPatch.context() as patch, create_pipe_input() as pipe:
        patch.setattr(sys, "stdin", Screen(tty=True))
        pipe.send_text(keys)
        with create_app_session(input=pipe, output=DummyOutput()), click.Context(cli):
            assert run_chat(invocation, "", go_on=False) == 0


async def test_without_a_server_it_does_not_begin() -> None:
    url = unused_url()
    got = await typed("chat", "--url", url, stdin="hello\n")
    assert (got.code, got.out) == (1, "")
    assert got.err.splitlines() == [
        f"a2a-canvas: No server answers at {url}",
        f"Start one with: a2a-canvas serve --port {url.rpartition(':')[2]}",
        "To use another: --url or $A2A_CANVAS_URL",
    ]


async def test_a_new_conversation_leaves_the_artifacts_of_the_one_before_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("mine\n")
    got = await chat(tmp_path, "write", "/new", "/artifacts", f"/put notes.md {notes}", "/artifacts", "/show notes.md")
    assert "a2a-canvas: This conversation has no artifacts yet: say what to write, or /put a file\n" in got.err
    _, _, commands = got.out.partition("Saved notes.md as version 1.\n")
    assert [line.split()[0] for line in commands.splitlines()] == ["artifact", "notes.md", "mine"]


async def test_the_beginning_of_an_artifact_is_enough(tmp_path: Path) -> None:
    got = await chat(tmp_path, "write", "hello", "/show rep")
    assert got.out.endswith("# T\n"), got.err


async def test_a_file_that_is_not_there_begins_no_conversation(tmp_path: Path) -> None:
    got = await chat(tmp_path, "/put nothing.md", "/show", "write")
    assert "This conversation has no artifacts yet" in got.err
    assert "# T\n" in got.out


@pytest.mark.parametrize("word", ["quit", "exit", "/quit", "/exit"])
async def test_the_words_that_end_other_programs_end_it(tmp_path: Path, word: str) -> None:
    got = await chat(tmp_path, word, "hello")
    assert (got.code, got.out) == (0, "")
