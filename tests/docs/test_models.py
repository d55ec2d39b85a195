"""docs/models.md: its recipes start what they say, its tables are those of the program, its session goes as shown."""

from __future__ import annotations

import io
import re
import shlex
import tomllib
from typing import Any

import httpx
import pytest
import respx
from starlette.testclient import TestClient

from a2a_canvas import LLM, Settings, create_app
from a2a_canvas.server.commands.models_command import models_command
from a2a_canvas.server.settings.model_choice import KINDS, choose_llm
from a2a_canvas.server.settings.settings import load
from tests.command_line import parsed
from tests.docs.pages import README, blocks, page, rows

PAGE = page("models")
RECIPES = re.findall(r"^    ((?:[A-Z_]+=\S+ )*)\.venv/bin/a2a-canvas (serve .*)$", PAGE, re.MULTILINE)
VARIABLES = [
    f"{provider}_{name}" for provider in ("ANTHROPIC", "OPENAI") for name in ("API_KEY", "AUTH_TOKEN", "BASE_URL")
]


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize(("variables", "command"), RECIPES, ids=[command for _, command in RECIPES])
async def test_every_recipe_starts_the_model_that_it_names(
    variables: str, command: str, environ: pytest.MonkeyPatch
) -> None:
    given = dict(each.split("=", 1) for each in variables.split())
    for name, value in given.items():
        assert name in PAGE.replace(variables, "")
        environ.setenv(name, value)
    settings = load(parsed(*shlex.split(command))[1])
    assert choose_llm(settings, given).name == settings.model


def test_there_are_recipes_for_all_kinds() -> None:
    assert len(RECIPES) == 5
    assert {row[0].strip("`").partition(":")[0] + ":" for row in rows(PAGE, "Models") if ":" in row[0]} == set(KINDS)


def test_the_settings_of_an_agent_are_settings() -> None:
    [block] = blocks(PAGE, "toml")
    settings = Settings(**tomllib.loads(block))
    assert (settings.model, settings.thinking, settings.context_window) == ("openai:coder", "accumulated", 65536)


@pytest.mark.parametrize(("models", "tokens"), rows(PAGE, "The context window"))
async def test_every_window_is_the_one_that_is_known(models: str, tokens: str) -> None:
    named = re.search("`(openai:|ollama:)([^`]*)`", models)
    name = f"{named[1]}{named[2] or 'coder'}" if named else None
    there = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    llm = choose_llm(Settings(model=name, max_output_tokens=1), there)
    assert llm.window == int(tokens.replace(",", "")) - 1  # type: ignore[attr-defined]


def test_every_value_of_thinking_has_a_row() -> None:
    for value, *_ in rows(PAGE, "Thinking"):
        assert Settings(thinking=value.strip("`")).thinking == value.strip("`")
    assert len(rows(PAGE, "Thinking")) == 3


LISTS = {
    "https://api.anthropic.com/v1/models?limit=1000": {
        "data": [{"id": "claude-sonnet-5-5"}, {"id": "claude-opus-5-5"}]
    },
    "http://127.0.0.1:11434/api/tags": {"models": [{"name": "qwen3-coder:latest"}]},
}


async def test_the_list_of_models_is_as_it_is_shown() -> None:
    [session] = blocks(PAGE, "console")
    out = io.StringIO()
    with respx.mock() as router:
        for url, listed in LISTS.items():
            router.get(url).mock(return_value=httpx.Response(200, json=listed))
        assert await models_command({"ANTHROPIC_API_KEY": "k"}, out) == 0
    assert session == f"$ .venv/bin/a2a-canvas models\n{out.getvalue()}"


def test_the_readme_names_the_kinds() -> None:
    assert [kind for kind in KINDS if kind not in README] == []


def test_a_model_of_your_own_answers_as_shown() -> None:
    [code] = blocks(PAGE, "python")
    names: dict[str, Any] = {}
    exec(code, names)
    model: LLM = names["Echo"]()
    app = create_app(Settings(database="memory", page=False, public_url="http://127.0.0.1:8000"), model)
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hello!"}]}
        request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        task = client.post("/", json=request, headers={"A2A-Version": "1.0"}).json()["result"]["task"]
    assert task["status"]["message"]["parts"] == [{"text": "You said: Hello!"}]
