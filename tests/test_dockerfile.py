"""What the Dockerfile says. What its steps make is tested in `test_package.py`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from a2a_canvas.server.settings.settings import PREFIX, Settings
from tests.dockerfile_steps import BUILD, FINAL, ROOT, STEPS, command, copied, variables, words_of


def test_its_two_stages_are_from_the_same_slim_image_that_a_build_can_replace_by_a_digest() -> None:
    assert STEPS[0].words == "PYTHON_IMAGE=python:3.11-slim"
    images = [step.words.split()[0] for step in STEPS if step.name == "FROM"]
    assert images == ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}"]


def test_nothing_is_fetched_but_by_pip() -> None:
    assert not [
        step
        for step in STEPS
        if step.name == "ADD" or ("://" in step.words and step.name not in ("HEALTHCHECK", "ENV"))
    ]


def test_it_does_not_run_as_root() -> None:
    [user] = words_of("USER")
    assert user not in ("0", "root")
    names = [step.name for step in STEPS if step.stage == FINAL]
    assert not {"RUN", "COPY"}.intersection(names[names.index("USER") :])
    assert any(f"--uid {user} " in words for words in words_of("RUN"))


def test_it_serves_on_the_default_port_and_on_every_address() -> None:
    port = Settings.model_fields["port"].default
    assert words_of("EXPOSE") == [str(port)]
    assert "exec a2a-canvas serve --host 0.0.0.0 " in command(words_of("CMD")[0])[2]
    assert f"http://127.0.0.1:{port}/healthz" in words_of("HEALTHCHECK")[0]


@pytest.mark.parametrize("mounted", [True, False])
def test_it_serves_the_agent_in_its_folder_if_there_is_one(tmp_path: Path, mounted: bool) -> None:
    if mounted:
        (tmp_path / "agent").mkdir()
    program = tmp_path / "a2a-canvas"
    program.write_text('#!/bin/sh\necho "$@"')
    program.chmod(0o755)
    shell, option, script, *name = command(words_of("CMD")[0])
    ran = subprocess.run(
        [shell, option, script.replace("/agent", str(tmp_path / "agent")), *name],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    folder = f" {tmp_path}/agent" if mounted else ""
    assert ran.stdout == f"serve --host 0.0.0.0{folder}\n"


def test_what_it_keeps_is_on_a_volume_of_the_user_that_it_runs_as() -> None:
    [user], [volume] = words_of("USER"), words_of("VOLUME")
    [made] = words_of("RUN")
    name = re.search(rf"useradd --uid {user} .* (\w+) &&", made)
    assert name
    assert made.endswith(f"&& install --directory --owner={name[1]} {volume}")
    assert Settings(database=variables()["A2A_CANVAS_DATABASE"]).database.startswith(f"sqlite:///{volume}/")


def test_every_setting_that_the_image_has_is_one() -> None:
    fields = {PREFIX + field.upper() for field in Settings.model_fields}
    assert {name for name in variables() if name.startswith(PREFIX)} <= fields


def test_the_memory_of_requests_that_are_over_is_kept_in_few_places() -> None:
    assert variables()["MALLOC_ARENA_MAX"] == "2"


def test_the_virtual_environment_stands_at_the_same_path_in_both_stages_and_comes_first() -> None:
    assert "python -m venv /venv" in words_of("RUN", BUILD)
    assert "--from=build /venv /venv" in words_of("COPY")
    assert any(words.startswith("PATH=/venv/bin:$PATH") for words in words_of("ENV"))


def test_the_build_context_has_exactly_what_is_copied() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    sources = copied(BUILD) + copied(FINAL)
    assert "*" in lines
    assert sorted(line[1:] for line in lines if line.startswith("!")) == sorted(sources)
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_the_dependencies_are_installed_with_their_hashes_before_the_sources_are_copied() -> None:
    steps = [(step.name, step.words) for step in STEPS if step.stage == BUILD]
    copied_at = steps.index(("COPY", "requirements.txt ./"))
    installed = ("RUN", "/venv/bin/pip install --no-cache-dir --require-hashes -r requirements.txt -c requirements.txt")
    assert steps[copied_at + 1] == installed
    assert copied_at < steps.index(("COPY", "a2a_canvas a2a_canvas"))
    assert steps[-1] == ("RUN", "/venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation .")
