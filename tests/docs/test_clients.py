"""docs/clients.md names every recorded client with its version, and its examples for the Python SDK run."""

from __future__ import annotations

import ast
import asyncio
import json
from pathlib import Path

import pytest

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from tests.docs.examples import printed
from tests.docs.pages import ROOT, blocks, page, rows, section
from tests.server.app_server import serving

PAGE = page("clients")
TRIED = rows(PAGE, "Tested clients")
RECORDED = [json.loads(file.read_text()) for file in (ROOT / "tests/server/protocols/fixtures").glob("*.json")]
KEY = new_key("ann")


@pytest.mark.parametrize(("client", "release"), [(each["client"], each["release"]) for each in RECORDED])
def test_every_recorded_client_is_in_the_table_with_its_release(client: str, release: str) -> None:
    assert any(row[0].startswith(client) and row[1] == release for row in TRIED)


@pytest.mark.parametrize("code", blocks(PAGE, "python"))
def test_the_examples_are_python(code: str) -> None:
    ast.parse(code)


@pytest.mark.process
async def test_the_example_with_a_key_prints_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_CANVAS_TOKEN", KEY)
    [code] = blocks(section(PAGE, "Sending a key"), "python")
    async with serving(model=Rehearsal(delay=0), grpc=False, api_keys=f"ann={KEY}") as served:
        said = await asyncio.to_thread(printed, code, served.url, tmp_path)
    assert said.startswith("tide-pools.md\n# Tide pools\n")
