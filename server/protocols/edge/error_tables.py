"""Registers errors that A2A lacks in the SDK's tables for error payloads, and their JSON-RPC codes.

Rule 1: -32603 says that the server failed and that a retry may help, so it is used only where both are true. A
        permanent refusal has a code of its own, outside those of A2A (-32001 and following).
"""

from __future__ import annotations

from typing import Final

from a2a.utils.errors import (
    A2A_ERROR_MAPPING,
    A2A_ERROR_REASONS,
    JSON_RPC_ERROR_CODE_MAP,
    A2AError,
    ErrorMapping,
    InternalError,
)

INTERNAL: Final = JSON_RPC_ERROR_CODE_MAP[InternalError]
INTERNAL_REASON: Final = A2A_ERROR_REASONS[InternalError]
_CODES: dict[type[A2AError], int] = {}


def register_error(kind: type[A2AError], http_status: int, status: str, reason: str, code: int = INTERNAL) -> None:
    """Give an error its form in each binding.

    The SDK looks an error up by its class, only in its own tables. Its table of JSON-RPC codes is left unchanged: its
    clients, which this server uses too, read that table backwards.

    Args:
        status: of gRPC.
        reason: of `google.rpc.ErrorInfo`.
        code: of JSON-RPC.
    """
    A2A_ERROR_REASONS[kind] = reason
    A2A_ERROR_MAPPING[kind] = ErrorMapping(http_status, status, reason)
    _CODES[kind] = code


def rpc_code(kind: type[A2AError]) -> int:
    """An error's JSON-RPC code."""
    return _CODES.get(kind) or JSON_RPC_ERROR_CODE_MAP.get(kind, INTERNAL)


class PermissionDeniedError(A2AError):
    """The caller may see a resource, but not do this with it. What a caller may not see is reported as not found."""


register_error(PermissionDeniedError, 403, "PERMISSION_DENIED", "PERMISSION_DENIED", -32043)
