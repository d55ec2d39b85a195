"""docs/operations.md: its commands, its broker and its recipe, which is that of deploy/patroni.yml."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path

import pytest
import yaml

from a2a_canvas.server.broker.broker import Broker
from a2a_canvas.server.broker.signatures import Signatures
from a2a_canvas.server.settings.settings import PREFIX, load
from bench.failover import FULL
from tests.broker_fixtures import private_nats
from tests.certificates import issue
from tests.command_line import parsed
from tests.docs.pages import ROOT, blocks, page, section

PAGE = page("operations")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
PATRONI = yaml.safe_load((ROOT / "deploy/patroni.yml").read_text())


def test_every_command_can_be_given_with_the_settings_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    given = []
    for line in re.findall(rf"^    (export {PREFIX}(?:DATABASE|BROKER)=.+|a2a-canvas .+)$", PAGE, re.MULTILINE):
        first, *words = shlex.split(line)
        if first == "export":
            monkeypatch.setenv(*words[0].split("=", 1))
            continue
        _, options = parsed(*words)
        given.append(words[0])
        if words[0] == "serve":
            assert load(options).database.startswith("postgresql://")
    steps = [" ".join(given[: place + 1]) for place, command in enumerate(given) if command == "serve"]
    assert len(steps) == len({*steps}) == 4  # workers, several servers, a broker, a standby


def test_the_load_balanced_servers_are_those_of_the_compose_file() -> None:
    told = section(PAGE, "Several servers")
    numbers = ("no", "one", "two", "three", "four", "five")
    assert f"{numbers[COMPOSE['services']['server']['deploy']['replicas']]} servers" in told
    published = [port.split(":")[1] for port in COMPOSE["services"]["balancer"]["ports"]]
    assert all(port in told for port in published)
    assert set(re.findall(r"--scale (\w+)=", told)) <= COMPOSE["services"].keys()
    [password] = re.findall(r"\b(\w+)=\S+ docker compose", told)
    assert f"${{{password}:?" in (ROOT / "compose.yaml").read_text()


@pytest.mark.process
async def test_the_broker_is_configured_as_its_address_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = section(PAGE, "A broker")
    [address] = re.findall(rf"^    export {PREFIX}BROKER=(\S+)$", told, re.MULTILINE)
    [shown] = [block for block in blocks(told, "text") if "authorization" in block]
    pem, _ = issue("localhost", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    settings = re.sub(r'"/etc/ssl/nats\.\w+"', f'"{pem}"', shown.replace("port: 4222\n", ""))
    with private_nats(settings) as nats:
        here = address.replace("nats.example.com:4222", f"localhost:{nats.port}")
        [checked] = load({"database": "postgresql://db/canvas", "broker": here}).broker
        one, other = Broker([checked]), Broker([checked])
        signatures, heard = Signatures(b"k" * 32), asyncio.Queue[bytes | None]()
        other.subscribe(signatures.subject("page", "c", None), heard.put_nowait)
        for each in (one, other):
            each.start(signatures)
            await each.connected.wait()
        one.publish(signatures.subject("page", "c", "t"), b"Hello")
        assert await heard.get() == b"Hello"
        await one.stop()
        await other.stop()


def test_the_machines_of_the_recipe_are_those_of_the_configuration() -> None:
    etcd, patroni = (
        dict(line.split("=", 1) for line in block.split()) for block in blocks(section(PAGE, "Patroni and etcd"), "sh")
    )
    machines = [host.split(":")[0] for host in PATRONI["etcd3"]["hosts"].split(",")]
    assert re.findall(r"http://([\w.]+):2380", etcd["ETCD_INITIAL_CLUSTER"]) == machines
    assert etcd["ETCD_NAME"] == patroni["PATRONI_NAME"] == machines[0].split(".")[0]
    assert {f"PATRONI_{user.upper()}_PASSWORD" for user in PATRONI["postgresql"]["authentication"]} <= patroni.keys()
    for variable, listen in (("POSTGRESQL", PATRONI["postgresql"]), ("RESTAPI", PATRONI["restapi"])):
        port = listen["listen"].rpartition(":")[2]
        assert patroni[f"PATRONI_{variable}_CONNECT_ADDRESS"] == f"{machines[0]}:{port}"
        assert re.search(rf"Ports [^.]*\b{port}\b", PAGE)


def test_commits_wait_for_the_standby_that_was_made_by_hand() -> None:
    told = section(PAGE, "A standby by hand")
    [copied] = re.findall(r"application_name=(\w+)", told)
    assert re.findall(r"synchronous_standby_names = '(\w+)'", told) == [copied]
    assert f"`{copied} | sync`" in told
    [role, asked] = re.findall(r"CREATE ROLE (\w+) .* PASSWORD '([\w-]+)'", told)[0]
    assert f"user={role} password={asked} " in told
    assert f"hostssl replication {role} " in told


def test_only_a_standby_with_every_commit_is_promoted_after_the_time_that_the_page_says() -> None:
    settings = PATRONI["bootstrap"]["dcs"]
    assert settings["synchronous_mode"] is True
    assert f"`ttl` of {settings['ttl']} seconds" in PAGE


def test_the_failover_test_is_the_one_that_the_page_describes() -> None:
    assert f"{FULL.rounds} times, with {FULL.turns} turns" in " ".join(PAGE.split())
