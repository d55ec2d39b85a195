"""Which model the settings and the environment name, and what is said if they name none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from a2a_canvas.server.agent.model import LLM, ModelError, ModelMessage, ModelRequest, ModelText, TextDelta, close_llm
from a2a_canvas.server.settings.model_choice import choose_llm, context_window, ollama_address
from a2a_canvas.server.settings.settings import Settings, SettingsError
from tests.free_port import free_port
from tests.server.agent.models.strict_messages_api import Answer, MessagesApi, says, serving

CLAUDE = {"ANTHROPIC_API_KEY": "sk-ant-hunter2"}
OPENAI = {"OPENAI_API_KEY": "sk-hunter2"}
GATEWAY = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:4000"}


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for provider in ("ANTHROPIC", "OPENAI"):
        for name in ("API_KEY", "AUTH_TOKEN", "BASE_URL"):
            monkeypatch.delenv(f"{provider}_{name}", raising=False)
    return monkeypatch


def chosen(model: str | None, environ: dict[str, str], **settings: object) -> LLM:
    return choose_llm(Settings(model=model, **settings), environ)  # type: ignore[arg-type]


def refused(model: str, environ: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        chosen(model, environ)
    said = str(caught.value)
    assert "\n" not in said
    assert "hunter2" not in said
    return said


@pytest.mark.parametrize(
    ("model", "environment", "name"),
    [
        (None, {}, "rehearsal"),
        (None, OPENAI, "rehearsal"),
        (None, CLAUDE, "claude-sonnet-5-5"),
        ("claude-opus-5-5", CLAUDE, "claude-opus-5-5"),
        ("us.anthropic.claude-opus-4-6-v1:0", CLAUDE, "us.anthropic.claude-opus-4-6-v1:0"),
        ("qwen3:8b", GATEWAY, "qwen3:8b"),
        ("gpt-5", GATEWAY, "gpt-5"),
        ("rehearsal", CLAUDE, "rehearsal"),
        ("openai:gpt-5.2", OPENAI, "openai:gpt-5.2"),
        ("openai:qwen/qwen3:free", {"OPENAI_BASE_URL": "https://openrouter.example/api/v1"}, "openai:qwen/qwen3:free"),
        ("ollama:qwen3:8b", {}, "ollama:qwen3:8b"),
        ("ollama:qwen3", CLAUDE | GATEWAY, "ollama:qwen3"),
    ],
)
async def test_a_name_says_where_the_model_is(model: str | None, environment: dict[str, str], name: str) -> None:
    assert chosen(model, environment).name == name


WAYS = (
    "For Claude set ANTHROPIC_API_KEY, for another server of the Messages API ANTHROPIC_BASE_URL, with "
    "ANTHROPIC_AUTH_TOKEN if it wants a token. Other models are --model openai:NAME (any server of OpenAI's API), "
    "ollama:NAME, rehearsal and script:FILE.yaml; a2a-canvas models lists those that are there."
)


@pytest.mark.parametrize(
    ("model", "environment", "said"),
    [
        ("nonsense", {}, f"The model nonsense has no provider. {WAYS}"),
        ("rehersal", CLAUDE, f"The model rehersal has no provider. Did you mean rehearsal? {WAYS}"),
        ("cluade-opus", {}, f"The model cluade-opus has no provider. Did you mean claude-opus? {WAYS}"),
        ("cluade-opus", CLAUDE, f"The model cluade-opus has no provider. Did you mean claude-opus? {WAYS}"),
        ("gpt-5", CLAUDE, f"The model gpt-5 has no provider. Did you mean openai:gpt-5? {WAYS}"),
        ("openia:gpt-5", CLAUDE, f"The model openia:gpt-5 has no provider. Did you mean openai:gpt-5? {WAYS}"),
        ("Ollama:qwen3:8b", {}, f"The model Ollama:qwen3:8b has no provider. Did you mean ollama:qwen3:8b? {WAYS}"),
        ("mistral:large", CLAUDE, f"The model mistral:large has no provider. {WAYS}"),
        (
            "nonsense",
            OPENAI,
            f"The model nonsense has no provider. {WAYS} OPENAI_API_KEY is not used. For a model behind it start with "
            "--model openai:NAME.",
        ),
        (
            "openai:gpt-5.2",
            CLAUDE,
            "The model openai:gpt-5.2 has no provider. Set OPENAI_API_KEY, or OPENAI_BASE_URL for another server of "
            "OpenAI's API (llama.cpp: http://127.0.0.1:8080/v1), with OPENAI_API_KEY if it wants a key.",
        ),
        (
            "openai:",
            OPENAI,
            "--model openai: needs a name behind it, such as openai:gpt-5.2; a2a-canvas models lists those that are "
            "there.",
        ),
        ("ollama:qwen3", {"OLLAMA_HOST": "a:b"}, "OLLAMA_HOST=a:b: must look like 127.0.0.1:11434"),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused_with_the_ways_to_one(
    model: str, environment: dict[str, str], said: str
) -> None:
    assert refused(model, environment) == said


@pytest.mark.parametrize(
    ("model", "variable"),
    [(None, "ANTHROPIC_API_KEY"), ("claude-opus-5-5", "ANTHROPIC_API_KEY"), ("openai:gpt-5.2", "OPENAI_API_KEY")],
)
@pytest.mark.parametrize("key", ["sk-…", "sk-hunter2 # mine", "sk-hunter2\nX: y"])
def test_what_cannot_be_a_key_is_refused_without_showing_it(model: str | None, variable: str, key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        chosen(model, {variable: key})
    assert str(caught.value) == f"{variable} is no key: it contains characters that no key contains. Copy it again."


def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8080")
    said = refused("openai:x", {"OPENAI_BASE_URL": "localhost:8080"})
    assert said == "OPENAI_BASE_URL is not an address: it must look like http://127.0.0.1:8080/v1"


def test_a_library_that_is_missing_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.delitem(sys.modules, "a2a_canvas.server.agent.models.openai_compatible", raising=False)
    said = refused("openai:gpt-5.2", OPENAI)
    assert said == "openai:gpt-5.2 needs a library that is not installed: pip install 'a2a-canvas[openai]'"


def test_a_script_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert refused(f"script:{tmp_path}/none.yaml", {}).endswith("none.yaml: cannot be read: No such file or directory")


@pytest.mark.parametrize("model", ["openai:m", "ollama:m", "m"])
async def test_a_server_that_sends_all_of_its_thinking_again_is_declared(model: str) -> None:
    there = OPENAI | GATEWAY
    assert chosen(model, there).thinking == "delta"
    assert chosen(model, there, thinking="accumulated").thinking == "accumulated"


# ----------------------------------------------------------------- windows and addresses


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("gpt-5.2", 400_000),
        ("openai/gpt-5-mini", 400_000),
        ("gpt-5.2-chat-latest", 128_000),
        ("gpt-4.1-mini", 1_047_576),
        ("gpt-4o", 128_000),
        ("openai/gpt-oss-20b", 131_072),
        ("o3", 200_000),
        ("o4-mini", 200_000),
        ("anthropic/claude-sonnet-5-5", 200_000),
        ("coder", 128_000),
    ],
)
def test_a_window_is_what_is_known_of_the_name_unless_it_is_set(name: str, tokens: int) -> None:
    assert context_window(name, Settings()) == tokens
    assert context_window(name, Settings(context_window=9000)) == 9000


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":9000", "http://127.0.0.1:9000"),
        ("box", "http://box:11434"),
        ("box:9000", "http://box:9000"),
        ("[::1]:9000", "http://[::1]:9000"),
        ("http://box", "http://box:80"),
        ("https://box/ollama/", "https://box:443/ollama"),
    ],
)
def test_ollama_is_where_its_own_variable_says(given: str, address: str) -> None:
    assert ollama_address({"OLLAMA_HOST": given}) == address


# ------------------------------------------------------------------------------ Ollama

REQUEST = ModelRequest("Be brief.", (ModelMessage("user", (ModelText("Write."),)),))


async def test_ollama_is_asked_over_the_messages_api_at_its_address() -> None:
    api = MessagesApi(lambda _: Answer([says("Hello.")]))
    async with serving(api) as url:
        llm = chosen("ollama:qwen3:8b", {"OLLAMA_HOST": url.removeprefix("http://")} | CLAUDE)
        events = [event async for event in llm.stream(REQUEST)]
        await close_llm(llm)
    assert TextDelta(0, "Hello.") in events
    assert (api.requests[0]["model"], "thinking" in api.requests[0]) == ("qwen3:8b", False)


async def test_an_ollama_that_is_not_there_is_named_with_its_own_variable() -> None:
    address = f"127.0.0.1:{free_port()}"
    llm = chosen("ollama:qwen3", {"OLLAMA_HOST": address})
    with pytest.raises(ModelError) as caught:
        [event async for event in llm.stream(REQUEST)]
    await close_llm(llm)
    assert str(caught.value) == (
        f"The model provider at {address} cannot be reached: check the network and OLLAMA_HOST."
    )
