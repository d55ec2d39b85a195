"""What is pinned: every package with the hashes of its files, and nothing that is installed is anything else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import distributions, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
NEEDED = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]
FILES = {
    "requirements.txt": [*NEEDED, *EXTRAS["mcp"], *EXTRAS["openai"], *EXTRAS["test"]],
    "requirements-dev.txt": [*NEEDED, *EXTRAS["dev"]],
}
"""What each file has to pin. An installation adds nothing to it: it is one without build isolation and dependencies."""

PIN = re.compile(r"(\S+)==(\S+?)(?: ; .+?)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def text_of(name: str) -> str:
    """The file without the comment that begins it."""
    return re.sub(r"\A(?:#.*\n)+", "", (ROOT / name).read_text())


def pins(name: str) -> dict[str, str]:
    return {canonicalize_name(package): version for package, version, _ in PIN.findall(text_of(name))}


@pytest.mark.parametrize("name", FILES)
def test_every_line_is_a_package_with_one_version_and_hashes(name: str) -> None:
    found = PIN.findall(text_of(name))
    assert PIN.sub("", text_of(name)) == ""
    assert len(pins(name)) == len(found)


@pytest.mark.parametrize("name", FILES)
def test_what_the_project_needs_is_pinned_and_so_is_all_that_this_needs(name: str) -> None:
    pinned = pins(name)
    unmet = [
        needed
        for needed in all_needed(FILES[name])
        if (version := pinned.get(canonicalize_name(needed.name))) is None
        or not needed.specifier.contains(version, prereleases=True)
    ]
    assert unmet == [], "make lock pins it"


def all_needed(lines: list[str]) -> Iterator[Requirement]:
    """What installing these brings here, by what the installed packages say of themselves."""
    todo, seen = [(line, frozenset({""})) for line in lines], set[tuple[str, frozenset[str]]]()
    while todo:
        line, extras = todo.pop()
        needed = Requirement(line)
        if needed.marker and not any(needed.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        yield needed
        one = (needed.name, frozenset({"", *needed.extras}))
        if one not in seen:
            seen.add(one)
            todo += [(further, one[1]) for further in requires(needed.name) or ()]


def test_the_server_is_checked_with_the_versions_that_it_runs_with() -> None:
    assert pins("requirements.txt").items() <= pins("requirements-dev.txt").items()


def test_what_is_installed_here_is_what_is_pinned() -> None:
    installed = {canonicalize_name(one.name): one.version for one in distributions()}
    pinned = pins("requirements-dev.txt")
    others = {name: version for name, version in installed.items() if pinned.get(name) != version}
    # They come with the environment and by the installation of this project.
    assert others.keys() <= {"pip", "wheel", "a2a-canvas"}


@pytest.mark.parametrize("name", ["package-lock.json", "tests/server/protocols/agui/package-lock.json"])
def test_every_package_of_javascript_has_a_hash(name: str) -> None:
    packages: dict[str, dict[str, str]] = json.loads((ROOT / name).read_text())["packages"]
    assert [path for path, package in packages.items() if path and "integrity" not in package] == []


@pytest.mark.parametrize("name", [*FILES, "package-lock.json", "tests/server/protocols/agui/package-lock.json"])
def test_no_registry_is_named(name: str) -> None:
    assert not re.search(r"index-url|find-links|\"resolved\"", (ROOT / name).read_text())


# ------------------------------------------------------------------- what make does with a hash

TINY = {
    "tiny.py": "",
    "tiny-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n",
    "tiny-1.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "tiny-1.dist-info/RECORD": "",
}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    made = tmp_path / "wheels" / "tiny-1-py3-none-any.whl"
    made.parent.mkdir()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in TINY.items():
            archive.writestr(name, content)
    return made


def make_server(wheel: Path, pin: str) -> subprocess.CompletedProcess[str]:
    """`make .venv/.server`, as far as it installs what is pinned, without the network and into nothing."""
    checkout = wheel.parent.parent / "checkout"
    (checkout / ".venv").mkdir(parents=True)
    (checkout / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    (checkout / "requirements.txt").write_text(pin)
    (checkout / "pyproject.toml").write_text('[project]\nname = "a2a-canvas"\nversion = "1"\n')
    return subprocess.run(
        ["make", ".venv/.server", "VENV=true", f"PYTHON={sys.executable}", f"PIP={sys.executable} -m pip"],
        cwd=checkout,
        env={
            "PATH": os.environ["PATH"],
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DRY_RUN": "1",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheel.parent),
        },
        capture_output=True,
        text=True,
    )


@pytest.mark.process
def test_a_file_with_the_hash_is_installed(wheel: Path) -> None:
    made = make_server(wheel, f"tiny==1 --hash=sha256:{sha256(wheel.read_bytes()).hexdigest()}\n")
    assert made.returncode == 0, made.stderr


@pytest.mark.process
@pytest.mark.parametrize("pin", ["tiny==1", f"tiny==1 --hash=sha256:{sha256().hexdigest()}"], ids=["none", "another"])
def test_a_file_with_another_hash_is_refused(wheel: Path, pin: str) -> None:
    made = make_server(wheel, f"{pin}\n")
    assert made.returncode != 0
    assert re.search("HASHES|Hashes are required", made.stderr)
