"""What a server says at its start, line by line; `test_serve.py` starts one."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.accounts.api_key import KeyCount
from a2a_canvas.server.agent.model import NO_MODEL, ToolSpec
from a2a_canvas.server.agent.models.rehearsal import START_NOTICE
from a2a_canvas.server.commands.banner import banner, hints, ollama_hint, ollama_warning, wrap_line
from a2a_canvas.server.commands.database_check import DataCount
from a2a_canvas.server.settings.settings import Settings
from tests.free_port import free_port

VERSION = f"a2a-canvas {version('a2a-canvas')}"
OPEN = "There is no authentication: anyone who reaches it can use it."
SHARED = "0123456789abcdef"
NEEDED = "Clients need a key or token: canvas send takes it from A2A_CANVAS_TOKEN."
OTHERS_TOO = "Callers without a key or token are also served; a wrong one is rejected."
SEND = 'in a second terminal:\ncanvas send "write an outline about tide pools"'


def lines(model: str = "script:app.yaml", count: DataCount | None = None, **settings: Any) -> list[str]:
    return list(banner(Settings(**settings), model, count, "canvas"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, ["http://127.0.0.1:8000"]),
        ({"host": "localhost", "port": 9000, "grpc_port": 9001}, ["http://localhost:9000 (gRPC: localhost:9001)"]),
        ({"host": "::1"}, ["http://[::1]:8000"]),
        (
            {"public_url": "https://a.example.com/", "shared_token": SHARED},
            ["http://127.0.0.1:8000", "Its card says https://a.example.com."],
        ),
        (
            {"public_url": "https://a.example.com/", "allow_anonymous": True},
            ["http://127.0.0.1:8000", f"Its card says https://a.example.com. {OPEN}"],
        ),
        (
            {"public_url": "http://localhost:9000"},
            ["http://127.0.0.1:8000", "Its card says http://localhost:9000."],
        ),
        (
            {"host": "0.0.0.0", "port": 9000},
            [
                "http://0.0.0.0:9000",
                f"Its card says http://localhost:9000: clients on other machines need --public-url. {OPEN}",
            ],
        ),
        (
            {"host": "::", "public_url": "https://a.example.com"},
            ["http://[::]:8000", f"Its card says https://a.example.com. {OPEN}"],
        ),
        ({"host": "192.0.2.1"}, ["http://192.0.2.1:8000", OPEN]),
        ({"host": "192.0.2.1", "shared_token": SHARED}, ["http://192.0.2.1:8000"]),
        (
            {"host": "192.0.2.1", "shared_token": SHARED, "allow_anonymous": True},
            [
                "http://192.0.2.1:8000",
                OPEN.replace("There is no authentication", "Callers without credentials are served"),
                OTHERS_TOO,
            ],
        ),
    ],
)
def test_it_says_where_it_listens_what_its_card_says_and_who_can_use_it(
    settings: dict[str, Any], said: list[str]
) -> None:
    told = [line for line in lines(**settings)[:-2] if line != NEEDED]
    assert told == [f"{VERSION} listens on {said[0]} with script:app.yaml", *said[1:]]


@pytest.mark.parametrize(
    ("settings", "keys", "needed"),
    [
        ({}, 0, False),
        ({"shared_token": SHARED}, 0, True),
        ({"api_keys": f"ann=sha256:{'0' * 64}"}, 0, True),
        ({}, 1, True),
    ],
)
def test_it_says_that_clients_need_a_key(settings: dict[str, Any], keys: int, needed: bool) -> None:
    said = lines(count=DataCount(keys=KeyCount(keys, keys)), **settings)
    assert (NEEDED in said) == needed
    assert SHARED not in "".join(said)


@pytest.mark.parametrize("keys", [KeyCount(1, 1), KeyCount(1, 0)])
def test_it_says_that_others_are_served_beside_those_with_a_key(keys: KeyCount) -> None:
    said = lines(count=DataCount(keys=keys), allow_anonymous=True)
    assert OTHERS_TOO in said
    assert NEEDED not in said
    assert not any("Warning" in line for line in said)


def test_it_warns_if_all_keys_are_revoked(folder: Path) -> None:
    count = DataCount(keys=KeyCount(2, 0))
    warning = (
        "Warning: there is no valid key, so nobody can call the server. "
        "--allow-anonymous serves everybody; to make a key:\ncanvas key new NAME"
    )
    assert warning in lines(count=count)
    assert NEEDED not in lines(count=count)
    assert f"{warning} {folder}" in lines(count=count, agent=folder)
    assert NEEDED in lines(count=count, shared_token=SHARED)


@pytest.mark.parametrize(
    ("database", "count", "where"),
    [
        ("memory", None, "in memory, and lost when it stops"),
        ("sqlite:///a2a-canvas.db", DataCount(), f"in {Path.cwd()}/a2a-canvas.db (no tasks yet)"),
        ("./data/my.db", DataCount(1, 1), f"in {Path.cwd()}/data/my.db (1 task in 1 context)"),
        ("/data/my.db", DataCount(43, 12), "in /data/my.db (43 tasks in 12 contexts)"),
        ("postgres://me:hunter2@db/canvas", DataCount(2, 1), "in postgresql://me:***@db/canvas (2 tasks in 1 context)"),
        ("postgres://db/canvas", None, "in postgresql://db/canvas"),
    ],
)
def test_it_says_where_its_data_is_how_much_and_no_password(database: str, count: DataCount | None, where: str) -> None:
    assert lines(database=database, count=count)[-2] == f"Tasks and artifacts are stored {where}."


@pytest.mark.parametrize(
    ("settings", "page", "option"),
    [
        ({}, "http://127.0.0.1:8000/", ""),
        ({"host": "localhost"}, "http://localhost:8000/", ""),
        ({"host": "0.0.0.0"}, "http://localhost:8000/", ""),
        ({"port": 9000}, "http://127.0.0.1:9000/", " --url http://127.0.0.1:9000"),
        ({"host": "0.0.0.0", "port": 9000}, "http://localhost:9000/", " --url http://localhost:9000"),
        ({"host": "::1"}, "http://[::1]:8000/", " --url http://[::1]:8000"),
        ({"host": "192.0.2.1"}, "http://192.0.2.1:8000/", " --url http://192.0.2.1:8000"),
        ({"public_url": "https://a.example.com/canvas"}, "https://a.example.com/canvas/", ""),
    ],
)
def test_it_says_what_to_do_next_with_its_address_unless_that_is_the_clients_own(
    settings: dict[str, Any], page: str, option: str
) -> None:
    assert lines(**settings)[-1] == f"Next, open {page} in a browser, or {SEND}{option}"


def test_without_a_page_the_terminal_is_what_to_do_next() -> None:
    assert lines(page=False)[-1] == f"Next, {SEND}"


def test_the_rehearsal_says_that_it_is_one() -> None:
    assert lines("rehearsal")[1] == START_NOTICE
    assert START_NOTICE not in lines("claude-sonnet-5-5")


def test_a_terminal_breaks_lines_between_words_and_no_command() -> None:
    said = [
        wrap_line(line, 80)
        for line in lines("rehearsal", DataCount(), host="0.0.0.0", database=f"/{'data/' * 30}my.db")
    ]
    assert " ".join(said[1].split("\n")) == START_NOTICE
    folds = [line for text in said[:-1] for line in text.split("\n")]
    assert [line for line in folds if len(line) > 80] == [f"/{'data/' * 30}my.db"]
    assert said[-1].endswith(SEND)
    assert wrap_line(f"To use it:\n{'word ' * 20}", 80) == f"To use it:\n{'word ' * 20}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of an agent, where the user is."""
    (tmp_path / "agent.toml").write_text("")
    (tmp_path / "instructions.md").write_text("You are Reef.")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_says_where_the_agent_is_and_that_the_rehearsal_is_not_it(folder: Path) -> None:
    said = lines("rehearsal", agent=Path("."))
    assert said[2:5] == [
        f"The agent is the one in {folder}.",
        "Its instructions: instructions.md",
        "The rehearsal model follows no instructions.",
    ]
    assert not [line for line in lines("claude-sonnet-5-5", agent=Path(".")) if "rehearsal" in line]


