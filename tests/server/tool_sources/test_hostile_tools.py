"""Tools in Python that break the rules, over a server that runs: each call has a clear outcome for the client and the
model, the server answers others meanwhile and afterwards, and what was written before stays.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.agent.model import ToolResult
from a2a_canvas.server.commands.cli import main
from a2a_canvas.tools.functions import running
from tests.server.app_server import Served, Stream, asking, said, sent, serving, text_of
from tests.server.commands.test_serve import serving as serving_process

WAY = ("JSONRPC", "1.0")
TOOLS = '''
import asyncio
import contextlib
import sys
import time
from pathlib import Path

from a2a_canvas import Canvas, File, tool

MUCH = 50_000_000


@tool
async def blocks(until: str) -> str:
    """Blocks the event loop until there is a file."""
    while not Path(until).exists():
        time.sleep(0.001)
    return "It is over."


@tool
async def floods(until: str, canvas: Canvas) -> str:
    """Shows progress without end."""
    number = 0
    while True:
        number += 1
        await canvas.progress(f"Step {number}")


@tool
async def ignores(until: str, canvas: Canvas) -> str:
    """Ignores that it is cancelled until there is a file."""
    await canvas.artifact("doc").append("half")
    while not Path(until).exists():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
    return "Too late."


@tool
def hangs(until: str) -> str:
    """Sits in its thread until there is a file."""
    while not Path(until).exists():
        time.sleep(0.01)
    return "Too late."


@tool(timeout=0.05)
async def too_slow(until: str) -> str:
    """Ignores its time limit until there is a file."""
    return await ignores.function(until, Nothing())


class Nothing:
    def artifact(self, artifact_id):
        return self

    async def append(self, text):
        pass


@tool
def much_text() -> str:
    """Returns 50 MB."""
    return "x" * MUCH


@tool
def much_file() -> File:
    """Returns a file of 50 MB."""
    return File("much.bin", content=bytes(MUCH))


@tool
async def writes_much(canvas: Canvas) -> str:
    """Writes 50 MB."""
    await canvas.artifact("doc").append("x" * MUCH)
    return "Written."


def pieces():
    yield "one"
    raise ZeroDivisionError("the secret")


@tool
def a_generator() -> str:
    """Returns a generator."""
    return pieces()


@tool
def raises_in_a_generator() -> list[str]:
    """Raises in the generator that it reads."""
    return [*pieces()]


@tool
async def ends_the_process() -> str:
    """Ends the process."""
    sys.exit(3)


@tool
async def interrupts() -> str:
    """Raises what Ctrl-C does."""
    raise KeyboardInterrupt


@tool
def imports() -> str:
    """Imports what is not there."""
    import no_such_module
'''
SCRIPT = """
rules:
  - match: {text: "^write$"}
    rounds:
      - write: [{name: doc.md, text: "Kept."}]
      - text: "Written."
  - match: {text: "^hello$"}
    rounds: [{text: "Hello."}]
  - match: {text: '^(?P<tool>[a-z_]+) (?P<until>.+)$'}
    rounds:
      - tools: [{name: "{tool}", input: {until: "{until}"}}]
      - text: "Settled."
  - match: {text: "^(?P<tool>[a-z_]+)$"}
    rounds:
      - tools: [{name: "{tool}", input: {}}]
      - text: "Settled."
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "script.yaml").write_text(SCRIPT)
    return tmp_path


@pytest_asyncio.fixture
async def served(folder: Path) -> AsyncIterator[Served]:
    async with serving(folder / "script.yaml", tools=(folder / "tools.py",), grpc=False) as running:
        running.gate.open()
        yield running


@pytest.fixture
def release(folder: Path) -> Iterator[Path]:
    """A file that is not there yet: what waits for it goes on at the end of the test at the latest."""
    yield (file := folder / "go on")
    file.touch()


def read_by_the_model(served: Served) -> list[tuple[bool, str]]:
    """(is it an error, what) of all results of tools that the model has read."""
    read = [content for request in served.model.requests for content in request.messages[-1].content]
    return [(each.is_error, each.content) for each in read if isinstance(each, ToolResult)]


async def answers_others(served: Served) -> None:
    assert (await served.http.get("/healthz")).status_code == 200
    assert said((await sent(served, WAY, asking("hello"))).status) == "Hello."


async def called(served: Served, text: str, context: str = "") -> pb.Task:
    """The task of a call, which has ended; others are answered."""
    task = await sent(served, WAY, asking(text, context=context))
    await answers_others(served)
    return task


class Logged(logging.Handler):
    """Makes a file once the log has said something."""

    def __init__(self, words: str, then: Path) -> None:
        super().__init__()
        self._words, self._then = words, then

    def emit(self, record: logging.LogRecord) -> None:
        if self._words in record.getMessage():
            self._then.touch()


# ------------------------------------------------------------------- while it runs


