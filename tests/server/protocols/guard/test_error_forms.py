"""Errors in the form of each binding."""

from typing import Any

import pytest
from a2a.utils.errors import A2AError, InvalidParamsError, TaskNotFoundError
from google.protobuf.json_format import ParseDict
from google.rpc import error_details_pb2  # type: ignore[import-untyped]

from a2a_canvas.server.protocols.edge.availability import UnavailableError
from a2a_canvas.server.protocols.guard.checks import invalid
from a2a_canvas.server.protocols.guard.error_forms import JsonRpcForm, rest_error_payload

ERRORS = [
    (invalid((("message.parts[0]", "is empty"),)).error(), {}),
    (InvalidParamsError("No.", {"errors": [{"field": "id", "message": "is empty."}], "limit": 5}), {"limit": "5"}),
    (UnavailableError(), {"retryable": "true"}),
    (TaskNotFoundError(), {}),
]


def details(error: A2AError) -> list[list[dict[str, Any]]]:
    """The details of an error over JSON-RPC and over REST."""
    return [JsonRpcForm(1).error_payload(error)["error"]["data"], rest_error_payload(error)["error"]["details"]]


def without_type(detail: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in detail.items() if name != "@type"}


@pytest.mark.parametrize(("error", "metadata"), ERRORS)
def test_error_info_is_one_and_its_metadata_are_strings(error: A2AError, metadata: dict[str, str]) -> None:
    for info, *_ in details(error):
        parsed = ParseDict(without_type(info), error_details_pb2.ErrorInfo())
        assert (parsed.domain, dict(parsed.metadata)) == ("a2a-protocol.org", metadata)


@pytest.mark.parametrize(("error", "field"), [(ERRORS[0][0], "message.parts[0]"), (ERRORS[1][0], "id")])
def test_the_fields_at_fault_are_a_bad_request(error: A2AError, field: str) -> None:
    for _, bad_request in details(error):
        parsed = ParseDict(without_type(bad_request), error_details_pb2.BadRequest())
        assert [(violation.field, violation.description) for violation in parsed.field_violations] == [
            (field, "is empty.")
        ]


def test_in_03_over_jsonrpc_the_data_are_those_of_the_error() -> None:
    error = JsonRpcForm(1, legacy=True).error_payload(ERRORS[0][0])["error"]
    assert error["data"] == {"errors": [{"field": "message.parts[0]", "message": "is empty."}]}
