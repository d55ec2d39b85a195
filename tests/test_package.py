"""The package as it is installed: built from what the Dockerfile copies, in an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest

from a2a_canvas.server.protocols.page.assets import media_type_of
from a2a_canvas.server.protocols.page.routes import CANVAS, FOLDERS
from a2a_canvas.server.settings.settings import PREFIX
from tests.dockerfile_steps import BUILD, ROOT, command, copied, variables, words_of
from tests.free_port import free_port


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build context as the first stage has it. Like COPY, this keeps links as links."""
    folder = tmp_path_factory.mktemp("src")
    for source in copied(BUILD):
        if (ROOT / source).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / source, folder / source, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / source, folder / source)
    return folder


def build_wheel(source: Path, out: Path) -> Path:
    build = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(out),
        str(source),
    ]
    subprocess.run([sys.executable, "-m", "pip", *build], check=True)
    [built] = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(sources, tmp_path_factory.mktemp("wheel"))


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_has_one_package_and_nothing_else_at_its_top(wheel: Path) -> None:
    metadata = f"a2a_canvas-{version('a2a-canvas')}.dist-info"
    assert {name.partition("/")[0] for name in names_in(wheel)} == {"a2a_canvas", metadata}


def test_the_wheel_has_every_module_the_revisions_the_page_and_the_agent_card(wheel: Path) -> None:
    folders = ("server", "store", "tools")
    modules = {f"a2a_canvas/{path.relative_to(ROOT)}" for folder in folders for path in (ROOT / folder).rglob("*.py")}
    public = ("__init__.py", "__main__.py", "frameworks.py", "llm.py", "testing.py")
    surface = {f"a2a_canvas/{name}" for name in (*public, "agent_card.json", "py.typed")}
    bundles = [path for folder in FOLDERS.values() for path in folder.rglob("*") if media_type_of(path.name)]
    page = {f"a2a_canvas/server/canvas/{path.relative_to(CANVAS)}" for path in bundles}
    scripts = {f"a2a_canvas/server/{name}.yaml" for name in ("agent/models/rehearsal/rehearsal", "commands/demo")}
    template = {
        f"a2a_canvas/{path.relative_to(ROOT)}" for path in (ROOT / "server/commands/template").rglob("*.template")
    }
    wanted = surface | modules | scripts | page | template
    assert {name for name in names_in(wheel) if ".dist-info/" not in name} == wanted
    assert "a2a_canvas/server/backend/migrations/versions/revision_0001.py" in wanted
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("a2a_canvas/agent_card.json") == (ROOT / "agent_card.json").read_bytes()


def test_a_wheel_built_from_the_source_distribution_is_the_same(sources: Path, wheel: Path, tmp_path: Path) -> None:
    program = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=sources, check=True, capture_output=True)
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    [unpacked] = (path for path in tmp_path.iterdir() if path.is_dir())
    assert names_in(build_wheel(unpacked, tmp_path)) == names_in(wheel)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, and with this one's packages for what it depends on."""
    folder = tmp_path_factory.mktemp("image") / "venv"
    venv.create(folder, symlinks=True)
    install = ["--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    [site] = folder.glob("lib/*/site-packages")
    # Behind the wheel's own. The .pth files in it, such as that of this checkout, have no effect.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder


PROJECT = """
import a2a_canvas, server, tools
from a2a_canvas import Settings, create_app
from a2a_canvas.server.protocols.a2a_v1.card.card import PACKAGED_CARD

create_app(Settings(database="memory", model="rehearsal"))
print(server.NAME, tools.NAME, a2a_canvas.__version__, PACKAGED_CARD.exists())
"""


def test_it_runs_beside_a_project_that_has_its_own_tools_and_server(installed: Path, tmp_path: Path) -> None:
    for name in ("server", "tools"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"NAME = 'my {name}'\n")
    (tmp_path / "main.py").write_text(PROJECT)
    assert run(tmp_path, installed / "bin/python", "main.py") == f"my server my tools {version('a2a-canvas')} True\n"
    for program in ([installed / "bin/a2a-canvas"], [installed / "bin/python", "-m", "a2a_canvas"]):
        assert run(tmp_path, *program, "--version") == f"a2a-canvas {version('a2a-canvas')}\n"


def run(folder: Path, *arguments: Path | str) -> str:
    return subprocess.run(
        arguments, cwd=folder, env=environment(folder), capture_output=True, text=True, check=True
    ).stdout


def test_the_command_starts_a_server_that_the_health_check_finds_well(installed: Path, tmp_path: Path) -> None:
    port = free_port()
    check = [word.replace("127.0.0.1:8000", f"127.0.0.1:{port}") for word in command(words_of("HEALTHCHECK")[0])]
    assert check[0] == "python"
    check[0] = sys.executable
    assert subprocess.run(check, capture_output=True).returncode != 0
    with running(installed, tmp_path, port):
        assert subprocess.run(check, env=environment(tmp_path)).returncode == 0
    assert (tmp_path / "data" / "a2a-canvas.db").exists()


def test_it_serves_its_own_card_unless_it_is_given_another(installed: Path, tmp_path: Path) -> None:
    port = free_port()
    own = json.loads((ROOT / "agent_card.json").read_text()) | {"name": "my own"}
    (tmp_path / "agent_card.json").write_text(json.dumps(own))
    with running(installed, tmp_path, port):
        assert name_in_card(port) == "a2a-canvas"
    with running(installed, tmp_path, port, "--agent-card", "agent_card.json"):
        assert name_in_card(port) == "my own"


def test_it_serves_the_page_with_its_modules_and_its_libraries(installed: Path, tmp_path: Path) -> None:
    port = free_port()
    with running(installed, tmp_path, port), httpx.Client(trust_env=False, base_url=f"http://127.0.0.1:{port}") as http:
        page = http.get("/", headers={"Accept": "text/html"}).text
        assets = http.get("/").json()["assets"]
        assert f'src="{assets}/main.js"' in page
        for name in ("main.js", "style/developer.css", "vendor/codemirror.js", "vendor/LICENSES.txt"):
            assert http.get(f"/{assets}/{name}").status_code == 200


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
def running(installed: Path, app: Path, port: int, *more: str) -> Iterator[None]:
    """The image's command, as it is installed, in a folder like the image's."""
    script, *arguments = command(words_of("CMD")[0])
    # The image listens on every address of its container; here the loopback has to do.
    here = ["--host", "127.0.0.1", "--port", str(port), *more]
    with subprocess.Popen(
        [script, *arguments, *here],
        cwd=app,
        env=environment(app) | {"PATH": f"{installed}/bin:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = ""
            while " listens on " not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            yield
        finally:
            process.terminate()
            process.communicate()