async def test_one_that_blocks_the_event_loop_is_named_in_the_log_and_all_are_answered(
    served: Served, release: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(running, "BLOCKED", 0.02)
    handler = Logged("The tool blocks blocks the event loop", release)
    running.logger.addHandler(handler)
    try:
        task, _ = await asyncio.gather(called(served, f"blocks {release}"), answers_others(served))
    finally:
        running.logger.removeHandler(handler)
    assert said(task.status) == "Settled."
    assert f'tools.py", line {1 + TOOLS.splitlines().index("        time.sleep(0.001)")}, in blocks' in caplog.text


@pytest.mark.parametrize("name", ["floods", "ignores", "hangs"])
async def test_one_without_end_can_be_canceled_and_what_it_has_written_is_taken_back(
    served: Served, release: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    monkeypatch.setattr(running, "GRACE", 0.01)
    context = (await sent(served, WAY, asking("write"))).context_id
    stream = Stream(served.client().send_message(asking(f"{name} {release}", context=context)))
    while f"Running {name}" not in said(stream.task.status):
        await stream.next()
    await answers_others(served)
    await served.client().cancel_task(pb.CancelTaskRequest(id=stream.task.id))
    await stream.rest()
    assert stream.task.status.state == pb.TASK_STATE_CANCELED
    await answers_others(served)
    assert text_of(await sent(served, WAY, asking("write", context=context))) == "Kept."
    assert ("has not ended after" in caplog.text) is (name == "ignores")


async def test_one_that_ignores_its_time_limit_is_left_to_itself(
    served: Served, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "GRACE", 0.01)
    assert said((await called(served, f"too_slow {release}")).status) == "Settled."
    told = "too_slow took longer than 0.05 seconds and was stopped; its outcome is unknown."
    assert read_by_the_model(served) == [(True, told)]


@pytest.mark.process
async def test_one_that_ignores_its_cancellation_does_not_keep_the_server_from_stopping(
    folder: Path, release: Path
) -> None:
    tools, script = folder / "tools.py", folder / "script.yaml"
    options = ("--tools", str(tools), "--model", f"script:{script}", "--database", "memory", "--shutdown-grace", "0")
    async with serving_process(*options) as process:
        await process.line()
        message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": f"ignores {release}"}]}
        url = f"http://127.0.0.1:{process.port}/rest/message:stream"
        async with (
            httpx.AsyncClient(trust_env=False, timeout=30) as http,
            http.stream("POST", url, json={"message": message}, headers={"A2A-Version": "1.0"}) as answer,
        ):
            async for line in answer.aiter_lines():
                if "Running ignores" in line:
                    break
        code, _, log = await process.ended()
    assert code == 0
    assert "have not ended; the server stops without them" in log


# ---------------------------------------------------------------- what it returns or raises


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("much_text", "much_text has run, but what it returned cannot be kept: The artifact would have 50000000 bytes"),
        ("much_file", "much_file has run, but what it returned cannot be kept: The artifact would have 50000000 bytes"),
        ("writes_much", "The artifact would have 50000005 bytes; 10485760 are allowed."),
    ],
)
async def test_the_model_is_told_of_50_mb_that_they_are_too_much_and_nothing_is_lost(
    served: Served, name: str, told: str
) -> None:
    context = (await sent(served, WAY, asking("write"))).context_id
    task = await called(served, name, context)
    assert (task.status.state, said(task.status)) == (pb.TASK_STATE_COMPLETED, "Settled.")
    [(failed, _)] = [each for each in read_by_the_model(served) if told in each[1]]
    assert failed
    assert text_of(await sent(served, WAY, asking("write", context=context))) == "Kept."


@pytest.mark.parametrize(
    ("name", "logged"),
    [
        ("a_generator", "a_generator returned generator"),
        ("raises_in_a_generator", "ZeroDivisionError: the secret"),
        ("ends_the_process", "SystemExit(3)"),
        ("interrupts", "KeyboardInterrupt()"),
        ("imports", "No module named 'no_such_module'"),
    ],
)
async def test_of_what_one_raises_the_log_has_the_text_and_the_model_learns_that_it_failed(
    served: Served, caplog: pytest.LogCaptureFixture, name: str, logged: str
) -> None:
    task = await called(served, name)
    assert (task.status.state, said(task.status)) == (pb.TASK_STATE_COMPLETED, "Settled.")
    told = f"{name} failed with an unexpected error. The operator's log has the details. "
    told += "Do without it, or tell the user."
    assert read_by_the_model(served) == [(True, told)]
    assert logged in caplog.text


# -------------------------------------------------------------------- before it is served


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            "\nimport no_such_module",
            "line 2: No module named 'no_such_module'. Install it where a2a-canvas runs: pip install no_such_module",
        ),
        (
            'from a2a_canvas import tool\n@tool\ndef lines() -> str:\n    """Says."""\n    yield "one"',
            "line 2: the tool lines is a generator: `return` its result in one piece.",
        ),
    ],
)
def test_a_file_that_cannot_be_used_ends_serve_with_file_line_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # restores the path afterwards
    Path("reef").mkdir()
    Path("reef/tools.py").write_text(content)
    assert main(["serve", "reef", "--model", "rehearsal"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"a2a-canvas: reef/tools.py, {says}")
    assert told.count("\n") == 1
