"""What a person at the terminal sees of a call that waits for approval, and how it is answered."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import ParseDict
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from a2a_canvas.server.client.commands.send import send
from a2a_canvas.server.client.conversation.invocation import Invocation, await_command
from a2a_canvas.server.client.screen.fold import AskedCall, approval_calls
from a2a_canvas.server.wire import CANVAS
from tests.server.app_server import Served, serving
from tests.server.client.client_harness import Result, Screen, typed

TOOLS = '''
from a2a_canvas import tool


@tool(approval="ask")
async def delete_file(path: str, reason: str = "") -> str:
    """Deletes a file."""
    return "gone"


@tool(approval="ask")
async def restore(version: int, ranges: list[int]) -> str:
    """Restores a version."""
    return "restored"
'''
SCRIPT = r"""
rules:
  - match: {text: '^odd$'}
    rounds:
      - tools: [{name: delete_file, input: {path: "a\u001b[2J\u202eb\nc"}}]
      - {text: "Settled."}
  - match: {text: '^numbers$'}
    rounds:
      - tools: [{name: restore, input: {version: 1, ranges: [2, 30]}}]
      - {text: "Settled."}
  - match: {text: '.'}
    rounds:
      - tools: [{name: delete_file, input: {path: "a.txt", reason: "It is old."}}]
      - {text: "Settled."}
"""
ASKED = """\
The agent asks whether it may run:
  delete_file
    path: a.txt
    reason: It is old.
"""


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    script, tools = tmp_path / "script.yaml", tmp_path / "tools.py"
    script.write_text(SCRIPT)
    tools.write_text(TOOLS)
    async with serving(script, tools=(tools,), grpc=False) as served:
        served.gate.open()
        yield served


def ran(served: Served) -> bool:
    return "content='gone'" in str(served.model.requests[-1].messages)


@contextmanager
def keys(typed: str) -> Iterator[None]:
    """Somebody sits at a terminal and types."""
    with pytest.MonkeyPatch.context() as patch, create_pipe_input() as pipe:
        patch.setattr(sys, "stdin", Screen(tty=True))
        pipe.send_text(typed)
        with create_app_session(input=pipe, output=DummyOutput()):
            yield


async def sent(served: Served, typed_keys: str, text: str = "go") -> Result:
    out, err = Screen(tty=True), StringIO()
    invocation = Invocation(served.url, out=out, err=err, color="never")
    with keys(typed_keys):
        code = await await_command(invocation, send(invocation, (text,)))
    return Result(code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("y\r", "Approved"),
        ("\r\r  \ryes\r", "Approved"),
        ("n\r", "Not approved"),
        ("archive it instead\r", "Not approved"),
    ],
)
async def test_at_a_terminal_send_asks_and_enter_alone_answers_nothing(
    served: Served, answer: str, verdict: str
) -> None:
    got = await sent(served, answer)
    assert got.code == 0
    assert got.out.count("The agent asks whether it may run:\n") == 1
    assert "    path: a.txt\n" in got.out
    assert "May I run" not in got.out
    assert "Settled.\n" in got.out
    assert got.err == f"{verdict}: delete_file\n"
    assert ran(served) is (verdict == "Approved")


@pytest.mark.parametrize("key", ["\x03", "\x04"])
async def test_who_does_not_answer_is_told_how_to_do_it_later(served: Served, key: str) -> None:
    got = await sent(served, key)
    assert (got.code, got.err) == (3, "")
    assert "Approve with: a2a-canvas send --task " in got.out
    assert got.out.count("The agent asks") == 1
    assert len(served.model.requests) == 1


@pytest.mark.parametrize(("word", "runs"), [("yes", True), ("no", False)])
async def test_without_a_terminal_send_says_what_to_type(served: Served, word: str, runs: bool) -> None:
    asked = await typed("send", "go", "--url", served.url)
    assert asked.code == 3
    assert asked.out.startswith(ASKED)
    *_, approve, decline = asked.out.splitlines()
    task = approve.split()[-4]
    assert approve == f"Approve with: a2a-canvas send --task {task} yes --url {served.url}"
    assert decline == f"Refuse with: a2a-canvas send --task {task} no --url {served.url}"
    answered = await typed("send", "--task", task, word, "--url", served.url)
    assert answered.out.startswith("Settled.\n")
    assert ran(served) is runs


async def test_watch_shows_the_call_and_says_what_to_type(served: Served) -> None:
    task = (await typed("send", "go", "--url", served.url)).out.splitlines()[-1].split()[-4]
    watched = await typed("watch", task, "--url", served.url)
    assert (watched.code, watched.err) == (3, "")
    assert watched.out.count(ASKED) == 1
    assert f"Approve with: a2a-canvas send --task {task} yes --url {served.url}\n" in watched.out


async def test_json_has_the_call(served: Served) -> None:
    asked = await typed("send", "go", "--json", "--url", served.url)
    *_, last = map(json.loads, asked.out.splitlines())
    message = last["statusUpdate"]["status"]["message"]
    [call] = message["metadata"][CANVAS]["approvals"]
    assert (call["tool"], call["input"]) == ("delete_file", {"path": "a.txt", "reason": "It is old."})
    assert asked.err == ""


@pytest.mark.parametrize(("line", "verdict"), [("y", "Approved"), ("no, keep it", "Not approved")])
async def test_in_chat_the_next_line_is_the_answer(served: Served, line: str, verdict: str) -> None:
    got = await typed("chat", "--url", served.url, stdin=f"go\n\n{line}\n")
    assert got.out == f"{ASKED}Type y to approve, n to refuse, or what to do instead.\nSettled.\n"
    assert f"{verdict}: delete_file\n" in got.err
    assert ran(served) is (verdict == "Approved")


async def test_an_input_cannot_write_over_the_screen(served: Served) -> None:
    asked = await typed("send", "odd", "--url", served.url)
    assert "  delete_file\n    path: a[2Jb\n      c\n" in asked.out


async def test_whole_numbers_are_shown_as_such(served: Served) -> None:
    asked = await typed("send", "numbers", "--url", served.url)
    assert "  restore\n    ranges: [2, 30]\n    version: 1\n" in asked.out
    in_json = await typed("send", "numbers", "--json", "--url", served.url)
    assert re.search(r'"version": 1\b(?!\.)', in_json.out)
    assert '"ranges": [2, 30]' in in_json.out


@pytest.mark.parametrize("approvals", [None, 7, "x", {}, [None], [{"tool": 7}], [{"input": {}}]])
def test_what_is_no_approval(approvals: object) -> None:
    assert approval_calls(ParseDict({"metadata": {CANVAS: {"approvals": approvals}}}, pb.Message())) == ()


def test_a_call_without_an_input_is_one() -> None:
    told = {"metadata": {CANVAS: {"approvals": [{"tool": "now", "input": 7}]}}}
    assert approval_calls(ParseDict(told, pb.Message())) == (AskedCall("now", {}),)
