"""docs/editing.md: its session, and the events of an edit."""

from __future__ import annotations

import json

import pytest

from a2a_canvas.server.commands.cli import COMMANDS
from a2a_canvas.server.wire import CANVAS
from tests.docs.curl import curls, send_all
from tests.docs.examples import assert_goes_as_shown
from tests.docs.pages import assert_has, blocks, page, rows

PAGE = page("editing")


def test_the_session_goes_as_it_is_shown(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    session, _ = blocks(PAGE, "console")
    assert_goes_as_shown(session, address, capsys)


def test_the_table_has_every_command_that_works_on_artifacts() -> None:
    told = {words.split()[0] for row in rows(PAGE, "In the terminal") for words in row[0].strip("`").split("`, `")}
    assert told == COMMANDS["Artifacts"].keys()


def test_the_events_of_an_edit_are_those_shown(address: str) -> None:
    [edited] = [answer for curl, answer in send_all(address, curls(PAGE)) if "A2A-Extensions" in curl.headers]
    assert edited.headers["A2A-Extensions"] == CANVAS
    bodies = [body for event in edited.results for body in event.values()]
    told = [body["metadata"][CANVAS] for body in bodies if CANVAS in body.get("metadata", {})]
    *phases, version = [json.loads(line) for line in blocks(PAGE, "json")[0].splitlines()]
    for expected in phases:
        phase = expected["edit"]["phase"]
        [first, *_] = [fields["edit"] for fields in told if fields.get("edit", {}).get("phase") == phase]
        assert first.keys() == expected["edit"].keys()
        if phase != "chunk":
            assert_has(first, expected["edit"])
    assert version.items() <= next(fields for fields in told if "artifactVersion" in fields).items()
