"""A server that others could reach does not start before it can tell who they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from a2a_canvas.server.app import create_app
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.protocols.identity.configuration import check_open
from a2a_canvas.server.settings.settings import PREFIX, Settings, SettingsError
from a2a_canvas.server.settings.value_types import is_loopback
from tests.free_port import free_port

PUBLIC = "https://agent.example.test"
REFUSED = (
    "a2a-canvas: {} exposes the server, but no authentication is configured: set A2A_CANVAS_SHARED_TOKEN to a "
    "secret (openssl rand -hex 16), or make a key with a2a-canvas key new NAME; --allow-anonymous serves everybody.\n"
)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("database", ["memory", "new file"])
@pytest.mark.parametrize("option", [("--host", "0.0.0.0"), ("--public-url", PUBLIC)], ids=["host", "public-url"])
def test_it_refuses_in_one_line_that_says_what_to_set(
    option: tuple[str, str], database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = "memory" if database == "memory" else f"{tmp_path}/new.db"
    options = (*option, "--port", str(free_port()), "--model", "rehearsal", "--database", where)
    assert main(("serve", *options)) == 2
    assert capsys.readouterr().err == REFUSED.format(" ".join(option))


def test_check_refuses_what_serve_refuses_until_the_database_has_a_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = ("--database", f"{tmp_path}/keys.db")
    check = ("serve", "--check", "--host", "0.0.0.0", "--model", "rehearsal", *database)
    assert main(check) == 2
    assert capsys.readouterr().err == REFUSED.format("--host 0.0.0.0")
    assert not any(tmp_path.iterdir())
    assert main(("key", "new", "ann", *database)) == 0
    assert main(check) == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "agent.example.com"])
def test_every_address_but_the_loopback_is_one_that_others_reach(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(SettingsError):
        check_open(Settings(host=host), keys=False)


def test_behind_a_proxy_on_the_same_machine_others_reach_the_loopback() -> None:
    with pytest.raises(SettingsError, match=f"--public-url {PUBLIC} exposes the server"):
        check_open(Settings(public_url=PUBLIC), keys=False)
    with pytest.raises(SettingsError, match=r"--allowed-hosts agent\.example\.com exposes the server"):
        check_open(Settings(allowed_hosts="localhost, agent.example.com"), keys=False)


@pytest.mark.parametrize("public_url", [None, "http://localhost:9000", "http://[::1]:9000/canvas"])
@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_the_loopback_needs_no_authentication(host: str, public_url: str | None) -> None:
    check_open(Settings(host=host, public_url=public_url), keys=False)


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({"shared_token": "0123456789abcdef"}, False),
        ({"api_keys": f"ann=sha256:{'0' * 64}"}, False),
        ({"allow_anonymous": True}, False),
        ({}, True),
    ],
)
def test_any_authentication_is_enough_so_is_the_operators_word(settings: dict[str, object], keys: bool) -> None:
    check_open(Settings(host="0.0.0.0", **settings), keys=keys)
    check_open(Settings(public_url=PUBLIC, **settings), keys=keys)


async def test_grpc_of_an_application_in_another_server_is_not_open_either(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(model="rehearsal", database="memory", host="0.0.0.0", grpc_port=free_port())
    app = create_app(settings)
    with pytest.raises(SettingsError, match="no authentication is configured"):
        async with app.router.lifespan_context(app):
            pass
