"""docs/deploy.md: its commands for servers, compose and the database can be given."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.applications import Starlette

import a2a_canvas
from a2a_canvas.server.broker.broker import Broker
from a2a_canvas.server.broker.signatures import Signatures
from a2a_canvas.server.settings.settings import PREFIX, load
from tests.broker_fixtures import private_nats
from tests.certificates import issue
from tests.command_line import parsed
from tests.docs.pages import ROOT, blocks, page, section

PAGE = page("deploy")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_the_application_can_be_made_as_shown() -> None:
    names: dict[str, Any] = {}
    [code] = blocks(PAGE, "python")
    exec(code, names)
    assert isinstance(names["app"], Starlette)
    told = re.findall(r"`(\w+)`", section(PAGE, "As a Python package").split("public names are")[1].split(";")[0])
    assert set(told) == set(a2a_canvas.__all__)


def test_what_is_pinned_is_installed_as_the_image_does_and_every_image_that_is_named_can_be_given() -> None:
    told = section(PAGE, "Pinned dependencies")
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


def test_every_server_that_is_started_could_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    serves = re.findall(r"^    a2a-canvas (serve .*)$", PAGE, re.MULTILINE)
    [url] = re.findall(rf"^    export {PREFIX}DATABASE=(\S+)$", PAGE, re.MULTILINE)
    assert serves
    monkeypatch.setenv(f"{PREFIX}DATABASE", url)
    for command in serves:
        _, options = parsed(*shlex.split(command))
        assert load(options).database == url
