"""docs/a2a.md says what operations answer, and its example for the Python SDK runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from a2a.utils.errors import A2A_ERROR_MAPPING, InternalError

from a2a_canvas.server.protocols.edge.availability import UnavailableError
from a2a_canvas.server.protocols.edge.error_tables import rpc_code
from tests.docs.curl import Curl
from tests.docs.examples import printed
from tests.docs.pages import ADDRESS, blocks, page, rows

PAGE = page("a2a")
CODES = {error.__name__.removesuffix("Error"): error for error in A2A_ERROR_MAPPING}


@pytest.mark.parametrize("row", [row for row in rows(PAGE, "What operations answer") if row[1] in CODES], ids=str)
def test_the_codes_of_every_error_are_those_of_the_server(row: list[str]) -> None:
    error = CODES[row[1]]
    mapping = A2A_ERROR_MAPPING[error]
    assert row[2:] == [str(rpc_code(error)), str(mapping.http_code), mapping.grpc_status]


def test_the_answer_without_a_database_has_the_codes_of_the_server() -> None:
    mapping = A2A_ERROR_MAPPING[UnavailableError]
    [row] = [row for row in rows(PAGE, "What operations answer") if "database" in row[0]]
    assert row[2:] == [str(rpc_code(InternalError)), str(mapping.http_code), mapping.grpc_status]


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
