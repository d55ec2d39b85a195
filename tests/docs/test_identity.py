"""docs/identity.md: its commands for keys can be given, and its figures are those of the server."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.protocols.identity.attempts import BURST, SECONDS_PER_ATTEMPT
from a2a_canvas.server.protocols.identity.cached_fetch import MAX_AGE, MIN_INTERVAL
from a2a_canvas.server.protocols.identity.json_web_tokens import ALGORITHMS, LEEWAY
from a2a_canvas.server.settings.settings import PREFIX, load
from tests.command_line import parsed
from tests.docs.pages import page, section

PAGE = page("identity")


def test_every_command_for_keys_can_be_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"{PREFIX}DATABASE", f"sqlite:///{tmp_path}/a2a-canvas.db")
    commands = re.findall(r"^    a2a-canvas (key .*)$", section(PAGE, "Keys"), re.MULTILINE)
    assert [command.split()[1] for command in commands] == ["new", "new", "list", "revoke"]
    for command in commands:
        assert main(shlex.split(command)) == 0
    assert "ann" in capsys.readouterr().out


def test_the_rate_of_wrong_credentials_is_that_of_the_server() -> None:
    minute = f"{BURST} times at once and then {60 / SECONDS_PER_ATTEMPT:.0f} times a minute"
    assert minute in section(PAGE, "Wrong credentials")


def test_the_signatures_and_the_times_of_tokens_are_those_of_the_server() -> None:
    told = " ".join(section(PAGE, "Issuer tokens").split())
    *names, last = (name for names in ALGORITHMS.values() for name in names)
    assert f"Signatures are {', '.join(names)} or {last}," in told
    assert f"Clocks may differ by {LEEWAY} seconds" in told
    assert f"kept for {MAX_AGE / 60:.0f} minutes" in told
    assert f"at most every {MIN_INTERVAL:.0f} seconds" in told


def test_every_server_that_is_shown_can_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "card.pem").touch()
    for command in re.findall(r"^    a2a-canvas (serve .*)$", PAGE, re.MULTILINE):
        _, options = parsed(*shlex.split(command))
        load(options)
