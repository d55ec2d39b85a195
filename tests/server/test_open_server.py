"""A server that others could reach does not start before it can tell who they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from a2a_canvas.server.cli import main
from a2a_canvas.server.serve import check_open
from a2a_canvas.server.settings import PREFIX, Settings, SettingsError, is_loopback
from tests.free_port import free_port

REFUSED = (
    "a2a-canvas: --host 0.0.0.0 lets others in, and there is no authentication: set A2A_CANVAS_SHARED_TOKEN to a "
    "secret (openssl rand -hex 16), or make a key with a2a-canvas key new NAME; --allow-anonymous serves everybody.\n"
)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("database", ["memory", "new file"])
def test_it_refuses_in_one_line_that_says_what_to_set(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = "memory" if database == "memory" else f"{tmp_path}/new.db"
    options = ("--host", "0.0.0.0", "--port", str(free_port()), "--model", "rehearsal", "--database", where)
    assert main(("serve", *options)) == 2
    assert capsys.readouterr().err == REFUSED


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "agent.example.com"])
def test_every_address_but_the_loopback_is_one_that_others_reach(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(SettingsError):
        check_open(Settings(host=host), keys=0)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_the_loopback_needs_no_authentication(host: str) -> None:
    check_open(Settings(host=host), keys=0)


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({"shared_token": "0123456789abcdef"}, 0),
        ({"api_keys": f"ann=sha256:{'0' * 64}"}, 0),
        ({"allow_anonymous": True}, 0),
        ({}, 1),
    ],
)
def test_any_authentication_is_enough_so_is_the_operators_word(settings: dict[str, object], keys: int) -> None:
    check_open(Settings(host="0.0.0.0", **settings), keys)
