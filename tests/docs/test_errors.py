"""docs/errors.md has every error that the server answers, with its codes in each binding."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from a2a.utils.errors import A2A_ERROR_MAPPING, A2A_ERROR_REASONS

from a2a_canvas.server.app import create_app
from a2a_canvas.server.protocols.edge.error_tables import rpc_code
from tests.docs.curl import Curl
from tests.docs.pages import ADDRESS, blocks, page, rows

assert create_app  # its modules enter their errors into the tables

PAGE = page("errors")
UNUSED = {"INVALID_AGENT_RESPONSE", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"}
"""Reasons of the SDK for errors that this server never has."""

EVERYWHERE, ARTIFACTS = rows(PAGE, "All bindings"), rows(PAGE, "Under `/artifacts`")


def codes(reason: str) -> set[tuple[str, str, str]]:
    """Code of JSON-RPC, HTTP status and gRPC's status of the errors with a reason."""
    kinds = [kind for kind in A2A_ERROR_MAPPING if A2A_ERROR_REASONS[kind] == reason]
    mapped = [SimpleNamespace(rpc=rpc_code(kind), **A2A_ERROR_MAPPING[kind]._asdict()) for kind in kinds]
    return {(str(each.rpc), str(each.http_code), each.grpc_status) for each in mapped}


@pytest.mark.parametrize("row", EVERYWHERE, ids=lambda row: "-".join((row[0].strip("`"), row[3])))
def test_the_codes_of_an_error_are_those_of_the_server(row: list[str]) -> None:
    reason = row[0].strip("`")
    grpc_status = "NOT_FOUND" if reason == "METHOD_NOT_FOUND" else row[3]  # gRPC itself answers UNIMPLEMENTED
    assert (row[1], row[2], grpc_status) in codes(reason)


@pytest.mark.parametrize("row", ARTIFACTS, ids=lambda row: row[0].strip("`"))
def test_the_status_of_an_error_below_artifacts_is_that_of_the_server(row: list[str]) -> None:
    assert row[1] in {http_status for _, http_status, _ in codes(row[0].strip("`"))}


def test_every_reason_is_in_a_table() -> None:
    assert {row[0].strip("`") for row in (*EVERYWHERE, *ARTIFACTS)} == set(A2A_ERROR_REASONS.values()) - UNUSED


def test_an_error_looks_as_shown(address: str) -> None:
    assert Curl(f"{ADDRESS}/artifacts/x", {}, "").send(address).results == [json.loads(blocks(PAGE, "json")[0])]
