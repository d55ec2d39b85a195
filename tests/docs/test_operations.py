"""docs/operations.md: its commands for servers, compose, backups and the database can be given."""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from a2a.utils.errors import A2A_ERROR_MAPPING
from starlette.applications import Starlette

import a2a_canvas
from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.model import ErrorKind, StopReason
from a2a_canvas.server.agent.models.wrappers import provider_of
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.edge.availability import RETRY_AFTER, TooManyRequestsError, UnavailableError
from a2a_canvas.server.protocols.edge.error_tables import rpc_code
from a2a_canvas.server.protocols.edge.request_metrics import binding_of
from a2a_canvas.server.protocols.identity.attempts import BURST, SECONDS_PER_ATTEMPT
from a2a_canvas.server.protocols.identity.denials import UnauthenticatedError
from a2a_canvas.server.protocols.identity.json_web_tokens import ALGORITHMS, LEEWAY
from a2a_canvas.server.protocols.identity.published import MAX_AGE, MIN_INTERVAL
from a2a_canvas.server.settings.settings import PREFIX, load
from tests.command_line import parsed
from tests.database_fixtures import postgresql_url
from tests.docs.metrics_table import generated
from tests.docs.pages import ROOT, blocks, page, rows, section

PAGE = page("operations")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_an_unavailable_database_is_answered_with_the_codes_of_the_server() -> None:
    mapping = A2A_ERROR_MAPPING[UnavailableError]
    [retry_after] = RETRY_AFTER.items()
    told = section(PAGE, "When the database is unavailable")
    codes = ("-32603", str(mapping.http_code), mapping.grpc_status, "`{}: {}`".format(*retry_after))
    assert all(code in told for code in codes)


def test_the_application_can_be_made_as_shown() -> None:
    names: dict[str, Any] = {}
    [code] = blocks(PAGE, "python")
    exec(code, names)
    assert isinstance(names["app"], Starlette)
    told = re.findall(r"`(\w+)`", section(PAGE, "As a Python package").split("public names are")[1].split(";")[0])
    assert set(told) == set(a2a_canvas.__all__)


def test_what_is_pinned_is_installed_as_the_image_does_and_every_image_that_is_named_can_be_given() -> None:
    told = section(PAGE, "What is pinned")
    dockerfile = (ROOT / "Dockerfile").read_text()
    installs = re.findall(r"^    pip install (.+)$", told, re.MULTILINE)
    assert installs == re.findall(r"pip install --no-cache-dir (.+)", dockerfile)
    variables = dict(re.findall(r"\$\{(\w+_IMAGE):-(.+)\}", (ROOT / "compose.yaml").read_text()))
    variables |= dict(re.findall(r"^ARG (\w+)=(.+)", dockerfile, re.MULTILINE))
    assert set(re.findall(r"\w+_IMAGE", told)) == variables.keys()
    assert set(re.findall(r"`(\w+:[\w.-]+)`", told)) == set(variables.values())


def test_the_load_balanced_servers_are_those_of_the_compose_file() -> None:
    told = section(PAGE, "Several servers")
    numbers = ("no", "one", "two", "three", "four", "five")
    assert f"{numbers[COMPOSE['services']['server']['deploy']['replicas']]} servers" in told
    published = [port.split(":")[1] for port in COMPOSE["services"]["balancer"]["ports"]]
    assert all(port in told for port in published)
    assert set(re.findall(r"--scale (\w+)=", told)) <= COMPOSE["services"].keys()
    [password] = re.findall(r"\b(\w+)=\S+ docker compose", told)
    assert f"${{{password}:?" in (ROOT / "compose.yaml").read_text()


def test_the_table_of_metrics_is_the_one_that_is_generated() -> None:
    assert generated(PAGE) == PAGE, "run `make docs`"


def test_the_labels_of_the_metrics_have_the_values_of_the_code() -> None:
    told = {row[0].strip("`"): set(re.findall(r"`([\w+-]+)`", row[1])) for row in label_rows()}
    assert told.keys() == {label for series in Metrics().all for label in series.labels}
    assert told["state"] == {state.value for state in State if state.settled}
    assert told["kind"] == set(get_args(ErrorKind))
    assert told["stop_reason"] == set(get_args(StopReason))
    names = ("claude-x", "openai:x", "ollama:x", "script:x.yaml", "rehearsal")
    assert told["provider"] == {provider_of(name) for name in names}
    paths = ("/", "/rest/x", "/canvas/stream", "/artifacts", "/x")
    assert told["binding"] == {*(binding_of("POST", path) for path in paths), "GRPC"}
    assert told["reason"] <= {status.name.lower() for status in HTTPStatus}


def label_rows() -> list[list[str]]:
    return rows("# Labels\n" + section(PAGE, "Metrics").partition("<!-- End of the metrics")[2], "Labels")


def test_alerts_and_scraping_name_metrics_that_there_are() -> None:
    scraping, alerts = (yaml.safe_load(block) for block in blocks(section(PAGE, "Metrics"), "yaml"))
    [job] = scraping["scrape_configs"]
    assert job["static_configs"][0]["targets"] == ["127.0.0.1:9100"]
    [group] = alerts["groups"]
    named = {name for rule in group["rules"] for name in re.findall(r"a2a_canvas_\w+", rule["expr"])}
    assert {name.removesuffix("_bucket") for name in named} <= {series.name for series in Metrics().all}


