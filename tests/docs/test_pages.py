"""Every link, option, variable, file, command and make target that a page names exists."""

from __future__ import annotations

import re

import pytest

from a2a_canvas.server.settings.settings import PREFIX, Settings
from a2a_canvas.server.wire import TOKEN_VARIABLE, URL_VARIABLE
from tests.command_line import commands, option_strings
from tests.docs.pages import PAGES, ROOT, anchors, blocks, prose

ALL = "\n".join(PAGES.values())

OPERATED = {f"docs/{name}.md" for name in ("deploy", "identity", "quotas", "durability", "observability", "operations")}
"""Pages for operators: their commands are those of an installed package or a container."""

FOREIGN_OPTIONS = {
    *("--rm", "--name", "--restart", "--stop-timeout", "--build", "--build-arg", "--scale"),  # docker
    *("--read-only", "--tmpfs", "--cap-drop", "--security-opt"),
    *("--require-hashes", "--no-deps", "--no-build-isolation"),  # pip
    *("--yes", "--no-install-recommends"),  # apt-get
    "--transport",  # claude mcp add
    *("--stop", "--now"),  # pg_dropcluster, systemctl
    *("--format", "--file", "--no-owner", "--dbname", "--pgdata", "--write-recovery-conf"),  # PostgreSQL's programs
    *("--served-model-name", "--enable-auto-tool-choice", "--tool-call-parser", "--jinja", "--ctx-size", "--config"),
    *("--only", "--quick", "--seconds", "--people", "--agents", "--think", "--seed"),  # the benchmarks
}


def test_every_option_exists() -> None:
    options = {word for _, command in commands() for word in option_strings(command)}
    assert set(re.findall(r"(?<=[\s`\"])--[a-z][\w.-]*\w", ALL)) <= options | FOREIGN_OPTIONS


def test_every_variable_exists() -> None:
    variables = {PREFIX + field.upper() for field in Settings.model_fields} | {TOKEN_VARIABLE, URL_VARIABLE}
    assert set(re.findall(rf"{PREFIX}[A-Z0-9_]+", ALL)) <= variables


@pytest.mark.parametrize("page", [name for name in PAGES if name != "CHANGELOG.md"])
def test_every_file_exists(page: str) -> None:
    paths = re.findall(r"`((?:server|store|tools|tests|bench|docs|deploy)/[\w/.-]*)`", PAGES[page])
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_command_is_named() -> None:
    assert [name for name, _ in commands() if not re.search(rf"[` ]{name}[` ]", ALL)] == []


def test_every_make_target_exists() -> None:
    named = set(re.findall(r"(?:^ +|`)make ([a-z-]+)", ALL, re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"serve", "test", "check"} <= named <= targets


@pytest.mark.parametrize("page", PAGES)
def test_every_link_within_the_project_leads_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose(PAGES[page]))):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            other = folder / path if path else ROOT / page
            assert other.exists(), target
            assert not anchor or anchor in anchors(other.read_text()), target


def test_the_readme_links_to_every_page() -> None:
    linked = set(re.findall(r"\]\(((?:docs/)?[\w-]+\.md)\)", PAGES["README.md"]))
    assert linked == PAGES.keys() - {"README.md"}


@pytest.mark.parametrize("page", [name for name in PAGES if name != "CHANGELOG.md"])
def test_percentiles_are_called_by_their_names(page: str) -> None:
    assert re.findall(r"9\d of 100|\bmedian\b", PAGES[page]) == []


@pytest.mark.parametrize("page", [name for name in PAGES if name not in OPERATED])
def test_commands_to_copy_are_those_of_a_clone(page: str) -> None:
    bare = r"^(?:    |\$ |)(?:[A-Z_]+=\S+ )*a2a-canvas [a-z].*$"
    shown = "\n".join([*blocks(PAGES[page], "(?:sh|console)"), *re.findall("^    .*$", PAGES[page], re.MULTILINE)])
    assert re.findall(bare, shown, re.MULTILINE) == []


def test_the_pages_for_operators_say_where_the_command_is() -> None:
    assert "`.venv/bin/a2a-canvas`" in PAGES["docs/deploy.md"]
    others = [PAGES[name] for name in OPERATED if name != "docs/deploy.md"]
    assert all("[installed command](deploy.md#one-server)" in text for text in others)
