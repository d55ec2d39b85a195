"""What a user must install for a framework, and whether what is installed can be used."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from a2a_canvas.server.tool_sources import framework_extras
from a2a_canvas.server.tool_sources.framework_extras import EXTRAS, advise_upgrades, how_to_install, upgrade_advice

PYPROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
DISTRIBUTIONS = {
    "pydantic-ai": "pydantic-ai-slim",
    "langgraph": "langgraph",
    "openai-agents": "openai-agents",
    "google-adk": "google-adk",
}


def test_every_framework_has_an_extra_with_its_lowest_version() -> None:
    assert set(EXTRAS.values()) == DISTRIBUTIONS.keys()
    for extra, distribution in DISTRIBUTIONS.items():
        [declared] = PYPROJECT["project"]["optional-dependencies"][extra]
        name, least = framework_extras._requirement(extra)
        assert name == distribution
        assert declared.startswith(f"{name}>={least},")


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("pydantic_ai", "pip install 'a2a-canvas[pydantic-ai]'"),
        ("pydantic_ai.durable_exec", "pip install 'a2a-canvas[pydantic-ai]'"),
        ("agents", "pip install 'a2a-canvas[openai-agents]'"),
        ("google.adk", "pip install 'a2a-canvas[google-adk]'"),
        ("google.genai.types", "pip install 'a2a-canvas[google-adk]'"),
        ("langchain_core.messages", "pip install 'a2a-canvas[langgraph]'"),
        ("pydantic_airlines.x", "pip install pydantic_airlines"),
        ("google.cloud", "pip install google"),
    ],
)
def test_a_missing_module_is_installed_with_its_extra(monkeypatch: pytest.MonkeyPatch, module: str, says: str) -> None:
    monkeypatch.setattr(framework_extras, "version_of", lambda name: "")
    assert how_to_install(module) == f"Install it where a2a-canvas runs: {says}"


@pytest.mark.parametrize(
    ("found", "is_old"),
    [
        *(("1.2.21", True), ("1.2", True), ("0.9", True), ("1.2.9", True)),
        *(("1.2.22", False), ("1.2.22.0", False), ("1.2.22b1", False), ("1.10", False), ("2", False), ("", False)),
    ],
)
def test_versions_are_compared_by_number(monkeypatch: pytest.MonkeyPatch, found: str, is_old: bool) -> None:
    monkeypatch.setattr(framework_extras, "version_of", lambda name: found)
    assert bool(upgrade_advice("langgraph")) == is_old


def test_a_part_that_an_old_version_lacks_is_installed_by_an_upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework_extras, "version_of", lambda name: "1.0")
    says = "pydantic-ai-slim 1.0 is too old, because a2a-canvas needs 2.68: pip install 'a2a-canvas[pydantic-ai]' --up"
    assert how_to_install("pydantic_ai.durable_exec").startswith(says)
    monkeypatch.setitem(sys.modules, "pydantic_ai", ModuleType("pydantic_ai"))
    assert any(sentence.startswith(says) for sentence in advise_upgrades())


def test_other_distributions_are_never_too_old() -> None:
    assert (upgrade_advice("crewai"), upgrade_advice("")) == ("", "")
