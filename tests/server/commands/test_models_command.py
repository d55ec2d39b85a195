"""`a2a-canvas models`: what is there by the environment, and what is said of a provider that does not answer."""

from __future__ import annotations

import io
import os
import socket
from typing import Any

import httpx
import pytest
import respx

from a2a_canvas.server.commands import models_command as command
from a2a_canvas.server.commands.models_command import ModelSource, ask, models_command, sources
from tests.command_line import parsed

CLAUDE, OPENAI = {"ANTHROPIC_API_KEY": "sk-ant-hunter2"}, {"OPENAI_API_KEY": "sk-hunter2"}
OFFLINE = ["Offline", "  --model rehearsal", "  --model script:FILE.yaml"]
NO_CLAUDE = "The Messages API is not asked: neither ANTHROPIC_API_KEY nor ANTHROPIC_BASE_URL is set."
NO_OPENAI = "OpenAI's API is not asked: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set."
NO_OLLAMA = "Ollama at http://127.0.0.1:11434 does not answer."


def ids(*names: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name} for name in names]}


async def listed(environ: dict[str, str], answers: dict[str, Any]) -> tuple[int, list[str], list[httpx.Request]]:
    """The exit code, the lines, and what was asked; whatever has no answer cannot be reached."""
    out = io.StringIO()
    with respx.mock(assert_all_called=False) as router:
        for url, answer in answers.items():
            response = answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)
            router.get(url).mock(return_value=response)
        router.route().mock(side_effect=httpx.ConnectError("refused"))
        code = await models_command(environ, out)
        asked = [call.request for call in router.calls]
    assert "hunter2" not in out.getvalue()
    return code, out.getvalue().splitlines(), asked


async def test_without_a_provider_there_are_the_offline_models_and_what_is_missing() -> None:
    code, lines, _ = await listed({}, {})
    assert (code, lines) == (1, [*OFFLINE, NO_CLAUDE, NO_OPENAI, NO_OLLAMA])


async def test_every_provider_has_its_models_as_they_are_typed() -> None:
    code, lines, asked = await listed(
        CLAUDE | OPENAI,
        {
            "https://api.anthropic.com/v1/models?limit=1000": ids("claude-sonnet-5-5", "claude-opus-5-5"),
            "https://api.openai.com/v1/models": ids(
                "gpt-5.2", "text-embedding-3-large", "gpt-4o-realtime", "gpt-oss-20b"
            ),
            "http://127.0.0.1:11434/api/tags": {"models": [{"name": "qwen3-coder:latest"}, {"name": "qwen3:8b"}]},
        },
    )
    assert code == 0
    assert lines == [
        "The Messages API at https://api.anthropic.com",
        "  --model claude-sonnet-5-5",
        "  --model claude-opus-5-5",
        "OpenAI's API at https://api.openai.com/v1",
        "  --model openai:gpt-5.2",
        "  --model openai:gpt-oss-20b",
        "Ollama at http://127.0.0.1:11434",
        "  --model ollama:qwen3-coder",
        "  --model ollama:qwen3:8b",
        *OFFLINE,
    ]
    keys = [request.headers.get("authorization") for request in asked]
    assert keys == ["Bearer sk-ant-hunter2", "Bearer sk-hunter2", None]


async def test_servers_are_where_the_environment_says() -> None:
    environ = {
        "ANTHROPIC_BASE_URL": "http://me:hunter2@gateway.test",
        "OPENAI_BASE_URL": "http://127.0.0.1:8080/v1/",
        "OLLAMA_HOST": "0.0.0.0:9000",
    }
    code, lines, asked = await listed(environ, {"http://127.0.0.1:8080/v1/models": ids("coder")})
    assert code == 0
    assert lines == [
        "OpenAI's API at http://127.0.0.1:8080/v1",
        "  --model openai:coder",
        *OFFLINE,
        "The Messages API at http://gateway.test does not answer.",
        "Ollama at http://127.0.0.1:9000 does not answer.",
    ]
    assert asked[0].headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx.Response(401), "refuses the API key"),
        (httpx.Response(404, json={"detail": "Not Found"}), "answers with HTTP 404"),
        (httpx.Response(200, html="<h1>Welcome</h1>"), "lists no models"),
        ([], "lists no models"),
        ({"data": [None, {"id": 3}, {"id": "a\nb"}]}, "lists no models"),
    ],
)
async def test_an_answer_without_models_is_told_in_a_line(answer: Any, said: str) -> None:
    code, lines, _ = await listed(OPENAI, {"https://api.openai.com/v1/models": answer})
    assert (code, lines[4]) == (1, f"OpenAI's API at https://api.openai.com/v1 {said}.")


async def test_an_address_that_is_none_is_told_in_a_line() -> None:
    _, lines, _ = await listed({"OPENAI_BASE_URL": "localhost:8080", "OLLAMA_HOST": "a:b"}, {})
    assert lines[4:] == [
        "OpenAI's API is not asked: OPENAI_BASE_URL is not an address: it must look like https://api.openai.com/v1.",
        "Ollama is not asked: OLLAMA_HOST=a:b: must look like 127.0.0.1:11434.",
    ]


async def test_a_server_that_never_answers_does_not_hold_up_the_others() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        source = ModelSource("Ollama", f"http://127.0.0.1:{listener.getsockname()[1]}", path="/api/tags")
        assert (await ask(source, seconds=0.01)).fault == "does not answer"


def test_models_that_need_a_library_say_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert [each.remark for each in sources(OPENAI)] == ["", "; to use them: pip install 'a2a-canvas[openai]'", ""]


def test_the_command_takes_the_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from a2a_canvas.server.commands.cli import main

    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setitem(os.environ, "OLLAMA_HOST", f"127.0.0.1:{port}")
    assert parsed("models") == ("models", {})
    assert main(["models"]) == 1
    assert capsys.readouterr().out.splitlines()[:3] == OFFLINE
