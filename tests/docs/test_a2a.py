"""docs/a2a.md: its example for the Python SDK runs, and an early error of a stream is plain JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.curl import Curl
from tests.docs.examples import printed
from tests.docs.pages import ADDRESS, blocks, page

PAGE = page("a2a")


@pytest.mark.parametrize("method", ["SendStreamingMessage", "SubscribeToTask"])
def test_an_early_error_on_a_stream_of_json_rpc_is_plain_json(address: str, method: str) -> None:
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
    answer = Curl(f"{ADDRESS}/", {"A2A-Version": "1.0", "Content-Type": "application/json"}, asked).send(address)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert "error" in json.loads(answer.text)


@pytest.mark.process
def test_the_example_for_the_python_sdk_prints_the_artifact(address: str, tmp_path: Path) -> None:
    [code] = blocks(PAGE, "python")
    said = printed(code, address, tmp_path)
    assert "TASK_STATE_COMPLETED" in said
    assert "tide-pools.md:\n# Tide pools\n" in said
