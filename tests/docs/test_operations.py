"""docs/operations.md: its addresses can be given, and its recipe is that of deploy/patroni.yml."""

from __future__ import annotations

import re

import pytest
import yaml

from a2a_canvas.server.settings.settings import PREFIX, load
from bench.failover import FULL
from tests.command_line import parsed
from tests.docs.pages import ROOT, blocks, page

PAGE = page("operations")
PATRONI = yaml.safe_load((ROOT / "deploy/patroni.yml").read_text())


def test_the_servers_can_be_started_as_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    [url] = re.findall(rf"^    export {PREFIX}DATABASE='(\S+)'$", PAGE, re.MULTILINE)
    monkeypatch.setenv(f"{PREFIX}DATABASE", url)
    commands = re.findall(r"^    a2a-canvas (.+)$", PAGE, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["db", "doctor", "serve"]
    for command in commands:
        parsed(*command.split())
    assert load(parsed(*commands[-1].split())[1]).database == url


def test_the_machines_of_the_recipe_are_those_of_the_configuration() -> None:
    etcd, patroni = (dict(line.split("=", 1) for line in block.split()) for block in blocks(PAGE, "sh"))
    machines = [host.split(":")[0] for host in PATRONI["etcd3"]["hosts"].split(",")]
    assert re.findall(r"http://([\w.]+):2380", etcd["ETCD_INITIAL_CLUSTER"]) == machines
    assert etcd["ETCD_NAME"] == patroni["PATRONI_NAME"] == machines[0].split(".")[0]
    assert {f"PATRONI_{user.upper()}_PASSWORD" for user in PATRONI["postgresql"]["authentication"]} <= patroni.keys()
    for variable, listen in (("POSTGRESQL", PATRONI["postgresql"]), ("RESTAPI", PATRONI["restapi"])):
        port = listen["listen"].rpartition(":")[2]
        assert patroni[f"PATRONI_{variable}_CONNECT_ADDRESS"] == f"{machines[0]}:{port}"
        assert re.search(rf"Ports [^.]*\b{port}\b", PAGE)


def test_only_a_standby_with_every_commit_is_promoted_after_the_time_that_the_page_says() -> None:
    settings = PATRONI["bootstrap"]["dcs"]
    assert settings["synchronous_mode"] is True
    assert f"`ttl` of {settings['ttl']} seconds" in PAGE


def test_the_failover_test_is_the_one_that_the_page_describes() -> None:
    assert f"{FULL.rounds} times, with {FULL.turns} turns" in " ".join(PAGE.split())
