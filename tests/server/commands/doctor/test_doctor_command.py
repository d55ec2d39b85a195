"""`a2a-canvas doctor` as a whole: what it finds of a server that could run, that could not, and that runs."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import resource
import shutil
import socket
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from a2a_canvas.server.agent.model import ModelError, ModelEvent, ModelRequest, TextDelta
from a2a_canvas.server.backend.migrations import newest
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.commands.doctor import local_checks
from a2a_canvas.server.commands.doctor.doctor_command import doctor_command
from a2a_canvas.server.protocols.identity.issuer import Issuer
from a2a_canvas.server.settings.settings import PREFIX, Settings
from tests.broker_fixtures import private_nats
from tests.certificates import issue
from tests.database_fixtures import execute, postgresql_url
from tests.free_port import free_port
from tests.new_database import with_tables
from tests.server.app_server import serving
from tests.server.push.receiver import Notification, receiving

TOKEN = "0123456789abcdef0123456789abcdef"

Found = dict[str, tuple[str, str]]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.startswith((PREFIX, "ANTHROPIC_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv(f"{PREFIX}DATABASE", "memory")


async def examined(
    url: str = "", token: str = "", *, grpc_url: str = "", model_call: bool = False, **given: Any
) -> Found:
    """The status and the text of each finding; of two of one name, the last."""
    out = io.StringIO()
    given = {"database": "memory", "port": free_port()} | given
    code = await doctor_command(given, out, url=url, grpc_url=grpc_url, token=token, model_call=model_call, json=True)
    found = json.loads(out.getvalue())
    assert found["ok"] == (code == 0) == all(each["status"] != "failed" for each in found["checks"])
    return {each["check"]: (each["status"], f"{each['message']} {each['advice']}") for each in found["checks"]}


# ------------------------------------------------------------------------- what is here


async def test_a_server_that_can_run_has_no_failure() -> None:
    found = await examined()
    assert {status for status, _ in found.values()} == {"ok", "warning"}
    assert found.keys() == {"settings", "agent", "card", "model", "database", "access", "ports", "files"}


async def test_a_wrong_setting_is_all_that_is_said() -> None:
    found = await examined(port=0)
    assert found == {"settings": ("failed", "--port=0: must be 1 to 65535 ")}


async def test_a_card_that_cannot_be_served_fails(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text("[]")
    assert (await examined(agent_card=tmp_path / "card.json"))["card"][0] == "failed"


async def test_what_serve_refuses_to_start_with_fails_in_its_words() -> None:
    status, said = (await examined(jwt_audience="canvas"))["agent"]
    assert status == "failed"
    assert "--jwt-audience needs --jwt-issuer" in said


async def test_an_agent_is_named_with_its_loop_or_with_what_is_wrong_with_it(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("async def agent(turn): ...")
    found = await examined(agent=str(tmp_path), model_call=True)
    assert found["agent"] == ("ok", f"{tmp_path} can be served with its loop {tmp_path}/agent.py. ")
    assert found["model"] == ("ok", "The agent has a loop of its own, which needs no model. ")
    (tmp_path / "agent.py").write_text("def agent(turn): ...")
    status, said = (await examined(agent=str(tmp_path)))["agent"]
    assert status == "failed"
    assert f"{tmp_path}/agent.py: agent is not async." in said


async def test_a_model_without_a_provider_fails_with_what_serve_says() -> None:
    status, said = (await examined(model="gpt-5"))["model"]
    assert status == "failed"
    assert "openai:gpt-5" in said


class OneWord:
    """A model that counts its calls, or fails."""

    name, thinking = "claude-x", "delta"

    def __init__(self, error: ModelError | None = None) -> None:
        self.error = error
        self.hangs = False
        self.read = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self.hangs:
            await asyncio.Event().wait()
        if self.error:
            raise self.error
        for _ in range(100):
            self.read += 1
            yield TextDelta(0, "yes")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneWord]:
    llm, asked = OneWord(), []

    def choose(settings: Settings, environ: object) -> OneWord:
        asked.append(settings.max_output_tokens)
        return llm

    monkeypatch.setattr(local_checks, "choose_llm", choose)
    yield llm
    assert asked[1:] in ([], [1])


async def test_the_model_is_asked_for_one_token(model: OneWord) -> None:
    assert (await examined(model_call=True))["model"][0] == "ok"
    assert model.read == 1


async def test_without_a_call_the_model_is_only_named(model: OneWord) -> None:
    assert (await examined())["model"] == ("ok", "claude-x was not called. ")
    assert model.read == 0


@pytest.mark.parametrize(
    ("reason", "status"),
    [("The model provider refused the API key.", "failed"), ("Could not finish: max_tokens was reached.", "ok")],
)
async def test_what_a_provider_refuses_is_said_unless_it_is_the_single_token(
    model: OneWord, reason: str, status: str
) -> None:
    model.error = ModelError(reason, retryable=False)
    assert (await examined(model_call=True))["model"][0] == status


async def test_a_model_that_does_not_answer_fails(model: OneWord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_checks, "MODEL_SECONDS", 0.01)
    model.hangs = True
    status, said = (await examined(model_call=True))["model"]
    assert (status, "did not answer within" in said) == ("failed", True)


async def test_a_small_ulimit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    status, said = (await examined())["files"]
    assert (status, "ulimit -n" in said) == ("warning", True)


async def test_a_port_of_another_program_fails() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        status, said = (await examined(port=other.getsockname()[1]))["ports"]
    assert status == "failed"
    assert "Choose another" in said


async def test_a_port_of_a_server_that_runs_here_does_not_fail() -> None:
    async with serving(grpc=False) as served:
        status, said = (await examined(port=int(served.url.rpartition(":")[2])))["ports"]
    assert status == "ok"
    assert "already listens there" in said


async def test_a_server_for_others_without_authentication_fails_as_serve_does() -> None:
    status, said = (await examined(host="0.0.0.0"))["access"]
    assert status == "failed"
    assert "key new" in said


# ----------------------------------------------------------------------------- database


async def test_a_new_file_is_not_made(tmp_path: Path) -> None:
    found = await examined(database=str(tmp_path / "new.db"))
    assert found["database"][0] == "ok"
    assert os.listdir(tmp_path) == []


async def test_a_file_that_cannot_be_made_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # a test that runs as root may write everywhere
    status, said = (await examined(database=str(tmp_path / "new.db")))["database"]
    assert (status, f"the folder {tmp_path} is read-only. Make it writable" in said) == ("failed", True)


async def test_a_database_of_another_program_fails_with_what_serve_says(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as file:
        file.execute("CREATE TABLE customers (name TEXT)")
    before = (tmp_path / "shop.db").read_bytes()
    status, said = (await examined(database=str(tmp_path / "shop.db")))["database"]
    assert (status, "it has the table customers. Name another file" in said) == ("failed", True)
    assert (tmp_path / "shop.db").read_bytes() == before


async def test_a_full_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = str(tmp_path / "canvas.db")
    async with serving(grpc=False, database=database):
        pass
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=2**20))
    assert (await examined(database=database))["disk"][0] == "failed"


async def test_a_database_that_does_not_answer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_checks, "SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/x"
        status, said = (await examined(database=url))["database"]
    assert (status, "does not answer within" in said) == ("failed", True)


async def test_a_file_is_examined_beside_the_server_that_has_it(tmp_path: Path) -> None:
    database = str(tmp_path / "canvas.db")
    async with serving(grpc=False, database=database):
        found = await examined(database=database)
    said = (
        f"sqlite:///{database} is of schema {newest()}, which this version needs, on SQLite {sqlite3.sqlite_version}. "
    )
    assert found["database"] == ("ok", said)
    assert {found[name][0] for name in ("disk", "latency", "clock")} <= {"ok", "warning"}


async def test_a_file_without_tables_will_be_upgraded_and_one_of_another_schema_fails(tmp_path: Path) -> None:
    database = str(tmp_path / "canvas.db")
    async with serving(grpc=False, database=database):
        pass
    for revision, status in (("", "warning"), ("0016", "failed")):
        with closing(sqlite3.connect(database)) as file:
            file.execute("UPDATE schema_revision SET version_num = ?", [revision])
            file.commit()
        found = (await examined(database=database))["database"]
        assert found[0] == status
    said = f"is of another schema (0016) than this server's ({newest()}). Name another file with --database."
    assert said in found[1]


async def test_a_database_that_cannot_be_reached_fails_without_its_password() -> None:
    status, said = (await examined(database=f"postgresql://me:hunter2@127.0.0.1:{free_port()}/x"))["database"]
    assert status == "failed"
    assert "hunter2" not in said


@pytest.mark.postgres
async def test_a_broker_is_asked_and_one_that_only_others_use_is_named() -> None:
    url = await with_tables(postgresql_url())
    with private_nats() as nats:
        assert (await examined(database=url, broker=nats.url))["broker"][0] == "ok"
    status, said = (await examined(database=url, broker=nats.url))["broker"]
    assert (status, f"The broker 127.0.0.1:{nats.port} cannot be used: " in said) == ("failed", True)
    assert "broker" not in await examined(database=url)
    execute(url, "INSERT INTO brokers VALUES ('nats.internal:4222', extract(epoch FROM clock_timestamp()))")
    status, said = (await examined(database=url))["broker"]
    assert status == "warning"
    assert said.startswith("Servers of this database use the broker nats.internal:4222, and this one has no --broker")


@pytest.mark.postgres
async def test_a_database_on_several_servers_without_a_synchronous_standby_is_warned_of() -> None:
    url = (await with_tables(postgresql_url())).replace("@", f"@127.0.0.1:{free_port()},")
    found = await examined(database=url)
    assert (found["database"][0], found["standby"][0]) == ("ok", "warning")
    assert "synchronous_standby_names" in found["standby"][1]


@pytest.mark.postgres
async def test_postgresql_says_its_version_and_its_clock_is_compared() -> None:
    found = await examined(database=await with_tables(postgresql_url()))
    assert found["clock"] == ("ok", "The clock agrees with that of the database. ")
    assert re.search(rf"is of schema {newest()}, which this version needs, on PostgreSQL \d+", found["database"][1])


# ------------------------------------------------------------------------- from outside


async def test_from_outside_a_server_with_a_token_refuses_others_and_takes_it() -> None:
    async with serving(grpc=False, shared_token=TOKEN) as served:
        found = await examined(served.url, TOKEN)
        wrong = await examined(served.url, "wrong" * 5)
        none = await examined(served.url)
    assert [found[name][0] for name in ("card", "clock", "anonymous", "credentials")] == ["ok"] * 4
    assert (wrong["credentials"][0], none["credentials"][0]) == ("failed", "ok")
    assert TOKEN not in str(found)
    assert "wrongwrong" not in str(wrong)


async def test_from_outside_a_server_without_authentication_is_told_what_to_do() -> None:
    async with serving(grpc=False) as served:
        status, said = (await examined(served.url))["anonymous"]
    assert status == "warning"
    assert "at /, /rest/tasks, /artifacts, /metrics." in said
    assert "key new" in said


async def test_from_outside_a_certificate_that_is_not_trusted_is_told(tmp_path: Path) -> None:
    async with receiving(issue("localhost", tmp_path)[1]) as server:
        status, said = (await examined(f"https://localhost:{server.port}"))["tls"]
    assert status == "failed"
    assert "its certificate is not trusted (self-signed certificate): set SSL_CERT_FILE" in said


async def test_grpc_is_asked_where_the_card_says_or_where_it_is_said_to_be() -> None:
    async with serving(shared_token=TOKEN, public_grpc="127.0.0.1") as served:
        found = await examined(served.url, TOKEN)
        wrong = await examined(served.url, "wrong" * 5)
        elsewhere = await examined(served.url, grpc_url=f"http://127.0.0.1:{free_port()}")
        nowhere = await examined(served.url, grpc_url="hunter2")
    assert found["grpc"][0] == "ok"
    assert "accepts yours" in found["grpc"][1]
    assert [each["grpc"][0] for each in (wrong, elsewhere, nowhere)] == ["failed"] * 3
    assert "UNAVAILABLE" in elsewhere["grpc"][1]
    assert TOKEN not in str(found)
    assert "hunter2" not in str(nowhere)


async def test_credentials_are_not_sent_to_another_host_that_the_card_names_for_grpc() -> None:
    async with serving(shared_token=TOKEN, public_grpc="localhost", public_url="http://localhost:8000") as served:
        found = await examined(served.url, TOKEN)
    assert (found["credentials"][0], found["grpc"][0]) == ("ok", "ok")
    assert "accepts yours" not in found["grpc"][1]


async def test_a_card_with_another_address_is_noticed() -> None:
    async with serving(grpc=False, public_url="https://agent.example.com") as served:
        status, said = (await examined(served.url))["card"]
    assert status == "warning"
    assert f"--public-url {served.url}" in said


async def test_another_program_without_a_card_and_with_another_time_is_noticed() -> None:
    async def answer(notification: Notification) -> web.Response:
        return web.Response(text="{}", headers={"Date": "Thu, 01 Jan 2026 00:00:00 GMT"})

    async with receiving() as other:
        other.answer = answer
        found = await examined(f"http://127.0.0.1:{other.port}", TOKEN)
    assert (found["card"][0], found["clock"][0]) == ("failed", "warning")
    assert "Check that the proxy passes this path" in found["card"][1]
    assert "NTP" in found["clock"][1]


async def test_what_is_no_server_is_said_without_the_secrets_of_its_address() -> None:
    for url in (f"http://me:hunter2@127.0.0.1:{free_port()}", "http://me:hunter2@[x", "hunter2", "http://h:hunter2/"):
        found = await examined(url, "a token\nwith a break")
        assert found["outside"][0] == "failed"
        assert "hunter2" not in str(found)


async def test_without_encryption_it_fails_whatever_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody(*_: object, **__: object) -> httpx.Response:
        raise httpx.ConnectError("no such host")

    monkeypatch.setattr(httpx.AsyncClient, "send", nobody)
    assert (await examined("http://agent.example.com"))["tls"][0] == "failed"
    assert "tls" not in await examined("https://agent.example.com")


# -------------------------------------------------------------------------- the command


def test_the_command_prints_a_line_for_each_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--database", "memory", "--port", str(free_port()), "--no-model-call"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines()[0].startswith("ok       settings")
    assert said.out.splitlines()[-1].endswith("0 failed.")


def test_the_command_fails_with_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--database", "memory", "--port", "0", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_without_an_address_there_is_no_grpc_to_ask(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--grpc-url", "http://127.0.0.1:1"]) == 2
    assert "needs --url" in capsys.readouterr().err


async def test_the_keys_of_an_issuer_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"jwt_issuer": f"http://127.0.0.1:{free_port()}", "jwt_audience": "canvas"}
    status, said = (await examined(**given))["issuer"]
    assert (status, "--jwt-issuer" in said) == ("failed", True)

    async def keys(issuer: Issuer) -> list[str]:
        return ["a", "b"]

    monkeypatch.setattr(Issuer, "keys", keys)
    assert (await examined(**given))["issuer"] == ("ok", "The issuer of tokens has 2 keys. ")
