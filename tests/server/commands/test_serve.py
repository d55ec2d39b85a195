"""`a2a-canvas serve` as a process of its own: what it says at its start, what it logs, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from a2a_canvas.server.settings.settings import PREFIX
from tests.free_port import free_port
from tests.server.agent.models.strict_chat_completions import KEY, ChatCompletionsApi
from tests.server.agent.models.strict_messages_api import Answer, Json, calls, says
from tests.server.agent.models.strict_messages_api import serving as serving_provider
from tests.server.faults.server_processes import eventually

ROOT = Path(__file__).parents[3]
SCRIPT = Path(__file__).parents[1] / "scripts" / "app.yaml"
VERSION = f"a2a-canvas {version('a2a-canvas')}"

pytestmark = pytest.mark.process


@dataclass(slots=True)
class Serving:
    """A server that runs."""

    port: int
    process: asyncio.subprocess.Process
    said: list[str]

    async def line(self) -> str:
        """The next line on stdout."""
        assert self.process.stdout
        self.said.append((await self.process.stdout.readline()).decode().rstrip("\n"))
        return self.said[-1]

    async def logged(self, words: str = "") -> str:
        """The next line of the log that has these words."""
        assert self.process.stderr
        while words not in (line := (await self.process.stderr.readline()).decode()):
            assert line, words
        return line.rstrip("\n")

    async def send(self, text: str, context: str = "") -> dict[str, Any]:
        """A message; its task, once it has ended or asks."""
        message = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}], "contextId": context}
        request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=30) as http:
            answer = await http.post("/", json=request, headers={"A2A-Version": "1.0"})
            await http.get("/healthz")  # over the same connection
        task: dict[str, Any] = answer.json()["result"]["task"]
        return task

    async def ended(self, stop: signal.Signals = signal.SIGTERM) -> tuple[int | None, str, str]:
        """Stop it; the exit code, and what is left of stdout and stderr."""
        self.process.send_signal(stop)
        out, err = await self.process.communicate()
        return self.process.returncode, out.decode(), err.decode()


@asynccontextmanager
async def serving(*options: str, cwd: Path = ROOT, **environment: str) -> AsyncIterator[Serving]:
    """A server with its first line said; it plays the script unless another model is named."""
    port = free_port()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith((PREFIX, "ANTHROPIC_", "OPENAI_", "OLLAMA_"))
    }
    model = () if "--model" in options or environment else ("--model", f"script:{SCRIPT}")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "a2a_canvas", "serve", "--port", str(port), *model, *options),
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Serving(port, process, [])
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


# --------------------------------------------------------------------------- the start


async def test_each_line_is_said_once_and_counts_what_is_there(tmp_path: Path) -> None:
    async with serving("--database", "./my.db", cwd=tmp_path) as first:
        await first.line()
        await first.send("write notes", "c")
        await first.send("ask", "c")
        assert (await first.ended())[:2] == (
            0,
            f"Tasks and artifacts are stored in {tmp_path}/my.db (no tasks yet).\n"
            f"Next, open http://127.0.0.1:{first.port}/ in a browser, or in a second terminal:\n"
            "python -m a2a_canvas send "
            f'"write an outline about tide pools" --url http://127.0.0.1:{first.port}\n',
        )
    async with serving("--database", "./my.db", "--grpc-port", str(free_port()), cwd=tmp_path) as second:
        listens = await second.line()
        assert listens.startswith(f"{VERSION} listens on http://127.0.0.1:{second.port} (gRPC: 127.0.0.1:")
        assert listens.endswith(") with script:app.yaml")
        assert await second.line() == f"Tasks and artifacts are stored in {tmp_path}/my.db (2 tasks in 1 context)."
        code, _, log = await second.ended()
    assert code == 0
    assert len(log.splitlines()) == 1  # that it stops


async def test_a_key_that_it_does_not_use_is_a_hint() -> None:
    async with serving("--database", "memory", OPENAI_API_KEY="sk-hunter2") as server:
        while not (line := await server.line()).startswith("Hint: "):
            assert line
        assert line.startswith("Hint: OPENAI_API_KEY is not used. ")
        assert "hunter2" not in "".join(server.said)


async def test_an_ollama_of_this_machine_is_a_hint() -> None:
    asked = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        body = b'{"models": [{"name": "qwen3-coder:latest"}]}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()

    try:
        ollama = await asyncio.start_server(answer, "127.0.0.1", 11434)
    except OSError:
        pytest.skip("needs the port 11434, which something has")
    async with ollama, serving("--database", "memory", SOME="variable") as server:
        while not (line := await server.line()).startswith("Hint: "):
            assert line
        assert line == "Hint: Ollama is running at http://127.0.0.1:11434. To use it:"
        line = await server.line()
    assert line.endswith(" serve --model ollama:qwen3-coder")
    assert len(asked) == 1


# ----------------------------------------------------------------------------- the log

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


async def test_a_task_that_has_ended_is_one_line_with_figures_and_without_the_words_of_the_prompt() -> None:
    async with serving("--database", "memory") as server:
        await server.line()
        task = await server.send("write notes", "my context")
        line = await server.logged()
        rest = (await server.ended())[2]
    assert re.fullmatch(
        rf'{TIME} INFO    Task completed task={task["id"]} context="my context" state=completed '
        r"seconds=\d+\.\d+ rounds=2 tokens_in=\d+ tokens_out=\d+ artifacts=notes:1",
        line,
    )
    assert re.fullmatch(rf"{TIME} INFO    The server is stopping; [^\n]*\n", rest)


async def test_a_failure_has_its_reason_and_a_warning_of_a_task_its_ids_but_no_line_the_key() -> None:
    provider = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{free_port()}", "ANTHROPIC_API_KEY": "sk-ant-hunter2-hunter2"}
    async with serving("--database", "memory", **provider) as server:
        await server.line()
        task = await server.send("My diary", "c")
        warning, failure = await server.logged("WARNING"), await server.logged("Task failed")
        _, out, rest = await server.ended()
    ids = f" task={task['id']} context=c"
    assert warning.endswith(f"check the network and ANTHROPIC_BASE_URL.{ids}")
    assert f"Task failed{ids} state=failed " in failure
    assert failure.endswith('its log has the details."')
    assert not any(secret in f"{out}{warning}{failure}{rest}" for secret in ("hunter2", "diary"))


async def test_in_json_every_line_is_an_object() -> None:
    async with serving("--database", "memory", "--log-format", "json") as server:
        started = json.loads(await server.logged())
        task = await server.send("write notes", "c")
        line = json.loads(await server.logged("Task completed"))
        _, out, err = await server.ended()
    assert started["message"].startswith(f"{VERSION} listens on ")
    assert (line["task"], line["context"], line["state"], line["artifacts"]) == (
        task["id"],
        "c",
        "completed",
        {"notes": 1},
    )
    assert out == ""
    assert all(json.loads(rest)["level"] == "info" for rest in err.splitlines())


async def test_at_debug_there_are_our_messages_and_requests_and_nothing_of_libraries(tmp_path: Path) -> None:
    file = ("--database", f"{tmp_path}/canvas.db")
    async with serving(*file, "--log-level", "debug", "--log-format", "json") as server:
        await server.logged(" listens on ")
        await server.send("write notes")
        log = [json.loads(line) for line in (await server.ended())[2].splitlines()]
    names = {line["logger"] for line in log}
    assert {name for name in names if not name.startswith("a2a_canvas.")} == {"uvicorn.access"}
    calls = [line for line in log if line["message"] == "Model call ended"]
    assert [(line["level"], line["round"], line["stop_reason"]) for line in calls] == [
        ("debug", 1, "tool_use"),
        ("debug", 2, "end_turn"),
    ]
    assert all(line["task"] and line["context"] for line in calls)
    [other] = [line for line in log if "/healthz" in line["message"]]
    assert "task" not in other


# ----------------------------------------------------------------------------- the end


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("file", ["", "canvas.db"], ids=["memory", "sqlite"])
async def test_it_serves_until_it_is_told_to_stop(tmp_path: Path, file: str, stop: signal.Signals) -> None:
    grpc_port = free_port()
    async with serving(
        *("--grpc-port", str(grpc_port), "--public-grpc", "127.0.0.1"),
        *("--database", str(tmp_path / file) if file else "memory"),
    ) as server:
        await server.line()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as client:
            assert (await client.get("/healthz")).json() == {"status": "ok"}
            many = {f"x-{number}": "" for number in range(100)}
            assert (await client.get("/healthz", headers=many)).status_code == 431  # its connections have their limits
            card = (await client.get("/.well-known/agent-card.json")).json()
        assert f"127.0.0.1:{grpc_port}" in {interface["url"] for interface in card["supportedInterfaces"]}
        code, _, errors = await server.ended(stop)
    assert code == 0
    assert "Traceback" not in errors
    assert (tmp_path / "canvas.db").exists() == bool(file)


@pytest.mark.parametrize("file", ["", "canvas.db"], ids=["memory", "sqlite"])
async def test_a_second_ctrl_c_ends_it_at_once_without_a_trace(tmp_path: Path, file: str) -> None:
    """A reader that does not go away would hold it for the whole grace."""
    database = str(tmp_path / file) if file else "memory"
    async with serving("--database", database, "--shutdown-grace", "600") as server:
        await server.line()
        async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
            events = f"http://127.0.0.1:{server.port}/artifacts/c/events"
            async with http.stream("GET", events) as stream:
                await anext(stream.aiter_raw())
                server.process.send_signal(signal.SIGINT)
                await server.logged("Ctrl+C ends it immediately.")
                code, _, errors = await server.ended(signal.SIGINT)
    assert code == 130
    assert errors == ""


async def test_a_reader_of_the_first_lines_that_goes_away_does_not_end_it() -> None:
    async with serving("--database", "memory", "--log-level", "warning", OPENAI_API_KEY="sk-hunter2") as server:
        assert server.process.stdout
        server.process.stdout._transport.close()  # type: ignore[attr-defined]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as client:
            await eventually(lambda: healthy(client))
        code, _, errors = await server.ended()
    assert (code, errors) == (0, "")


async def healthy(client: httpx.AsyncClient) -> bool:
    with suppress(httpx.TransportError):
        return (await client.get("/healthz")).status_code == 200
    return False


# --------------------------------------------------------------------- models, folders


async def test_a_model_of_another_server_writes_and_reads_what_its_tools_return(tmp_path: Path) -> None:
    given = {"append": False, "artifact": {"artifact_id": "a", "parts": [{"kind": "text", "text": "Tides."}]}}

    def answered(request: Json) -> Answer:
        if request["messages"][-1]["role"] == "tool":
            return Answer((says(f"It says: {request['messages'][-1]['content']}"),))
        return Answer((calls("c1", "artifact_update", given),), stop="tool_use", step=5)

    api = ChatCompletionsApi(answered)
    async with (
        serving_provider(api) as url,
        serving("--model", "openai:m", cwd=tmp_path, OPENAI_BASE_URL=f"{url}/v1", OPENAI_API_KEY=KEY) as server,
    ):
        assert (await server.line()).endswith(" with openai:m")
        task = await server.send("Write")
        assert task["status"]["message"]["parts"][0]["text"].startswith("It says: ")
        assert task["artifacts"][0]["parts"][0]["text"] == "Tides."
    assert (len(api.requests), api.refusals) == (2, [])
