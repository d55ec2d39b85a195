"""The Dockerfile, read line by line, and its steps done as far as they can be without an engine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from a2a_canvas.server.settings import PREFIX, Settings
from tests.free_port import free_port

ROOT = Path(__file__).parent.parent
BUILD, FINAL = 0, 1


@dataclass(frozen=True)
class Step:
    stage: int
    name: str
    words: str


def read_steps() -> list[Step]:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    steps: list[Step] = []
    stage = -1
    for line in filter(None, (line.strip() for line in text.splitlines())):
        if not line.startswith("#"):
            name, _, words = line.partition(" ")
            stage += name == "FROM"
            steps.append(Step(stage, name, words.strip()))
    return steps


STEPS = read_steps()


def words_of(name: str, stage: int = FINAL) -> list[str]:
    return [step.words for step in STEPS if step.name == name and step.stage == stage]


def copied(stage: int) -> list[str]:
    """What a stage copies from the build context."""
    lines = [words.split() for words in words_of("COPY", stage) if not words.startswith("--from")]
    return [source for line in lines for source in line[:-1]]


def command(words: str) -> list[str]:
    """The words of a CMD in its exec form."""
    listed: list[str] = json.loads(words[words.index("[") :])
    return listed


# ------------------------------------------------------------------- what can be read


def test_it_has_two_stages_from_the_same_slim_image() -> None:
    images = [step.words.split()[0] for step in STEPS if step.name == "FROM"]
    assert images == ["python:3.11-slim", "python:3.11-slim"]


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
    assert command(words_of("CMD")[0]) == ["a2a-canvas", "serve", "--host", "0.0.0.0"]
    assert f"http://127.0.0.1:{port}/healthz" in words_of("HEALTHCHECK")[0]


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


def variables() -> dict[str, str]:
    """What the image sets in its environment."""
    return dict(word.split("=", 1) for words in words_of("ENV") for word in words.split())


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


def test_every_package_that_the_image_gets_is_pinned() -> None:
    assert "/venv/bin/pip install --no-cache-dir -c constraints.txt ." in words_of("RUN", BUILD)
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    # `pip freeze` leaves setuptools out.
    pinned = {canonicalize_name(name) for name in (*pins, "setuptools")}
    assert needed("a2a-canvas") - pinned == set()


def needed(package: str, *extras: str) -> set[str]:
    """The packages that installing `package` brings, by what the installed ones say of themselves."""
    todo, found = [(package, frozenset(extras))], set[tuple[str, frozenset[str]]]()
    while todo:
        found.add(one := todo.pop())
        for requirement in map(Requirement, requires(one[0]) or ()):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in one[1] | {""}):
                nxt = (canonicalize_name(requirement.name), frozenset(requirement.extras))
                todo += [] if nxt in found else [nxt]
    return {name for name, _ in found} - {package}


# ------------------------------------------------------------------- what can be done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as the first stage's `pip install .` builds it, from the copied files alone."""
    source, out = tmp_path_factory.mktemp("src"), tmp_path_factory.mktemp("wheel")
    copy_into(source, copied(BUILD))
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(out), "."]
    subprocess.run([sys.executable, "-m", "pip", *build], cwd=source, check=True)
    [built] = out.glob("*.whl")
    return built


def copy_into(folder: Path, sources: list[str]) -> None:
    for source in sources:
        origin = ROOT / source
        if origin.is_dir():
            shutil.copytree(origin, folder / source, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, folder / source)


def test_the_wheel_has_every_module(wheel: Path) -> None:
    folders = [source for source in copied(BUILD) if (ROOT / source).is_dir()]
    written = {str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.py")}
    with zipfile.ZipFile(wheel) as archive:
        assert written - set(archive.namelist()) == set()


def test_the_wheel_has_the_agent_card(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/agent_card.json")]
        assert name.endswith(".data/data/share/a2a-canvas/agent_card.json")
        assert archive.read(name) == (ROOT / "agent_card.json").read_bytes()


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, and with this one's packages for what it depends on."""
    folder = tmp_path_factory.mktemp("image") / "venv"
    venv.create(folder, symlinks=True)
    install = ["--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    [site] = folder.glob("lib/*/site-packages")
    # Behind the wheel's own; what stands in .pth files, as this checkout does, is not taken along.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def test_the_command_starts_a_server_that_the_health_check_finds_well(installed: Path, tmp_path: Path) -> None:
    port = free_port()
    check = [word.replace("127.0.0.1:8000", f"127.0.0.1:{port}") for word in command(words_of("HEALTHCHECK")[0])]
    assert check[0] == "python"
    check[0] = sys.executable
    assert subprocess.run(check, capture_output=True).returncode != 0
    with running(installed, tmp_path, port):
        assert subprocess.run(check, env=environment(tmp_path)).returncode == 0
    assert (tmp_path / "data" / "a2a-canvas.db").exists()


def test_the_wheel_alone_serves_its_card_and_the_one_in_the_working_directory_wins(
    installed: Path, tmp_path: Path
) -> None:
    port = free_port()
    with running(installed, tmp_path, port):
        assert name_in_card(port) == "a2a-canvas"
    own = json.loads((ROOT / "agent_card.json").read_text()) | {"name": "my own"}
    (tmp_path / "agent_card.json").write_text(json.dumps(own))
    with running(installed, tmp_path, port):
        assert name_in_card(port) == "my own"


def name_in_card(port: int) -> str:
    answer = httpx.get(f"http://127.0.0.1:{port}/.well-known/agent-card.json", trust_env=False)
    name: str = answer.json()["name"]
    return name


def environment(app: Path) -> dict[str, str]:
    """The image's, with a folder for its volume."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith((PREFIX, "ANTHROPIC_"))}
    volume = app / "data"
    volume.mkdir(exist_ok=True)
    set_in_image = {
        name: value.replace("////data/", f"///{volume}/")
        for name, value in variables().items()
        if name.startswith(PREFIX)
    }
    return {**kept, **set_in_image, "NO_PROXY": "127.0.0.1"}


@contextmanager
def running(installed: Path, app: Path, port: int) -> Iterator[None]:
    """The image's command, as it is installed, in a folder like the image's."""
    script, *arguments = command(words_of("CMD")[0])
    # The image listens on every address of its container; here the loopback has to do.
    here = ["--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(
        [installed / "bin" / script, *arguments, *here],
        cwd=app,
        env=environment(app),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = ""
            while "Uvicorn running" not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            yield
        finally:
            process.terminate()
            process.communicate()