def test_the_checks_of_the_doctor_are_those_of_the_code() -> None:
    source = "".join(path.read_text() for path in (ROOT / "server/commands/doctor").glob("*.py"))
    made = set(re.findall(r'\b(?:ok|warning|failed)\)?\(\s*"(\w+)"', source))
    told = re.findall(r"^\| (`[^|]*`) \|", section(PAGE, "Doctor"), re.MULTILINE)
    assert {name for names in told for name in re.findall(r"`(\w+)`", names)} == made


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A SQLite file whose latest transactions are in its write-ahead log alone, because it is open elsewhere."""
    path = tmp_path / "a2a-canvas.db"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"{PREFIX}DATABASE", f"sqlite:///{path}")
    assert main(["db", "upgrade"]) == 0
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO task_contexts VALUES ('t', 'c')")
    connection.commit()
    assert path.with_name(path.name + "-wal").stat().st_size
    yield path
    connection.close()


def backups() -> list[str]:
    umask, *commands = blocks(section(PAGE, "Backups"), "sh")[0].splitlines()
    return [command if command.startswith("docker ") else f"{umask}; {command}" for command in commands]


@pytest.mark.parametrize("number", range(3), ids=["backup", "vacuum", "container"])
def test_every_backup_of_sqlite_is_whole(number: int, database: Path) -> None:
    command = backups()[number]
    container = command.startswith("docker exec canvas ")
    if container:
        assert "--name canvas " in section(PAGE, "One server")
        command = command.removeprefix("docker exec canvas ").replace("/data/", f"{database.parent}/")
        command = command.replace("python ", f"{sys.executable} ", 1)
    elif not shutil.which("sqlite3"):
        pytest.skip("needs the command sqlite3")
    subprocess.run(["bash", "-c", command], cwd=database.parent, check=True)
    [copy] = database.parent.glob("backup*.db")
    assert not copy.stat().st_mode & 0o077
    with sqlite3.connect(copy) as connection:
        assert connection.execute("SELECT context_id FROM task_contexts").fetchall() == [("c",)]
    connection.close()
    assert main(["db", "check", "--database", f"sqlite:///{copy}"]) == 0


@pytest.mark.postgres
def test_a_backup_of_postgresql_can_be_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("pg_dump"):
        pytest.skip("needs PostgreSQL's programs: install the Debian package postgresql-client")
    umask, pg_dump, restore = blocks(section(PAGE, "Backups"), "sh")[1].splitlines()
    dump = f"{umask}; {pg_dump}"
    first, second = postgresql_url(), postgresql_url()
    for url, command in ((first, dump), (second, restore)):
        monkeypatch.setenv(f"{PREFIX}DATABASE", url)
        if command is dump:
            assert main(["db", "upgrade"]) == 0
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert not next(tmp_path.iterdir()).stat().st_mode & 0o077
    assert main(["db", "check"]) == 0


def test_every_command_for_the_database_can_be_given(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^    a2a-canvas (db .*)$", PAGE, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        assert main(shlex.split(command)) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said[-2:]] == ["Would", "Removed"]


def test_every_command_for_keys_can_be_given(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^    a2a-canvas (key .*)$", section(PAGE, "Who may use it"), re.MULTILINE)
    assert [command.split()[1] for command in commands] == ["new", "new", "list", "revoke"]
    for command in commands:
        assert main(shlex.split(command)) == 0
    assert "ann" in capsys.readouterr().out


def test_the_codes_of_who_is_refused_are_those_of_the_server() -> None:
    [*_, table] = re.findall(r"(?:^\|.*\n)+", section(PAGE, "Who may use it"), re.MULTILINE)
    for kind in (UnauthenticatedError, TooManyRequestsError):
        mapping = A2A_ERROR_MAPPING[kind]
        told = (str(mapping.http_code), mapping.grpc_status, str(rpc_code(kind)))
        assert all(code in table for code in told)
    minute = f"{BURST} times at once and then {60 / SECONDS_PER_ATTEMPT:.0f} times a minute"
    assert minute in section(PAGE, "Who may use it")


def test_the_signatures_and_the_times_of_tokens_are_those_of_the_server() -> None:
    told = " ".join(section(PAGE, "Tokens of an issuer").split())
    *names, last = (name for names in ALGORITHMS.values() for name in names)
    assert f"Signatures are {', '.join(names)} or {last}," in told
    assert f"Clocks may differ by {LEEWAY} seconds" in told
    assert f"kept for {MAX_AGE / 60:.0f} minutes" in told
    assert f"at most every {MIN_INTERVAL:.0f} seconds" in told


def test_every_server_that_is_started_could_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "card.pem").touch()
    serves = re.findall(r"^    a2a-canvas (serve .*)$", PAGE, re.MULTILINE)
    [url] = re.findall(rf"^    export {PREFIX}DATABASE=(\S+)$", PAGE, re.MULTILINE)
    assert serves
    monkeypatch.setenv(f"{PREFIX}DATABASE", url)
    for command in serves:
        _, options = parsed(*shlex.split(command))
        assert load(options).database == url
