"""The error for what a caller may not do with something that it may see. (What it may not see does not exist for it.)

HTTP answers 403, gRPC PERMISSION_DENIED, JSON-RPC -32603, as A2A has no code for it.
"""

from __future__ import annotations

from a2a.utils.errors import (
    A2A_ERROR_MAPPING,
    A2A_ERROR_REASONS,
    A2AError,
    ErrorMapping,
)


class PermissionDeniedError(A2AError):
    """The caller may not do that here."""


# The SDK looks up an error's form in each binding by its class, in these tables alone. In the table of JSON-RPC's
# codes, whose default is -32603, it would replace InternalError for the SDK's clients.
A2A_ERROR_REASONS[PermissionDeniedError] = "PERMISSION_DENIED"
A2A_ERROR_MAPPING[PermissionDeniedError] = ErrorMapping(403, "PERMISSION_DENIED", "PERMISSION_DENIED")