def test_it_says_which_loop_the_agent_has_instead_of_the_rehearsal(folder: Path) -> None:
    said = list(banner(Settings(agent=Path(".")), "rehearsal", None, "canvas", loop="agent.py (langgraph 1.2.22)"))
    assert said[1:4] == [
        f"The agent is the one in {folder}.",
        "Its loop: agent.py (langgraph 1.2.22)",
        "Its instructions: instructions.md",
    ]
    assert not [line for line in said if "rehearsal model" in line]


@pytest.mark.usefixtures("folder")
def test_with_a_loop_it_names_no_model_and_suggests_a_message_that_suits_any_agent() -> None:
    first, loop, *_, following = banner(Settings(), NO_MODEL, None, "canvas", loop="reef.agent:agent")
    assert first.endswith("listens on http://127.0.0.1:8000")
    assert loop == "Its loop: reef.agent:agent"
    assert following.endswith('\ncanvas send "Hello"')


@dataclass(frozen=True)
class Source:
    name: str
    names: tuple[str, ...] = ()

    def tools(self) -> list[ToolSpec]:
        return [ToolSpec(name, "", {"required": ["port"]}) for name in self.names]


@pytest.mark.parametrize("model", ["rehearsal", "claude-sonnet-5-5"])
def test_it_says_which_tools_the_agent_has_and_how_the_rehearsal_calls_one(folder: Path, model: str) -> None:
    sources = (Source("MCP server time"), Source("tools.py", ("count_words", "high_water")), Source("x", ("x_y",)))
    said = list(banner(Settings(agent=Path(".")), model, None, "canvas", sources))
    place = said.index("Its instructions: instructions.md")
    assert said[place + 1 : place + 3] == [
        "Tools from MCP server time: none, as yet",
        "Tools from tools.py: count_words, high_water",
    ]
    how = "The rehearsal model calls a tool when you name it:\ncanvas send call high_water port=…"
    assert (how in said) is (model == "rehearsal")


