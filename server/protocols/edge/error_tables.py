"""Errors that A2A lacks, in the tables from which the SDK makes error payloads, and their codes of JSON-RPC.

Rule 1: -32603 says that the server failed, and that a retry may help: it is for errors of which that is true. What is
        refused for good has a code of its own, outside those of A2A (-32001 and following).
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

    The SDK looks it up by the class, in its tables alone. Its table of JSON-RPC's codes is left as it is: its clients,
    of which this server has some, read that table backwards.

    Args:
        status: of gRPC.
        reason: of `google.rpc.ErrorInfo`.
        code: of JSON-RPC.
    """
    A2A_ERROR_REASONS[kind] = reason
    A2A_ERROR_MAPPING[kind] = ErrorMapping(http_status, status, reason)
    _CODES[kind] = code


def rpc_code(kind: type[A2AError]) -> int:
    """An error's code of JSON-RPC."""
    return _CODES.get(kind) or JSON_RPC_ERROR_CODE_MAP.get(kind, INTERNAL)


class PermissionDeniedError(A2AError):
    """The caller may not do that with something that it may see. What it may not see does not exist for it."""


register_error(PermissionDeniedError, 403, "PERMISSION_DENIED", "PERMISSION_DENIED", -32043)
