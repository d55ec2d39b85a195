"""Errors that A2A lacks, in the tables from which the SDK makes error payloads."""

from __future__ import annotations

from a2a.utils.errors import A2A_ERROR_MAPPING, A2A_ERROR_REASONS, A2AError, ErrorMapping


def enter(kind: type[A2AError], http_status: int, status: str, reason: str) -> None:
    """Give an error its form in each binding: the SDK looks it up by the class, in these tables alone.

    In the table of JSON-RPC's codes, whose default is -32603, it would replace InternalError for the SDK's clients.

    Args:
        status: of gRPC.
        reason: of `google.rpc.ErrorInfo`.
    """
    A2A_ERROR_REASONS[kind] = reason
    A2A_ERROR_MAPPING[kind] = ErrorMapping(http_status, status, reason)