# ------------------------------------------------------------------------------ hints

OPENAI = {"OPENAI_API_KEY": "sk-hunter2"}
TOKEN = {"ANTHROPIC_AUTH_TOKEN": "hunter2"}
URL = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:4000"}
KEY = {"ANTHROPIC_API_KEY": "sk-ant-hunter2"}


@pytest.mark.parametrize(
    ("environ", "unused"),
    [
        ({}, []),
        (OPENAI, ["OPENAI_API_KEY"]),
        (TOKEN, ["ANTHROPIC_AUTH_TOKEN"]),
        (TOKEN | KEY, ["ANTHROPIC_AUTH_TOKEN"]),
        (TOKEN | OPENAI, ["ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"]),
        (TOKEN | URL | OPENAI, []),
        (OPENAI | KEY, []),
        ({"OPENAI_API_KEY": " "}, []),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"}, ["OPENAI_BASE_URL"]),
    ],
)
def test_a_key_that_is_not_used_is_named_without_its_value(environ: dict[str, str], unused: list[str]) -> None:
    said = list(hints(Settings(), environ, "a2a-canvas"))
    assert [line.removeprefix("Hint: ").split()[0] for line in said] == unused
    assert "hunter2" not in "".join(said)


@pytest.mark.parametrize("model", ["rehearsal", "script:mine.yaml", "openai:gpt-5.2", "ollama:qwen3"])
def test_whoever_says_where_the_model_is_knows_that_it_uses_no_other_key(model: str) -> None:
    assert list(hints(Settings(model=model), OPENAI | TOKEN, "a2a-canvas")) == []


@pytest.mark.parametrize(
    ("settings", "trusted", "hinted"),
    [
        ({"host": "0.0.0.0"}, "*", True),
        ({"public_url": "https://a.example.com"}, "*", True),
        ({}, "*", False),
        ({"host": "0.0.0.0"}, "10.0.0.0/8", False),
    ],
)
def test_proxies_that_are_everybody_are_worth_a_hint_where_others_reach_the_server(
    settings: dict[str, Any], trusted: str, hinted: bool
) -> None:
    said = list(hints(Settings(**settings), {"FORWARDED_ALLOW_IPS": trusted}, "a2a-canvas"))
    assert bool(said) is hinted
    assert all("list the proxy's address or network" in line for line in said)


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """A server that gives every request for Ollama's models this answer; its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET /api/tags "):
            writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def json_answer(value: Any) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def test_an_ollama_is_told_with_one_of_its_models() -> None:
    models = {"models": [{"name": "qwen3-coder:latest"}, {"name": "llama4:8b"}]}
    async with answering(json_answer(models)) as address:
        assert await ollama_hint("canvas", address) == (
            f"Hint: Ollama is running at {address}. To use it:\ncanvas serve --model ollama:qwen3-coder"
        )


@pytest.mark.parametrize(
    "answer",
    [
        json_answer({"models": []}),
        json_answer({"models": [{"name": "x; rm -rf ~"}]}),
        json_answer({"models": 3}),
        json_answer([]),
        json_answer({"models": [{}]}),
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-none\r\n",
    ],
)
async def test_what_is_no_ollama_or_has_no_model_is_not_told(answer: bytes) -> None:
    async with answering(answer) as address:
        assert await ollama_hint("canvas", address) == ""


async def test_nothing_is_said_if_nobody_answers() -> None:
    assert await ollama_hint("canvas", f"http://127.0.0.1:{free_port()}") == ""


async def test_the_model_of_an_ollama_is_looked_for_at_the_start() -> None:
    async with answering(json_answer({"models": [{"name": "qwen3:latest"}, {"name": "llama4:8b"}]})) as address:
        assert await ollama_warning("qwen3", address) == ""
        assert await ollama_warning("llama4:8b", address) == ""
        assert await ollama_warning("nope", address) == (
            f"Warning: Ollama at {address} has no model nope. To get it:\nollama pull nope"
        )
    address = f"http://127.0.0.1:{free_port()}"
    assert await ollama_warning("qwen3", address) == (
        f"Warning: Ollama does not answer at {address}, so tasks will fail. To start it:\nollama serve"
    )


async def test_a_server_that_never_answers_is_left_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert await ollama_hint("canvas", f"http://127.0.0.1:{listener.getsockname()[1]}", seconds=0.01) == ""


def test_an_agent_in_the_folder_of_the_user_that_is_not_served_is_a_hint(folder: Path) -> None:
    assert list(hints(Settings(), {}, "a2a-canvas")) == [
        "Hint: agent.toml is here, but it is not used. To serve the agent in this folder:\na2a-canvas serve ."
    ]
    assert list(hints(Settings(agent=folder), {}, "a2a-canvas")) == []
