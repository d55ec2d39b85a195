"""What the targets of the Makefile would run in a checkout without an environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml", "requirements.txt", "requirements-dev.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def would_run(checkout: Path, target: str, path: str = os.defpath) -> str:
    environment = {"PATH": path}
    done = subprocess.run(
        [shutil.which("make") or "make", "--dry-run", target],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_serve_installs_the_server_and_what_tests_of_an_agent_need(checkout: Path) -> None:
    lines = would_run(checkout, "serve")
    assert (
        "pip --disable-pip-version-check install --quiet --require-hashes -r requirements.txt -c requirements.txt\n"
        in lines
    )
    assert "pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation -e .\n" in lines


@pytest.mark.parametrize("target", ["test", "test-all", "check", "bench"])
def test_the_other_targets_install_the_checks_and_the_tests(checkout: Path, target: str) -> None:
    assert "install --quiet --require-hashes -r requirements-dev.txt -c requirements-dev.txt\n" in would_run(
        checkout, target
    )


def test_serve_installs_nothing_where_the_checks_and_the_tests_are(checkout: Path) -> None:
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / ".done").touch()
    assert "install" not in would_run(checkout, "serve")


def test_uv_is_used_if_it_is_there(checkout: Path) -> None:
    uv = checkout / "bin" / "uv"
    uv.parent.mkdir()
    uv.touch(mode=0o755)
    lines = would_run(checkout, "serve", f"{uv.parent}:{os.defpath}")
    assert "uv venv --seed" in lines  # with pip, which installs what an agent's tools need
    assert "uv pip install --quiet --require-hashes -r requirements.txt -c requirements.txt\n" in lines
    assert "-m pip" not in lines


def test_help_lists_every_target(checkout: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.findall(r"^\.PHONY: (.*)", makefile, re.MULTILINE)
    targets = {target for line in phony for target in line.split()}
    # Not the environment of a `make test` that runs this: make names its folder in a make within a make.
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(["make", "help"], cwd=checkout, env=environment, capture_output=True, text=True, check=True)
    assert {line.split()[0] for line in done.stdout.splitlines()} == targets
