"""The error for what a caller may not do with something that it may see. (What it may not see does not exist for it.)

HTTP answers 403, gRPC PERMISSION_DENIED, JSON-RPC -32043: A2A has no code for it.
"""

from __future__ import annotations

from a2a.utils.errors import A2AError

from a2a_canvas.server.protocols.edge.error_tables import enter


class PermissionDeniedError(A2AError):
    """The caller may not do that here."""


enter(PermissionDeniedError, 403, "PERMISSION_DENIED", "PERMISSION_DENIED", -32043)
